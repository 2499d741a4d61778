// YouTube's videos: found by its Data API, played by its IFrame player. The player tells neither
// bytes nor bitrates, so these stay 0; position, buffer and quality by name it does tell.

import type { Clip } from "./catalogue";
import type { Playback, Provider, Reading } from "./provider";
import type { Settings } from "./settings";

/** As much of the Data API's answer to `videos.list` as is used. */
interface VideoItem {
  id?: unknown;
  snippet?: { title?: unknown };
  contentDetails?: { duration?: unknown; definition?: unknown };
}

/** As much of the IFrame player as is used. */
interface FramePlayer {
  getCurrentTime(): number;
  getDuration(): number;
  getVideoLoadedFraction(): number;
  getPlaybackQuality(): string;
  getPlayerState(): number;
  playVideo(): void;
  pauseVideo(): void;
  mute(): void;
  destroy(): void;
}

interface FrameEvents {
  onReady: (event: { target: FramePlayer }) => void;
  onError: (event: { data: number }) => void;
}

interface FrameApi {
  Player: new (
    element: HTMLElement,
    options: {
      videoId: string;
      width: string;
      height: string;
      playerVars: Record<string, number | string>;
      events: FrameEvents;
    },
  ) => FramePlayer;
}

declare global {
  interface Window {
    YT?: FrameApi;
    onYouTubeIframeAPIReady?: () => void;
  }
}

/** States of the IFrame player. */
const ENDED = 0;
const PAUSED = 2;

const API = "https://www.googleapis.com/youtube/v3/";
const FRAME_SCRIPT = "https://www.youtube.com/iframe_api";
const RESULTS_MAX = 12;

/** Lines of a quality's name. */
const LINES: Record<string, number> = {
  tiny: 144,
  small: 240,
  medium: 360,
  large: 480,
  hd720: 720,
  hd1080: 1080,
  hd1440: 1440,
  hd2160: 2160,
  highres: 4320,
};

/** A picture of the quality with this name, as wide as pictures mostly are; 0 for one unknown. */
export function sizeOf(quality: string): { width: number; height: number } {
  const height = LINES[quality] ?? 0;
  return { width: Math.round((height * 16) / 9), height };
}

/** Seconds of a duration such as PT1H2M3S (ISO 8601); 0 for what is none. */
export function secondsOf(duration: string): number {
  const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/.exec(duration);
  if (!found) return 0;
  const [days, hours, minutes, seconds] = found.slice(1).map((text) => Number(text ?? 0));
  return (((days ?? 0) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0);
}

/** The ids in an answer to `search.list`. */
export function idsOf(answer: unknown): string[] {
  const items = (answer as { items?: unknown }).items;
  if (!Array.isArray(items)) return [];
  const ids = items.map((item: { id?: { videoId?: unknown } }) => item.id?.videoId);
  return ids.filter((id): id is string => typeof id === "string" && /^[\w-]{5,20}$/.test(id));
}

/** The clips in an answer to `videos.list`. */
export function clipsOf(answer: unknown): Clip[] {
  const items = (answer as { items?: unknown }).items;
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: VideoItem) => {
    const { id, snippet, contentDetails } = item;
    if (typeof id !== "string" || typeof snippet?.title !== "string") return [];
    const duration = contentDetails?.duration;
    const duration_s = typeof duration === "string" ? secondsOf(duration) : 0;
    const codec = contentDetails?.definition === "hd" ? "YouTube, HD" : "YouTube";
    const known = { id, title: snippet.title, duration_s, codec };
    return [{ ...known, segment_s: 0, frame_rate: 0, qualities: [] }];
  });
}

/** An API's refusal in words. */
export function refusalOf(answer: unknown, status: number): Error {
  const said = (answer as { error?: { message?: unknown } }).error?.message;
  const words = typeof said === "string" ? said : `status ${status}`;
  return new Error(`YouTube's Data API refuses: ${words}`);
}

export class YouTubeProvider implements Provider {
  readonly name = "youtube";
  private key: string | null = null;

  async search(query: string): Promise<Clip[]> {
    if (!query.trim()) return [];
    const found = await this.ask("search", {
      part: "id",
      type: "video",
      videoEmbeddable: "true",
      maxResults: String(RESULTS_MAX),
      q: query,
    });
    const ids = idsOf(found);
    if (ids.length === 0) return [];
    return clipsOf(await this.ask("videos", { part: "snippet,contentDetails", id: ids.join(",") }));
  }

  async open(
    clip: Clip,
    _settings: Settings,
    _run: string,
    stage: HTMLElement,
    onError: (error: Error) => void,
  ): Promise<Playback> {
    const api = await frameApi();
    const place = document.createElement("div");
    stage.replaceChildren(place);
    return new Promise((resolve) => {
      new api.Player(place, {
        videoId: clip.id,
        width: "100%",
        height: "100%",
        playerVars: { autoplay: 1, controls: 0, playsinline: 1, rel: 0, origin: location.origin },
        events: {
          onReady: ({ target }) => {
            target.mute();
            target.playVideo();
            resolve(new FramePlayback(target));
          },
          onError: ({ data }) => onError(new Error(`YouTube's player gave up (code ${data})`)),
        },
      });
    });
  }

  private async ask(what: string, query: Record<string, string>): Promise<unknown> {
    if (this.key === null) {
      const response = await fetch("youtube-key");
      if (!response.ok) throw new Error("this server has no key for YouTube's Data API");
      this.key = (await response.json()) as string;
    }
    const asked = new URLSearchParams({ ...query, key: this.key });
    const response = await fetch(`${API}${what}?${asked}`);
    const answer: unknown = await response.json();
    if (!response.ok) throw refusalOf(answer, response.status);
    return answer;
  }
}

export class FramePlayback implements Playback {
  readonly player = "YouTube IFrame player";

  constructor(private readonly frame: FramePlayer) {}

  read(): Reading {
    const { frame } = this;
    const durationS = frame.getDuration() || 0;
    const state = frame.getPlayerState();
    const mediaS = frame.getCurrentTime() || 0;
    return {
      mediaS,
      durationS,
      bufferedToS: Math.max(mediaS, frame.getVideoLoadedFraction() * durationS),
      wants: state !== PAUSED && state !== ENDED,
      ended: state === ENDED,
      ...sizeOf(frame.getPlaybackQuality()),
      bitrateBps: 0,
      codec: "",
      fps: 0,
      bytes: 0,
      decodedFrames: 0,
      droppedFrames: 0,
    };
  }

  play(): void {
    this.frame.playVideo();
  }

  pause(): void {
    this.frame.pauseVideo();
  }

  async stop(): Promise<void> {
    this.frame.destroy();
  }
}

/** The IFrame player's script, loaded once. */
function frameApi(): Promise<FrameApi> {
  if (window.YT) return Promise.resolve(window.YT);
  return new Promise((resolve, reject) => {
    window.onYouTubeIframeAPIReady = () => {
      if (window.YT) resolve(window.YT);
    };
    const script = document.createElement("script");
    script.src = FRAME_SCRIPT;
    script.onerror = () => reject(new Error("YouTube's player cannot be reached"));
    document.head.append(script);
  });
}
