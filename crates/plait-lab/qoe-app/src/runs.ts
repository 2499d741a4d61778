// The runs that the server keeps: the list, and some of them side by side.

import { drawChart, fromFirst, type Line } from "./chart";
import { byId, download, make } from "./dom";
import { charts } from "./live";
import { toCsv, type Figures, type RunRecord } from "./record";
import * as words from "./words";

/** One entry of the server's list. */
export interface RunEntry {
  id: string;
  at: string;
  clip: string;
  quality: string | null;
  protocol: string;
  complete: boolean;
  figures: Figures;
}

/** So many runs fit side by side. */
const COMPARED_MAX = 4;

const ROWS: [string, (record: RunRecord) => string][] = [
  ["Clip", (record) => record.clip.title],
  ["Quality", (record) => record.settings.quality ?? "adaptive"],
  ["Protocol", (record) => record.settings.protocol.toUpperCase()],
  ["Goals, rebuffering / buffering", ({ settings }) =>
    `${settings.rebuffering_goal_s} s / ${settings.buffering_goal_s} s`],
  ["Segments", (record) => `${record.clip.segment_s} s`],
  ["Viewer's score", (record) => words.score(record.figures.mos)],
  ["Initial load", (record) => words.seconds(record.figures.initial_load_s)],
  ["Stalls", (record) => String(record.figures.stalls)],
  ["Time stalled", (record) => words.seconds(record.figures.stalled_s)],
  ["Mean stall", (record) => words.seconds(record.figures.mean_stall_s)],
  ["Stalls per second", (record) => record.figures.stall_frequency_hz.toFixed(3)],
  ["All buffered after", (record) => words.seconds(record.figures.all_buffered_s)],
  ["Mean bitrate", (record) => words.megabits(record.figures.mean_bitrate_bps)],
  ["Switches", (record) => String(record.figures.switches)],
  ["Fetched", (record) => words.megabytes(record.figures.bytes)],
  ["Dropped frames", ({ figures }) => `${figures.dropped_frames} of ${figures.decoded_frames}`],
  ["Played to the end", (record) => (record.complete ? "yes" : "no")],
];

