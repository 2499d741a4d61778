// What is seen while a clip plays: state, position, figures, charts.

import { drawChart, fromFirst } from "./chart";
import type { Clip } from "./catalogue";
import { byId, make } from "./dom";
import type { Monitor } from "./monitor";
import type { Series } from "./record";
import { mos } from "./score";
import type { Phase } from "./session";
import type { Stall } from "./stalls";
import * as words from "./words";

const PHASES: Record<Phase, string> = {
  loading: "Loading",
  playing: "Playing",
  stalled: "Stalled",
  paused: "Paused",
  ended: "Finished",
  failed: "Failed",
};

/** Charts are drawn again at most so often, in milliseconds. */
const DRAW_MS = 500;

export class LiveView {
  private readonly tiles = new Map<string, HTMLElement>();
  private drawnMs = 0;
  private told: Phase | "idle" = "idle";

  constructor() {
    const tile = (id: string, name: string, help: string): void => {
      const value = make("dd", {}, "–");
      const term = make("dt", {}, name);
      byId("figures").append(make("div", { class: `tile ${id}`, title: help }, term, value));
      this.tiles.set(id, value);
    };
    tile("mos", "Viewer's score", "Paper 004, Eq. 1: from 1.48, the worst, to 3.31, the best");
    tile("load", "Initial load", "From the wish to see the clip to its first picture");
    tile("stalls", "Stalls", "Times that it stopped for want of data");
    tile("stalled", "Time stalled", "How long it stood still, in all stalls together");
    tile("frequency", "Stalls per second", "Stalls by the length of the clip");
    tile("buffer", "Buffer", "Media that is there beyond the position");
    tile("quality", "Picture", "Size of picture, or the size whose rate the clip has");
    tile("bitrate", "Bitrate", "Of the encoding at the position");
    tile("bytes", "Fetched", "Bytes of media since the beginning");
    tile("whole", "All buffered", "When the whole clip was there");
    tile("dropped", "Dropped frames", "Frames that were decoded too late to be shown");
  }

  begin(clip: Clip, quality: string): void {
    byId("now").textContent = `${clip.title}, ${quality}`;
    this.drawnMs = 0;
  }

  update(phase: Phase, monitor: Monitor, clip: Clip): void {
    this.tell(phase);
    const reading = monitor.latest;
    if (!reading) return;
    const clipS = clip.duration_s || reading.durationS || 1;
    this.figures(monitor, clipS);
    const whole = reading.durationS || clipS;
    const percent = (value: number): string =>
      `${Math.min(100, (value / whole) * 100).toFixed(1)}%`;
    byId("buffered").style.width = percent(reading.bufferedToS);
    byId("played").style.width = percent(reading.mediaS);
    byId("clock").textContent = `${words.clock(reading.mediaS)} / ${words.clock(whole)}`;
    const isOver = phase === "ended" || phase === "failed";
    const now = performance.now();
    if (isOver || now - this.drawnMs >= DRAW_MS) {
      this.drawnMs = now;
      byId("charts").replaceChildren(...charts(monitor.series, monitor.finder.stalls, clipS));
    }
  }

  /** Says a state in words: on the picture, and to screen readers when it changes. */
  tell(phase: Phase, more = ""): void {
    const stage = byId("stage");
    stage.dataset.phase = phase;
    if (this.told === phase && !more) return;
    this.told = phase;
    const text = more ? `${PHASES[phase]}: ${more}` : PHASES[phase];
    byId("phase").textContent = text;
    byId("state").textContent = text;
  }

  private figures(monitor: Monitor, clipS: number): void {
    const { finder, latest } = monitor;
    if (!latest) return;
    const totals = finder.totals(monitor.elapsedS);
    const initialLoadS = finder.initialLoadS ?? monitor.elapsedS;
    const value = mos({ initialLoadS, ...totals, clipS });
    this.set("mos", words.score(value));
    this.tiles.get("mos")?.parentElement?.setAttribute("data-mood", words.mood(value));
    this.set("load", words.seconds(initialLoadS));
    this.set("stalls", String(totals.stalls));
    this.set("stalled", words.seconds(totals.stalledS));
    this.set("frequency", (totals.stalls / clipS).toFixed(3));
    this.set("buffer", words.seconds(Math.max(0, latest.bufferedToS - latest.mediaS)));
    this.set("quality", latest.width ? `${latest.width}×${latest.height}` : "–");
    this.set("bitrate", latest.bitrateBps ? words.megabits(latest.bitrateBps) : "–");
    this.set("bytes", words.megabytes(latest.bytes));
    this.set("whole", words.seconds(monitor.wholeBufferedS));
    this.set("dropped", `${latest.droppedFrames} of ${latest.decodedFrames}`);
  }

  private set(id: string, text: string): void {
    const tile = this.tiles.get(id);
    if (tile && tile.textContent !== text) tile.textContent = text;
  }
}

/** The charts of a run. */
export function charts(series: Series, stalls: readonly Stall[], clipS: number): HTMLElement[] {
  const x = series.t_s;
  const mega = (values: readonly number[]): number[] => values.map((value) => value / 1e6);
  const common = { stalls, leastX: clipS };
  return [
    drawChart({
      ...common,
      title: "Buffer",
      unit: "s",
      lines: [{ name: "buffer", colour: 0, x, y: series.buffer_s, filled: true }],
    }),
    drawChart({
      ...common,
      title: "Bitrate and throughput",
      unit: "Mbit/s",
      lines: [
        { name: "throughput", colour: 2, x, y: mega(series.throughput_bps), filled: true },
        {
          name: "bitrate",
          colour: 1,
          ...fromFirst(x, mega(series.bitrate_bps)),
          steps: true,
        },
      ],
    }),
    drawChart({
      ...common,
      title: "Resolution",
      unit: "lines",
      lines: [{ name: "lines", colour: 3, ...fromFirst(x, series.height), steps: true }],
    }),
    drawChart({
      ...common,
      title: "Dropped frames",
      leastY: 3,
      unit: "in all",
      lines: [{ name: "dropped", colour: 4, x, y: series.dropped_frames, steps: true }],
    }),
  ];
}
