// Watches a clip play: samples its position every 100 ms, finds stalls, keeps what is drawn and
// recorded.

import type { PlayedSegment } from "./p1203";
import type { Reading } from "./provider";
import type { Seen, Series } from "./record";
import { StallFinder } from "./stalls";

/** Time between two samples of the position. */
export const SAMPLE_MS = 100;
/** Time between two points of the series, seconds. */
const SERIES_S = 0.5;
/** A sample later than this is counted as late, seconds. */
const LATE_S = 0.3;
/** The clip counts as buffered whole when less than this is missing, seconds. */
const WHOLE_S = 0.2;
/** Throughput is a mean over so many points of the series. */
const THROUGHPUT_POINTS = 4;

export function emptySeries(): Series {
  return {
    t_s: [],
    media_s: [],
    buffer_s: [],
    bitrate_bps: [],
    throughput_bps: [],
    width: [],
    height: [],
    bytes: [],
    dropped_frames: [],
  };
}

export class Monitor {
  readonly series = emptySeries();
  readonly finder: StallFinder;
  private readonly segments: PlayedSegment[] = [];
  private reading: Reading | null = null;
  private nowS = 0;
  private allBufferedS: number | null = null;
  private lateSamples = 0;

  constructor(
    leastStallS: number,
    private readonly clipS: number,
  ) {
    this.finder = new StallFinder(leastStallS);
  }

  /** Takes what the player tells, `tS` seconds after the wish to see the clip. */
  sample(tS: number, reading: Reading): void {
    const isFirst = this.reading === null;
    if (!isFirst && tS - this.nowS > LATE_S) this.lateSamples += 1;
    const before = this.reading;
    this.nowS = tS;
    this.reading = reading;
    this.finder.sample(tS, reading.mediaS, reading.wants);
    const whole = reading.durationS || this.clipS;
    if (this.allBufferedS === null && whole > 0 && reading.bufferedToS >= whole - WHOLE_S) {
      this.allBufferedS = tS;
    }
    this.noteSegment(before, reading);
    const last = this.series.t_s.at(-1);
    if (last === undefined || tS - last >= SERIES_S - 0.01) this.addPoint(tS, reading);
  }

  get latest(): Reading | null {
    return this.reading;
  }

  get elapsedS(): number {
    return this.nowS;
  }

  get wholeBufferedS(): number | null {
    return this.allBufferedS;
  }

  /** Ends the observation. */
  finish(complete: boolean): Seen {
    this.finder.finish(this.nowS);
    if (this.reading) this.addPoint(this.nowS, this.reading);
    const { reading } = this;
    return {
      // A clip that never began kept the viewer waiting until now.
      initialLoadS: this.finder.initialLoadS ?? this.nowS,
      stalls: this.finder.stalls,
      series: this.series,
      segments: this.segments,
      allBufferedS: this.allBufferedS,
      bytes: reading?.bytes ?? 0,
      switches: Math.max(0, this.segments.length - 1),
      decodedFrames: reading?.decodedFrames ?? 0,
      droppedFrames: reading?.droppedFrames ?? 0,
      playedS: reading?.mediaS ?? 0,
      elapsedS: this.nowS,
      lateSamples: this.lateSamples,
      complete,
    };
  }

  /** Media time goes to the encoding that was shown; neighbours of one encoding are one segment. */
  private noteSegment(before: Reading | null, now: Reading): void {
    const from = before?.mediaS ?? 0;
    const played = now.mediaS - from;
    if (played <= 0 || now.bitrateBps <= 0) return;
    const last = this.segments.at(-1);
    const isSame =
      last &&
      last.bitrate_bps === now.bitrateBps &&
      last.width === now.width &&
      last.codec === now.codec;
    if (isSame) {
      last.duration_s += played;
    } else {
      this.segments.push({
        start_s: last ? last.start_s + last.duration_s : 0,
        duration_s: played + (last ? 0 : from),
        bitrate_bps: now.bitrateBps,
        width: now.width,
        height: now.height,
        fps: now.fps,
        codec: now.codec,
      });
    }
  }

  private addPoint(tS: number, reading: Reading): void {
    const { series } = this;
    const round = (value: number): number => Math.round(value * 1000) / 1000;
    const back = Math.max(0, series.t_s.length - THROUGHPUT_POINTS);
    const passed = tS - (series.t_s[back] ?? 0);
    const came = reading.bytes - (series.bytes[back] ?? 0);
    series.t_s.push(round(tS));
    series.media_s.push(round(reading.mediaS));
    series.buffer_s.push(round(Math.max(0, reading.bufferedToS - reading.mediaS)));
    series.bitrate_bps.push(Math.round(reading.bitrateBps));
    series.throughput_bps.push(passed > 0 ? Math.round((Math.max(0, came) * 8) / passed) : 0);
    series.width.push(reading.width);
    series.height.push(reading.height);
    series.bytes.push(reading.bytes);
    series.dropped_frames.push(reading.droppedFrames);
  }
}
