// Small line charts as SVG.

import type { Stall } from "./stalls";

export interface Line {
  name: string;
  /** Number of the line's colour. */
  colour: number;
  x: readonly number[];
  y: readonly number[];
  /** Values hold until the next one, instead of running to it. */
  steps?: boolean;
  /** Filled down to 0. */
  filled?: boolean;
}

export interface Chart {
  title: string;
  unit: string;
  lines: readonly Line[];
  /** Times that are marked. */
  stalls?: readonly Stall[];
  /** The axis of time reaches at least this far. */
  leastX?: number;
  /** And that of values. */
  leastY?: number;
}

/** Narrow windows have narrow drawings, or their texts would become too small to read. */
const NARROW = "(max-width: 44rem)";
const WIDE_PX = 560;
const NARROW_PX = 350;
const HEIGHT = 150;
const LEFT = 44;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;

/** A round number of units from one grid line to the next, for about `count` lines. */
export function gridStep(most: number, count: number): number {
  const rough = Math.max(most, 1e-9) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= rough * 0.999) ?? 10;
  return factor * power;
}

/** A line's points from where it has a value on. */
export function fromFirst(
  x: readonly number[],
  y: readonly number[],
): { x: readonly number[]; y: readonly number[] } {
  const first = Math.max(0, y.findIndex((value) => value > 0));
  return { x: x.slice(first), y: y.slice(first) };
}

/** The drawing's path through points, in whole and half pixels. */
export function pathOf(
  xs: readonly number[],
  ys: readonly number[],
  steps: boolean,
): string {
  const point = (value: number): string => String(Math.round(value * 10) / 10);
  let path = "";
  xs.forEach((x, at) => {
    const y = ys[at] ?? 0;
    if (at === 0) path += `M${point(x)} ${point(y)}`;
    else if (steps) path += `H${point(x)}V${point(y)}`;
    else path += `L${point(x)} ${point(y)}`;
  });
  return path;
}

/** A figure with the chart and, where there is more than one line, a key. */
export function drawChart(chart: Chart): HTMLElement {
  const figure = document.createElement("figure");
  figure.className = "chart";
  const caption = document.createElement("figcaption");
  const title = document.createElement("b");
  title.textContent = chart.title;
  caption.append(title, `, ${chart.unit}`);
  if (chart.lines.length > 1) {
    const key = document.createElement("span");
    key.className = "keys";
    for (const line of chart.lines) {
      const entry = document.createElement("span");
      entry.className = `key c${line.colour}`;
      entry.textContent = line.name;
      key.append(entry);
    }
    caption.append(key);
  }
  figure.append(caption, drawing(chart));
  return figure;
}

function drawing(chart: Chart): SVGElement {
  const width = window.matchMedia(NARROW).matches ? NARROW_PX : WIDE_PX;
  const mostX = Math.max(chart.leastX ?? 10, ...chart.lines.map((line) => line.x.at(-1) ?? 0));
  const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), 0);
  const mostY = Math.max(chart.leastY ?? 1, ...chart.lines.map((line) => most(line.y)));
  const stepX = gridStep(mostX, width < WIDE_PX ? 4 : 6);
  const stepY = gridStep(mostY, 3);
  const topY = Math.max(stepY, Math.ceil(mostY / stepY - 1e-9) * stepY);
  const toX = (x: number): number => LEFT + (x / mostX) * (width - LEFT - RIGHT);
  const toY = (y: number): number => HEIGHT - BOTTOM - (y / topY) * (HEIGHT - TOP - BOTTOM);
  const svg = element("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
  svg.setAttribute("aria-label", spoken(chart));
  for (const stall of chart.stalls ?? []) {
    const box = {
      x: toX(stall.start_s),
      y: TOP,
      width: Math.max(2, toX(stall.length_s) - LEFT),
      height: HEIGHT - TOP - BOTTOM,
    };
    svg.append(element("rect", { class: "stall", ...box }));
  }
  for (let y = 0; y <= topY * 1.001; y += stepY) {
    svg.append(element("path", { class: "grid", d: `M${LEFT} ${toY(y)}H${width - RIGHT}` }));
    svg.append(label(trim(y), LEFT - 6, toY(y) + 4, "end"));
  }
  for (let x = 0; x <= mostX * 1.001; x += stepX) {
    const anchor = x === 0 ? "start" : toX(x) > width - 24 ? "end" : "middle";
    svg.append(label(x === 0 ? "0 s" : trim(x), toX(x), HEIGHT - 6, anchor));
  }
  for (const line of chart.lines) {
    const d = pathOf(line.x.map(toX), line.y.map(toY), line.steps ?? false);
    if (line.filled && d) {
      const closed = `${d}V${toY(0)}H${toX(line.x[0] ?? 0)}Z`;
      svg.append(element("path", { class: `area c${line.colour}`, d: closed }));
    }
    svg.append(element("path", { class: `line c${line.colour}`, d }));
  }
  return svg;
}

/** The chart in words, for those who do not see it. */
function spoken(chart: Chart): string {
  const told = chart.lines.map((line) => {
    const most = line.y.reduce((a, b) => Math.max(a, b), 0);
    return `${line.name} at most ${trim(most)}, last ${trim(line.y.at(-1) ?? 0)} ${chart.unit}`;
  });
  const count = chart.stalls?.length ?? 0;
  return `${chart.title} over time: ${told.join("; ")}${count ? `; ${count} stalls` : ""}`;
}

function trim(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function label(text: string, x: number, y: number, anchor: string): SVGElement {
  const node = element("text", { x, y, "text-anchor": anchor });
  node.textContent = text;
  return node;
}

function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}
