// Finds stalls in samples of the media's position. A player's own events mislead: they come late,
// not at all, or for pauses that nobody sees.

/** A time in which the picture stood still. */
export interface Stall {
  /** Where in the clip, seconds. */
  media_s: number;
  /** When, seconds after the wish to see the clip. */
  start_s: number;
  length_s: number;
}

/** A jump of the position beyond this is a seek, not play. */
const JUMP_S = 0.5;
/** Less than this is no movement, seconds: a frame is longer, and sums of times are rounded. */
const STILL_S = 0.002;

export class StallFinder {
  /** From the wish to the first picture, seconds; null before there was one. */
  initialLoadS: number | null = null;
  readonly stalls: Stall[] = [];

  private last: { tS: number; mediaS: number } | null = null;
  /** When the picture last moved, as far as the samples tell. */
  private movedS = 0;
  private open: { startS: number; mediaS: number } | null = null;

  /** Still times shorter than `leastS` are not seen, and not counted. */
  constructor(private readonly leastS = 0.25) {}

  /** Whether the picture stands still now, after it had begun. */
  get stalled(): boolean {
    const { open, last, leastS } = this;
    return open !== null && last !== null && last.tS - open.startS >= leastS;
  }

  /**
   * Takes a sample: seconds since the wish, position in the clip, and whether the viewer wants it
   * to play (not paused, not at its end).
   */
  sample(tS: number, mediaS: number, wants: boolean): void {
    const last = this.last;
    this.last = { tS, mediaS };
    if (this.initialLoadS === null) return this.begin(tS, mediaS, last?.tS ?? 0);
    if (last === null) return;
    const moved = mediaS - last.mediaS;
    const passed = tS - last.tS;
    if (moved < -STILL_S || moved > passed + JUMP_S) return this.resetAt(tS);
    if (moved > STILL_S) {
      this.moveOn(last.tS, last.mediaS, passed, moved);
      if (!wants) this.resetAt(tS);
      return;
    }
    if (!wants) {
      this.close(tS);
      this.resetAt(tS);
    } else {
      this.open ??= { startS: this.movedS, mediaS };
    }
  }

  /** Ends the observation; a stall that still lasts counts up to now. */
  finish(tS: number): void {
    this.close(tS);
  }

  /** Stalls so far with the one that lasts, for display. */
  totals(tS: number): { stalls: number; stalledS: number } {
    const open = this.open ? tS - this.open.startS : 0;
    const counts = open >= this.leastS;
    const done = this.stalls.reduce((sum, stall) => sum + stall.length_s, 0);
    return { stalls: this.stalls.length + (counts ? 1 : 0), stalledS: done + (counts ? open : 0) };
  }

  private begin(tS: number, mediaS: number, lastS: number): void {
    if (mediaS <= 0) return;
    // The position tells how long it has been playing by the time of this sample.
    this.initialLoadS = Math.min(tS, Math.max(lastS, tS - mediaS));
    this.movedS = tS;
  }

  private moveOn(lastS: number, mediaS: number, passed: number, moved: number): void {
    const resumedS = lastS + Math.max(0, passed - moved);
    if (this.open) {
      this.close(resumedS);
      this.movedS = lastS + passed;
    } else if (passed - moved >= this.leastS) {
      // It stopped and went on between two samples that are far apart.
      this.stalls.push({ media_s: mediaS, start_s: lastS, length_s: passed - moved });
      this.movedS = lastS + passed;
    } else {
      this.movedS = lastS + Math.min(passed, moved);
    }
  }

  private close(endS: number): void {
    if (!this.open) return;
    const { startS, mediaS } = this.open;
    const length = endS - startS;
    if (length >= this.leastS) {
      this.stalls.push({ media_s: mediaS, start_s: startS, length_s: length });
    }
    this.open = null;
  }

  private resetAt(tS: number): void {
    this.open = null;
    this.movedS = tS;
  }
}
