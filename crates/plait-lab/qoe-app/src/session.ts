// One run: plays a clip, watches it, makes its record.

import type { Clip } from "./catalogue";
import { Monitor, SAMPLE_MS } from "./monitor";
import type { Playback, Provider, Reading } from "./provider";
import { makeRecord, type RunRecord } from "./record";
import type { Settings } from "./settings";

export type Phase = "loading" | "playing" | "stalled" | "paused" | "ended" | "failed";

export interface Observer {
  /** After each sample. */
  onSample(phase: Phase, monitor: Monitor): void;
  onEnd(record: RunRecord, phase: Phase, error: Error | null): void;
}

/** What a player that has not begun tells. */
const NOTHING: Reading = {
  mediaS: 0,
  durationS: 0,
  bufferedToS: 0,
  wants: true,
  ended: false,
  width: 0,
  height: 0,
  bitrateBps: 0,
  codec: "",
  fps: 0,
  bytes: 0,
  decodedFrames: 0,
  droppedFrames: 0,
};

export class Session {
  private readonly monitor: Monitor;
  private readonly at = new Date();
  private readonly startMs = performance.now();
  private playback: Playback | null = null;
  private timer = 0;
  private isOver = false;
  private isGone = false;

  constructor(
    private readonly provider: Provider,
    readonly clip: Clip,
    private readonly settings: Settings,
    private readonly run: string,
    stage: HTMLElement,
    private readonly observer: Observer,
  ) {
    this.monitor = new Monitor(settings.stall_least_s, clip.duration_s);
    this.timer = window.setInterval(() => this.sample(), SAMPLE_MS);
    const fail = (error: Error): void => void this.end(false, error);
    provider.open(clip, settings, run, stage, fail).then(
      (playback) => {
        this.playback = playback;
        if (this.isGone) void playback.stop();
      },
      (error: unknown) => fail(error instanceof Error ? error : new Error(String(error))),
    );
  }

  /** Pauses or goes on. */
  toggle(): void {
    if (!this.playback) return;
    if (this.playback.read().wants) this.playback.pause();
    else this.playback.play();
  }

  /** Ends the run before the clip does. */
  stop(): void {
    void this.end(false, null);
  }

  /** Takes the player down. Until then the last picture stays. */
  async dispose(): Promise<void> {
    if (this.isGone) return;
    this.isGone = true;
    await this.playback?.stop();
  }

  private sample(): void {
    if (this.isOver) return;
    const tS = (performance.now() - this.startMs) / 1000;
    const reading = this.playback?.read() ?? NOTHING;
    this.monitor.sample(tS, reading);
    this.observer.onSample(this.phase(reading), this.monitor);
    const { limit_s } = this.settings;
    if (reading.ended) void this.end(true, null);
    else if (limit_s > 0 && tS > limit_s) void this.end(false, null);
  }

  private phase(reading: Reading): Phase {
    const { finder } = this.monitor;
    if (finder.initialLoadS === null) return this.playback && !reading.wants ? "paused" : "loading";
    if (!reading.wants) return "paused";
    return finder.stalled ? "stalled" : "playing";
  }

  private async end(complete: boolean, error: Error | null): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    window.clearInterval(this.timer);
    const seen = this.monitor.finish(complete);
    const { clip, settings } = this;
    const record = makeRecord(
      {
        id: this.run,
        at: this.at,
        provider: this.provider.name,
        player: this.playback?.player ?? "none",
        browser: navigator.userAgent,
        display: {
          width: screen.width,
          height: screen.height,
          pixel_ratio: window.devicePixelRatio,
        },
        clip: { ...clip, duration_s: clip.duration_s || this.monitor.latest?.durationS || 1 },
        settings,
      },
      seen,
    );
    const phase = error ? "failed" : "ended";
    this.observer.onSample(phase, this.monitor);
    this.observer.onEnd(record, phase, error);
    // A clip that is whole fetches nothing any more.
    if (!complete) await this.dispose();
  }
}
