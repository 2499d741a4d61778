import assert from "node:assert/strict";
import { test } from "node:test";

import { Monitor } from "../src/monitor";
import type { Reading } from "../src/provider";
import { makeRecord, toCsv } from "../src/record";
import { DEFAULTS } from "../src/settings";

function reading(mediaS: number, more: Partial<Reading> = {}): Reading {
  return {
    mediaS,
    durationS: 8,
    bufferedToS: Math.min(8, mediaS + 3),
    wants: true,
    ended: false,
    width: 640,
    height: 360,
    bitrateBps: 1e6,
    codec: "avc1.64001e",
    fps: 24,
    bytes: mediaS * 125_000,
    decodedFrames: mediaS * 24,
    droppedFrames: 0,
    ...more,
  };
}

/** A clip of 8 s that begins after 0.5 s and changes its bitrate in the middle. */
function watched(): Monitor {
  const monitor = new Monitor(0.25, 8);
  for (let tenth = 0; tenth <= 85; tenth += 1) {
    const mediaS = Math.max(0, tenth / 10 - 0.5);
    const better = mediaS >= 4 ? { bitrateBps: 3e6, width: 1920, height: 1080 } : {};
    monitor.sample(tenth / 10, reading(mediaS, better));
  }
  return monitor;
}

const clip = {
  id: "a",
  title: "A",
  duration_s: 8,
  segment_s: 2,
  frame_rate: 24,
  codec: "avc1",
  dash: "a.mpd",
  qualities: [],
};
const where = {
  id: "run",
  at: new Date(0),
  provider: "local",
  player: "none",
  browser: "none",
  display: { width: 1280, height: 720, pixel_ratio: 1 },
  clip,
  settings: DEFAULTS,
};

test("a run's record has figures, segments and series", () => {
  const record = makeRecord(where, watched().finish(true));
  const { figures } = record;
  assert.equal(figures.stalls, 0);
  assert.ok(Math.abs(figures.initial_load_s - 0.5) < 1e-6);
  assert.ok(Math.abs(figures.mos - 3.3148) < 1e-9);
  assert.equal(figures.switches, 1);
  assert.ok(Math.abs(figures.mean_bitrate_bps - 2e6) < 0.1e6);
  assert.ok(Math.abs((figures.all_buffered_s ?? 0) - 5.3) < 0.11);
  const points = record.series.t_s.length;
  assert.ok(points >= 17 && points <= 20, String(points));
  for (const values of Object.values(record.series)) assert.equal(values.length, points);
  assert.equal(toCsv(record).trim().split("\n").length, points + 1);
});

test("the input of P.1203 tells segments, and the initial load as a stall at 0", () => {
  const { p1203 } = makeRecord(where, watched().finish(true));
  assert.deepEqual(p1203.I23.stalling, [[0, 0.5]]);
  const [first, second] = p1203.I13.segments;
  assert.deepEqual([first?.codec, first?.resolution, first?.bitrate], ["h264", "640x360", 1000]);
  assert.deepEqual([first?.start, second?.resolution], [0, "1920x1080"]);
  const whole = p1203.I13.segments.reduce((sum, segment) => sum + segment.duration, 0);
  assert.ok(Math.abs(whole - 8) < 1e-6);
});

test("a clip that never begins kept its viewer waiting", () => {
  const monitor = new Monitor(0.25, 8);
  for (let tenth = 0; tenth <= 70; tenth += 1) monitor.sample(tenth / 10, reading(0));
  const { figures } = makeRecord(where, monitor.finish(false));
  assert.equal(figures.initial_load_s, 7);
  assert.equal(figures.levels.initial_load, 3);
});
