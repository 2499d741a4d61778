// The page: connects catalogue, player, figures, runs and keys.

import { Chooser } from "./chooser";
import { byId } from "./dom";
import { LiveView } from "./live";
import { fetchCatalogue, LocalProvider } from "./local";
import type { Provider } from "./provider";
import type { RunRecord } from "./record";
import { keep, RunsView } from "./runs";
import { Session } from "./session";
import { newRunName, parseRequest } from "./settings";
import { installShortcuts } from "./shortcuts";
import { YouTubeProvider } from "./youtube";

declare global {
  interface Window {
    /** For a program that drives the page: where the run is, its record, what went wrong. */
    plait: { state: "idle" | "running" | "kept" | "failed"; record?: RunRecord; error?: string };
  }
}

window.plait = { state: "idle" };
const request = parseRequest(location.search);
const live = new LiveView();
const runs = new RunsView();
let provider: Provider = new LocalProvider();
let session: Session | null = null;
/** The one whose picture is seen, perhaps after its end. */
let shown: Session | null = null;
let nextRun = request.run;

const chooser = new Chooser(provider, (error) => complain(error.message));

function complain(text: string): void {
  const note = byId("note");
  note.textContent = text;
  note.hidden = text === "";
}

function fail(text: string): void {
  window.plait = { ...window.plait, state: "failed", error: text };
  complain(text);
}

function setRunning(isRunning: boolean): void {
  byId<HTMLButtonElement>("pause").disabled = !isRunning;
  byId<HTMLButtonElement>("stop").disabled = !isRunning;
  byId("start").textContent = isRunning ? "Start again" : "Play and measure";
}

async function start(): Promise<void> {
  const clip = chooser.clip;
  if (!clip) return;
  session?.stop();
  // Else bytes of the one before would be counted for this one.
  await shown?.dispose();
  complain("");
  const settings = chooser.settings(request.settings);
  const run = nextRun ?? newRunName(new Date(), Math.random());
  nextRun = null;
  window.plait = { state: "running" };
  setRunning(true);
  live.begin(clip, settings.quality ?? "adaptive");
  live.tell("loading");
  const mine: Session = new Session(provider, clip, settings, run, byId("screen"), {
    onSample: (phase, monitor) => {
      if (session === mine || session === null) live.update(phase, monitor, clip);
    },
    onEnd: (record, phase, error) => {
      if (session !== mine) return;
      session = null;
      setRunning(false);
      live.tell(phase, error?.message);
      void finish(record, error);
    },
  });
  session = mine;
  shown = mine;
}

async function finish(record: RunRecord, error: Error | null): Promise<void> {
  window.plait.record = record;
  try {
    await keep(record);
    await runs.refresh();
    if (error) fail(error.message);
    else window.plait.state = "kept";
  } catch (wrong) {
    fail(wrong instanceof Error ? wrong.message : String(wrong));
  }
}

function connect(): void {
  const help = byId<HTMLDialogElement>("help");
  byId("pause").addEventListener("click", () => session?.toggle());
  byId("stop").addEventListener("click", () => session?.stop());
  byId("help-open").addEventListener("click", () => help.showModal());
  byId("help-close").addEventListener("click", () => help.close());
  const whole = (): void => {
    if (document.fullscreenElement) void document.exitFullscreen();
    else byId("stage").requestFullscreen().catch(() => undefined);
  };
  byId("whole").addEventListener("click", whole);
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void start();
  });
  installShortcuts([
    { key: "/", name: "/", what: "search the catalogue", run: () => byId("search").focus() },
    { name: "Enter", what: "in the form: play and measure" },
    { key: "p", name: "P", what: "play and measure", run: () => void start() },
    { key: " ", name: "Space", what: "pause, or go on", run: () => session?.toggle() },
    { key: "s", name: "S", what: "stop, and keep what was measured", run: () => session?.stop() },
    { key: "f", name: "F", what: "fill the screen", run: whole },
    { key: "r", name: "R", what: "go to the runs", run: () => byId("runs-title").focus() },
    { key: "?", name: "?", what: "show these keys", run: () => help.showModal() },
  ]);
}

/** Offers the other sources of clips that the server has. */
async function offerSources(): Promise<void> {
  const { providers } = await fetchCatalogue();
  if (!providers.includes("youtube")) return;
  const local = provider;
  const select = byId<HTMLSelectElement>("source");
  select.append(new Option("This server", "local"), new Option("YouTube", "youtube"));
  byId("source-row").hidden = false;
  select.addEventListener("change", () => {
    provider = select.value === "youtube" ? new YouTubeProvider() : local;
    chooser.useProvider(provider);
  });
}

async function begin(): Promise<void> {
  connect();
  setRunning(false);
  offerSources().catch((error: Error) => complain(error.message));
  await Promise.all([
    chooser.search(""),
    runs.refresh().catch((error: Error) => complain(error.message)),
  ]);
  if (request.clip !== null && !chooser.chooseId(request.clip)) {
    fail(`the catalogue has no clip ${request.clip}`);
    return;
  }
  chooser.show(request.settings);
  const { quality } = request.settings;
  const known = chooser.clip?.qualities.map((candidate) => candidate.name) ?? [];
  if (quality !== null && !known.includes(quality)) {
    fail(`${chooser.clip?.id ?? "the clip"} has no quality ${quality}; it has ${known.join(", ")}`);
    return;
  }
  if (request.autoplay) await start();
}

void begin();
