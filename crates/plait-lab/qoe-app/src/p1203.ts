// The input of ITU-T P.1203 (mode 0, metadata) as the common implementation's JSON: I13 the video
// segments, I23 the stalls in media time with the initial load as a stall at 0, IGen the display.
// Only the input: the score itself is computed elsewhere.

import type { Stall } from "./stalls";

/** Time played with one encoding. */
export interface PlayedSegment {
  start_s: number;
  duration_s: number;
  bitrate_bps: number;
  width: number;
  height: number;
  fps: number;
  codec: string;
}

export interface P1203Input {
  I11: { segments: []; streamId: number };
  I13: {
    segments: {
      codec: string;
      start: number;
      duration: number;
      resolution: string;
      bitrate: number;
      fps: number;
    }[];
    streamId: number;
  };
  I23: { stalling: [number, number][]; streamId: number };
  IGen: { displaySize: string; device: string; viewingDistance: string };
}

const STREAM = 42;

/** P.1203's name of a codec, from its name in a manifest. */
export function codecName(codec: string): string {
  if (/^avc/.test(codec)) return "h264";
  if (/^(hev|hvc)/.test(codec)) return "hevc";
  if (/^(vp09|vp9)/.test(codec)) return "vp9";
  if (/^av01/.test(codec)) return "av1";
  return codec;
}

export function p1203Input(
  segments: readonly PlayedSegment[],
  stalls: readonly Stall[],
  initialLoadS: number,
  display: { width: number; height: number },
): P1203Input {
  const round = (value: number): number => Math.round(value * 1000) / 1000;
  return {
    I11: { segments: [], streamId: STREAM },
    I13: {
      segments: segments.map((segment) => ({
        codec: codecName(segment.codec),
        start: round(segment.start_s),
        duration: round(segment.duration_s),
        resolution: `${segment.width}x${segment.height}`,
        bitrate: round(segment.bitrate_bps / 1000),
        fps: segment.fps,
      })),
      streamId: STREAM,
    },
    I23: {
      stalling: [
        [0, round(initialLoadS)],
        ...stalls.map((stall): [number, number] => [round(stall.media_s), round(stall.length_s)]),
      ],
      streamId: STREAM,
    },
    IGen: {
      displaySize: `${display.width}x${display.height}`,
      device: display.width < 800 ? "mobile" : "pc",
      viewingDistance: "150cm",
    },
  };
}
