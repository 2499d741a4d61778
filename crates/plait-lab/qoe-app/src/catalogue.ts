// The catalogue: what can be played.

/** One encoding of a clip. */
export interface Quality {
  name: string;
  bandwidth_bps: number;
  bytes: number;
  width: number;
  height: number;
  /** The size of picture whose rate this has, where the picture itself is smaller. */
  stands_for?: { width: number; height: number } | null;
}

export interface Clip {
  id: string;
  title: string;
  /** 0 when it is not known before it plays. */
  duration_s: number;
  segment_s: number;
  frame_rate: number;
  codec: string;
  /** Manifests, relative to the page. */
  dash?: string | null;
  hls?: string | null;
  qualities: Quality[];
}

export interface Catalogue {
  clips: Clip[];
  /** Where clips can be sought beside the server's own. */
  providers: string[];
}

/** Reads a catalogue, and fails with what is wrong with it. */
export function parseCatalogue(value: unknown): Catalogue {
  const { clips, providers } = value as Partial<Catalogue>;
  if (!Array.isArray(clips)) throw new Error("the catalogue has no list of clips");
  for (const clip of clips) {
    const isClip = typeof clip.id === "string" && typeof clip.title === "string";
    if (!isClip || !Array.isArray(clip.qualities) || !(clip.duration_s > 0)) {
      throw new Error("a clip of the catalogue lacks its id, title, duration or qualities");
    }
    if (!clip.dash && !clip.hls) throw new Error(`${clip.id} has no manifest`);
  }
  return { clips, providers: Array.isArray(providers) ? providers : ["local"] };
}

/** The clips that have each of the words in title, id, codec or the name of a quality. */
export function search(clips: readonly Clip[], query: string): Clip[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (clip: Clip): string =>
    [clip.id, clip.title, clip.codec, ...clip.qualities.map((quality) => quality.name)]
      .join(" ")
      .toLowerCase();
  return clips.filter((clip) => words.every((word) => text(clip).includes(word)));
}

/** The quality of this name. */
export function qualityOf(clip: Clip, name: string): Quality | undefined {
  return clip.qualities.find((quality) => quality.name.toLowerCase() === name.toLowerCase());
}

/** The catalogue's quality that a stream of this bandwidth is. */
export function nearestQuality(clip: Clip, bandwidthBps: number): Quality | undefined {
  const distance = (quality: Quality): number => Math.abs(quality.bandwidth_bps - bandwidthBps);
  return [...clip.qualities].sort((a, b) => distance(a) - distance(b))[0];
}
