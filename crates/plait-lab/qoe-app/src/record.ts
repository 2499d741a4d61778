// The record of a run: what the server keeps, and what is exported.

import type { Clip } from "./catalogue";
import { p1203Input, type P1203Input, type PlayedSegment } from "./p1203";
import { frequencyHz, levels, meanStallS, mos, type Levels } from "./score";
import type { Settings } from "./settings";
import type { Stall } from "./stalls";

/** Values over time, each list as long as the others. */
export interface Series {
  /** Seconds after the wish to see the clip. */
  t_s: number[];
  media_s: number[];
  buffer_s: number[];
  bitrate_bps: number[];
  throughput_bps: number[];
  width: number[];
  height: number[];
  bytes: number[];
  dropped_frames: number[];
}

export interface Figures {
  initial_load_s: number;
  stalls: number;
  stalled_s: number;
  mean_stall_s: number;
  stall_frequency_hz: number;
  /** 004, Eq. 1. */
  mos: number;
  levels: Levels;
  /** When all of the clip was buffered; null if it never was. */
  all_buffered_s: number | null;
  bytes: number;
  mean_bitrate_bps: number;
  switches: number;
  decoded_frames: number;
  dropped_frames: number;
  /** Position in the clip at the end of the run. */
  played_s: number;
  elapsed_s: number;
  /** Samples that came so late that a stall's bounds are known less well. */
  late_samples: number;
}

export interface RunRecord {
  version: 1;
  id: string;
  /** When the run began, in UTC. */
  at: string;
  provider: string;
  player: string;
  browser: string;
  display: { width: number; height: number; pixel_ratio: number };
  clip: { id: string; title: string; duration_s: number; segment_s: number; codec: string };
  settings: Settings;
  /** Whether the clip played to its end. */
  complete: boolean;
  figures: Figures;
  stalls: Stall[];
  series: Series;
  /** Input for an ITU-T P.1203 implementation. */
  p1203: P1203Input;
}

/** What the monitor saw. */
export interface Seen {
  initialLoadS: number;
  stalls: Stall[];
  series: Series;
  segments: PlayedSegment[];
  allBufferedS: number | null;
  bytes: number;
  switches: number;
  decodedFrames: number;
  droppedFrames: number;
  playedS: number;
  elapsedS: number;
  lateSamples: number;
  complete: boolean;
}

/** Who played what, where. */
export interface Circumstances {
  id: string;
  at: Date;
  provider: string;
  player: string;
  browser: string;
  display: { width: number; height: number; pixel_ratio: number };
  clip: Clip;
  settings: Settings;
}

export function makeRecord(where: Circumstances, seen: Seen): RunRecord {
  const { clip } = where;
  const stalledS = seen.stalls.reduce((sum, stall) => sum + stall.length_s, 0);
  const viewing = {
    initialLoadS: seen.initialLoadS,
    stalls: seen.stalls.length,
    stalledS,
    clipS: clip.duration_s,
  };
  const figures: Figures = {
    initial_load_s: seen.initialLoadS,
    stalls: seen.stalls.length,
    stalled_s: stalledS,
    mean_stall_s: meanStallS(viewing),
    stall_frequency_hz: frequencyHz(viewing),
    mos: mos(viewing),
    levels: levels(viewing),
    all_buffered_s: seen.allBufferedS,
    bytes: seen.bytes,
    mean_bitrate_bps: meanBitrateBps(seen.segments),
    switches: seen.switches,
    decoded_frames: seen.decodedFrames,
    dropped_frames: seen.droppedFrames,
    played_s: seen.playedS,
    elapsed_s: seen.elapsedS,
    late_samples: seen.lateSamples,
  };
  const { id, title, duration_s, segment_s, codec } = clip;
  return {
    version: 1,
    id: where.id,
    at: where.at.toISOString(),
    provider: where.provider,
    player: where.player,
    browser: where.browser,
    display: where.display,
    clip: { id, title, duration_s, segment_s, codec },
    settings: where.settings,
    complete: seen.complete,
    figures,
    stalls: seen.stalls,
    series: seen.series,
    p1203: p1203Input(seen.segments, seen.stalls, seen.initialLoadS, where.display),
  };
}

/** The bitrate over the time that was played with each. */
function meanBitrateBps(segments: readonly PlayedSegment[]): number {
  const time = segments.reduce((sum, segment) => sum + segment.duration_s, 0);
  const bits = segments.reduce((sum, segment) => sum + segment.duration_s * segment.bitrate_bps, 0);
  return time > 0 ? bits / time : 0;
}

/** The series as comma-separated values, with a line of names. */
export function toCsv(record: Pick<RunRecord, "series">): string {
  const names = Object.keys(record.series) as (keyof Series)[];
  const rows = record.series.t_s.map((_, row) =>
    names.map((name) => String(record.series[name][row] ?? "")).join(","),
  );
  return [names.join(","), ...rows].join("\n") + "\n";
}
