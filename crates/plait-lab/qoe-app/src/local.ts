// The server's own clips, played by shaka-player through Media Source Extensions.

import shaka from "shaka-player/dist/shaka-player.compiled-es2021.js";

import {
  nearestQuality,
  parseCatalogue,
  qualityOf,
  search,
  type Catalogue,
  type Clip,
} from "./catalogue";
import type { Playback, Provider, Reading } from "./provider";
import type { Settings } from "./settings";

/** Bytes of media that have come, counted as they come and not when a segment is whole. */
let mediaBytes = 0;

function countBytes(): void {
  const { NetworkingEngine, HttpFetchPlugin } = shaka.net;
  const counting: shaka.extern.SchemePlugin = (uri, request, type, progress, headers, config) => {
    const isMedia = type === NetworkingEngine.RequestType.SEGMENT;
    const counted: shaka.extern.ProgressUpdated = (timeMs, bytes, left) => {
      if (isMedia) mediaBytes += bytes;
      progress(timeMs, bytes, left);
    };
    return HttpFetchPlugin.parse(uri, request, type, counted, headers, config);
  };
  const { APPLICATION } = NetworkingEngine.PluginPriority;
  for (const scheme of ["http", "https"]) {
    NetworkingEngine.registerScheme(scheme, counting, APPLICATION, true);
  }
}

/** Asks the server what it has. */
export async function fetchCatalogue(): Promise<Catalogue> {
  const response = await fetch("catalogue.json");
  if (!response.ok) throw new Error(`the server has no catalogue: ${await response.text()}`);
  return parseCatalogue(await response.json());
}

export class LocalProvider implements Provider {
  readonly name = "local";
  private clips: Clip[] | null = null;

  constructor() {
    shaka.polyfill.installAll();
    countBytes();
  }

  async search(query: string): Promise<Clip[]> {
    this.clips ??= (await fetchCatalogue()).clips;
    return search(this.clips, query);
  }

  async open(
    clip: Clip,
    settings: Settings,
    run: string,
    stage: HTMLElement,
    onError: (error: Error) => void,
  ): Promise<Playback> {
    if (!shaka.Player.isBrowserSupported()) {
      throw new Error("this browser has no Media Source Extensions; use another one");
    }
    const manifest = settings.protocol === "hls" ? clip.hls : clip.dash;
    if (!manifest) throw new Error(`${clip.id} has no ${settings.protocol.toUpperCase()} manifest`);
    const video = document.createElement("video");
    video.muted = true;
    video.playsInline = true;
    video.setAttribute("aria-label", clip.title);
    stage.replaceChildren(video);
    const player = new shaka.Player();
    mediaBytes = 0;
    player.addEventListener("error", (event) => onError(wordsOf(event)));
    await player.attach(video);
    player.configure(configuration(clip, settings, run));
    try {
      await player.load(new URL(manifest, document.baseURI).href);
    } catch (error) {
      throw wordsOf({ detail: error });
    }
    const playback = new LocalPlayback(player, video, clip);
    playback.play();
    return playback;
  }
}

function configuration(clip: Clip, settings: Settings, run: string): object {
  const chosen = settings.quality === null ? undefined : qualityOf(clip, settings.quality);
  if (settings.quality !== null && !chosen) {
    const names = clip.qualities.map((quality) => quality.name).join(", ");
    throw new Error(`${clip.id} has no quality ${settings.quality}; it has ${names}`);
  }
  // The nearest bandwidth is the chosen one: manifests may tell it a little differently.
  const others = clip.qualities.filter((quality) => quality !== chosen);
  const middle = (other: number): number => (other + (chosen?.bandwidth_bps ?? 0)) / 2;
  const rates = others.map((quality) => quality.bandwidth_bps);
  const below = rates.filter((rate) => rate < (chosen?.bandwidth_bps ?? 0)).map(middle);
  const above = rates.filter((rate) => rate > (chosen?.bandwidth_bps ?? 0)).map(middle);
  const only = {
    minBandwidth: Math.max(0, ...below),
    maxBandwidth: Math.min(Number.MAX_SAFE_INTEGER, ...above),
  };
  return {
    streaming: {
      rebufferingGoal: settings.rebuffering_goal_s,
      bufferingGoal: settings.buffering_goal_s,
      retryParameters: { timeout: 0, stallTimeout: 0, connectionTimeout: 0, maxAttempts: 10 },
    },
    // Else it fetches the middle and the last segment before it plays, to look for captions.
    manifest: { hls: { disableClosedCaptionsDetection: true } },
    abr: { enabled: chosen === undefined },
    ...(chosen ? { restrictions: only } : {}),
    cmcd: { enabled: true, useHeaders: false, sessionId: run, contentId: clip.id, version: 1 },
  };
}

class LocalPlayback implements Playback {
  readonly player = `shaka-player ${shaka.Player.version}`;

  constructor(
    private readonly shakaPlayer: shaka.Player,
    private readonly video: HTMLVideoElement,
    private readonly clip: Clip,
  ) {}

  read(): Reading {
    const { video, clip } = this;
    const quality = video.getVideoPlaybackQuality();
    const track = this.shakaPlayer.getVariantTracks().find((candidate) => candidate.active);
    const bandwidth = track?.bandwidth ?? 0;
    const known = nearestQuality(clip, bandwidth);
    const size = known?.stands_for ?? { width: video.videoWidth, height: video.videoHeight };
    return {
      mediaS: video.currentTime,
      durationS: Number.isFinite(video.duration) ? video.duration : 0,
      bufferedToS: bufferedTo(video),
      wants: !video.paused && !video.ended,
      ended: video.ended,
      width: size.width,
      height: size.height,
      bitrateBps: known?.bandwidth_bps ?? bandwidth,
      codec: track?.videoCodec ?? clip.codec,
      fps: clip.frame_rate,
      bytes: mediaBytes,
      decodedFrames: quality.totalVideoFrames,
      droppedFrames: quality.droppedVideoFrames,
    };
  }

  play(): void {
    // Without a gesture of the viewer a browser may refuse; the button of the page then plays.
    this.video.play().catch(() => undefined);
  }

  pause(): void {
    this.video.pause();
  }

  async stop(): Promise<void> {
    await this.shakaPlayer.destroy();
  }
}

/** The end of the buffered range around the position. */
function bufferedTo(video: HTMLVideoElement): number {
  const { buffered, currentTime } = video;
  for (let range = 0; range < buffered.length; range += 1) {
    // Encoders begin a little after 0, and segments may leave gaps of a frame.
    if (buffered.start(range) <= currentTime + 0.15 && currentTime <= buffered.end(range)) {
      return buffered.end(range);
    }
  }
  return currentTime;
}

function wordsOf(event: unknown): Error {
  const detail = (event as { detail?: unknown }).detail;
  if (detail instanceof Error && !("code" in detail)) return detail;
  const { code, data } = (detail ?? {}) as { code?: number; data?: unknown[] };
  const more = data?.find((part) => typeof part === "string" || typeof part === "number");
  return new Error(`the player gave up (code ${code ?? "unknown"}${more ? `: ${more}` : ""})`);
}