async function json<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the server says ${response.status}`);
  return (await response.json()) as T;
}

/** Gives a record to the server to keep. */
export async function keep(record: RunRecord): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await fetch("runs", { method: "POST", headers, body: JSON.stringify(record) });
  if (!response.ok) throw new Error(`the run was not kept: ${(await response.text()).trim()}`);
}

export class RunsView {
  private readonly chosen = new Set<string>();
  private readonly records = new Map<string, RunRecord>();

  async refresh(): Promise<void> {
    const entries = await json<RunEntry[]>("runs");
    const known = new Set(entries.map((entry) => entry.id));
    for (const id of this.chosen) if (!known.has(id)) this.chosen.delete(id);
    byId("no-runs").hidden = entries.length > 0;
    byId("runs-table").hidden = entries.length === 0;
    byId("runs-body").replaceChildren(...entries.map((entry) => this.row(entry)));
    await this.compare();
  }

  private row(entry: RunEntry): HTMLElement {
    const { figures } = entry;
    const name = `${entry.clip}, ${entry.quality ?? "adaptive"}, ${words.moment(entry.at)}`;
    const box = make("input", { type: "checkbox", "aria-label": `Compare ${name}` });
    box.checked = this.chosen.has(entry.id);
    box.addEventListener("change", () => {
      if (box.checked && this.chosen.size >= COMPARED_MAX) {
        box.checked = false;
        byId("compare-note").textContent = `At most ${COMPARED_MAX} runs fit side by side.`;
        return;
      }
      if (box.checked) this.chosen.add(entry.id);
      else this.chosen.delete(entry.id);
      void this.compare();
    });
    const cell = (label: string, text: string, kind = "number"): HTMLElement =>
      make("td", { class: kind, "data-name": label }, text);
    const score = make("span", { class: "mos", "data-mood": words.mood(figures.mos) });
    score.textContent = words.score(figures.mos);
    return make(
      "tr",
      {},
      make("td", { class: "check" }, box),
      make("th", { scope: "row" }, words.moment(entry.at)),
      cell("clip", entry.clip, "name"),
      cell("quality", `${entry.quality ?? "adaptive"} · ${entry.protocol.toUpperCase()}`, "name"),
      make("td", { class: "number", "data-name": "score" }, score),
      cell("initial load", words.seconds(figures.initial_load_s)),
      cell("stalls", `${figures.stalls}${entry.complete ? "" : " (cut)"}`),
      cell("stalled", words.seconds(figures.stalled_s)),
      cell("bitrate", words.megabits(figures.mean_bitrate_bps)),
      make("td", { class: "files", "data-name": "export" }, ...this.exports(entry, name)),
    );
  }

  private exports(entry: RunEntry, name: string): HTMLElement[] {
    const pretty = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;
    const kinds: [string, string, string, (record: RunRecord) => string][] = [
      ["JSON", "json", "application/json", pretty],
      ["CSV", "csv", "text/csv", toCsv],
      ["P.1203", "p1203.json", "application/json", (record) => pretty(record.p1203)],
    ];
    return kinds.map(([label, ending, type, text]) => {
      const button = make("button", { type: "button", class: "link" }, label);
      button.setAttribute("aria-label", `Export ${label} of ${name}`);
      button.addEventListener("click", () => {
        void this.record(entry.id).then((record) =>
          download(`${entry.id}.${ending}`, type, text(record)),
        );
      });
      return button;
    });
  }

  private async record(id: string): Promise<RunRecord> {
    const known = this.records.get(id);
    if (known) return known;
    const record = await json<RunRecord>(`runs/${id}.json`);
    this.records.set(id, record);
    return record;
  }

  private async compare(): Promise<void> {
    const records = await Promise.all([...this.chosen].map((id) => this.record(id)));
    byId("compare").hidden = records.length === 0;
    byId("compare-note").textContent =
      records.length === 1 ? "Choose another run to see both side by side." : "";
    if (records.length === 0) return;
    const title = (record: RunRecord, at: number): HTMLElement =>
      make("th", { scope: "col", class: `key c${at}` }, `${at + 1}: ${words.moment(record.at)}`);
    const head = make("tr", {}, make("td", {}), ...records.map(title));
    const rows = ROWS.map(([name, text]) => {
      const texts = records.map(text);
      const differs = new Set(texts).size > 1;
      const cells = texts.map((shown) => make("td", differs ? { class: "differs" } : {}, shown));
      return make("tr", {}, make("th", { scope: "row" }, name), ...cells);
    });
    byId("compare-head").replaceChildren(head);
    byId("compare-body").replaceChildren(...rows);
    const [first, second] = records;
    const drawn =
      first && !second
        ? charts(first.series, first.stalls, first.clip.duration_s)
        : overlaid(records);
    byId("compare-charts").replaceChildren(...drawn);
  }
}

function overlaid(records: readonly RunRecord[]): HTMLElement[] {
  const lines = (values: (record: RunRecord) => number[], steps = false): Line[] =>
    records.map((record, at) => ({
      name: `run ${at + 1}`,
      colour: at,
      ...fromFirst(record.series.t_s, values(record)),
      steps,
    }));
  const mega = (values: readonly number[]): number[] => values.map((value) => value / 1e6);
  return [
    drawChart({ title: "Position", unit: "s", lines: lines(({ series }) => series.media_s) }),
    drawChart({ title: "Buffer", unit: "s", lines: lines(({ series }) => series.buffer_s) }),
    drawChart({
      title: "Throughput",
      unit: "Mbit/s",
      lines: lines(({ series }) => mega(series.throughput_bps)),
    }),
    drawChart({
      title: "Bitrate",
      unit: "Mbit/s",
      lines: lines(({ series }) => mega(series.bitrate_bps), true),
    }),
  ];
}
