// What plays a clip, whoever provides it.

import type { Clip } from "./catalogue";
import type { Settings } from "./settings";

/** What a player tells at an instant. */
export interface Reading {
  mediaS: number;
  /** 0 while it is not known. */
  durationS: number;
  /** Position up to which the clip is there without a gap. */
  bufferedToS: number;
  /** Whether the viewer wants it to play: not paused, not at its end. */
  wants: boolean;
  ended: boolean;
  width: number;
  height: number;
  /** The encoding at the position; 0 where the provider does not tell. */
  bitrateBps: number;
  codec: string;
  fps: number;
  /** Of media, since the beginning. */
  bytes: number;
  decodedFrames: number;
  droppedFrames: number;
}

/** A clip that plays. */
export interface Playback {
  /** For the record: library and version. */
  readonly player: string;
  read(): Reading;
  play(): void;
  pause(): void;
  stop(): Promise<void>;
}

export interface Provider {
  readonly name: string;
  search(query: string): Promise<Clip[]>;
  /**
   * Begins to load and play a clip in `stage`. `onError` is told what ends it early. Rejects when
   * it cannot begin.
   */
  open(
    clip: Clip,
    settings: Settings,
    run: string,
    stage: HTMLElement,
    onError: (error: Error) => void,
  ): Promise<Playback>;
}
