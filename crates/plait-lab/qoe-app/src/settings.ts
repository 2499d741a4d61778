// What a run is told: from the page's address, and from its form.

export interface Settings {
  protocol: "dash" | "hls";
  /** The name of a quality; null lets the player adapt. */
  quality: string | null;
  /** Seconds of buffer with which play begins, and goes on after a stall. */
  rebuffering_goal_s: number;
  /** Seconds of buffer beyond which the player fetches nothing. */
  buffering_goal_s: number;
  /** Shorter stalls are not counted, seconds. */
  stall_least_s: number;
  /** A run is ended after this, seconds; 0 is never. */
  limit_s: number;
}

/** What the page's address asks for beside settings. */
export interface Request {
  clip: string | null;
  autoplay: boolean;
  /** The name under which the server keeps the run. */
  run: string | null;
  settings: Settings;
}

export const DEFAULTS: Settings = {
  protocol: "dash",
  quality: null,
  rebuffering_goal_s: 2,
  buffering_goal_s: 120,
  stall_least_s: 0.25,
  limit_s: 0,
};

const RUN_NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** Reads the query of the page's address; what cannot be understood has its default. */
export function parseRequest(query: string): Request {
  const given = new URLSearchParams(query);
  const number = (name: string, other: number, low: number, high: number): number => {
    const text = given.get(name);
    const value = Number(text);
    return text !== null && text !== "" && value >= low && value <= high ? value : other;
  };
  const quality = given.get("quality");
  const run = given.get("run");
  return {
    clip: given.get("clip"),
    autoplay: given.get("autoplay") === "1",
    run: run !== null && RUN_NAME.test(run) ? run : null,
    settings: {
      protocol: given.get("protocol") === "hls" ? "hls" : "dash",
      quality: quality === null || quality === "adaptive" ? null : quality,
      rebuffering_goal_s: number("rebuffering", DEFAULTS.rebuffering_goal_s, 0, 600),
      buffering_goal_s: number("buffering", DEFAULTS.buffering_goal_s, 1, 3600),
      stall_least_s: number("stall", DEFAULTS.stall_least_s, 0.1, 10),
      limit_s: number("limit", DEFAULTS.limit_s, 0, 86400),
    },
  };
}

/** A name for a run: when it began, and a number by chance. */
export function newRunName(now: Date, chance: number): string {
  const stamp = now.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `${stamp}-${Math.floor(chance * 36 ** 4).toString(36).padStart(4, "0")}`;
}
