// The catalogue and the form: what to play, and how.

import type { Clip } from "./catalogue";
import { byId, make } from "./dom";
import type { Provider } from "./provider";
import { DEFAULTS, type Settings } from "./settings";
import * as words from "./words";

const ADAPTIVE = "adaptive";

export class Chooser {
  private clips: Clip[] = [];
  private chosen: Clip | null = null;
  private asked = 0;

  constructor(
    private provider: Provider,
    private readonly onError: (error: Error) => void,
  ) {
    const box = byId<HTMLInputElement>("search");
    let timer = 0;
    box.addEventListener("input", () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => void this.search(box.value), 150);
    });
  }

  get clip(): Clip | null {
    return this.chosen;
  }

  useProvider(provider: Provider): void {
    this.provider = provider;
    this.chosen = null;
    void this.search(byId<HTMLInputElement>("search").value);
  }

  async search(query: string): Promise<void> {
    this.asked += 1;
    const asked = this.asked;
    try {
      const clips = await this.provider.search(query);
      // An answer that comes late is of no use any more.
      if (asked !== this.asked) return;
      this.clips = clips;
    } catch (error) {
      this.clips = [];
      this.onError(error instanceof Error ? error : new Error(String(error)));
    }
    const first = this.clips[0] ?? null;
    const stays = this.clips.find((clip) => clip.id === this.chosen?.id);
    this.choose(stays ?? first);
    this.draw();
  }

  /** Chooses the clip of this id; false when there is none. */
  chooseId(id: string): boolean {
    const found = this.clips.find((clip) => clip.id === id);
    if (!found) return false;
    this.choose(found);
    this.draw();
    return true;
  }

  /** What the form says now. */
  settings(base: Settings): Settings {
    const number = (id: string, other: number): number => {
      const box = byId<HTMLInputElement>(id);
      const value = box.valueAsNumber;
      return Number.isFinite(value) && box.checkValidity() ? value : other;
    };
    const quality = byId<HTMLSelectElement>("quality").value;
    return {
      ...base,
      protocol: byId<HTMLSelectElement>("protocol").value === "hls" ? "hls" : "dash",
      quality: quality === ADAPTIVE ? null : quality,
      rebuffering_goal_s: number("rebuffering", DEFAULTS.rebuffering_goal_s),
      buffering_goal_s: number("buffering", DEFAULTS.buffering_goal_s),
    };
  }

  /** Shows settings in the form. */
  show(settings: Settings): void {
    byId<HTMLSelectElement>("protocol").value = settings.protocol;
    byId<HTMLSelectElement>("quality").value = settings.quality ?? ADAPTIVE;
    byId<HTMLInputElement>("rebuffering").value = String(settings.rebuffering_goal_s);
    byId<HTMLInputElement>("buffering").value = String(settings.buffering_goal_s);
  }

  private choose(clip: Clip | null): void {
    if (clip === this.chosen) return;
    this.chosen = clip;
    const select = byId<HTMLSelectElement>("quality");
    const before = select.value;
    const option = (value: string, text: string): HTMLOptionElement =>
      make("option", { value }, text);
    select.replaceChildren(
      option(ADAPTIVE, "Adaptive"),
      ...(clip?.qualities ?? []).map((quality) =>
        option(quality.name, `${quality.name}, ${words.megabits(quality.bandwidth_bps)}`),
      ),
    );
    select.value = before;
    if (select.selectedIndex < 0) select.value = ADAPTIVE;
    byId<HTMLButtonElement>("start").disabled = clip === null;
  }

  private draw(): void {
    byId("no-clips").hidden = this.clips.length > 0;
    const entries = this.clips.map((clip) => {
      const input = make("input", { type: "radio", name: "clip", value: clip.id });
      input.checked = clip.id === this.chosen?.id;
      input.addEventListener("change", () => this.choose(clip));
      const names = clip.qualities.map((quality) => quality.name).join(" · ");
      const facts = [
        clip.duration_s ? words.clock(clip.duration_s) : "",
        names,
        clip.codec,
        clip.segment_s ? `${clip.segment_s} s segments` : "",
      ];
      const text = make(
        "span",
        { class: "clip" },
        make("b", {}, clip.title),
        make("span", { class: "dim" }, facts.filter(Boolean).join(", ")),
      );
      return make("label", { class: "choice" }, input, text);
    });
    byId("clips").replaceChildren(...entries);
  }
}
