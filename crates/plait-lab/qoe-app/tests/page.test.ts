import assert from "node:assert/strict";
import { test } from "node:test";

import { nearestQuality, parseCatalogue, search } from "../src/catalogue";
import { fromFirst, gridStep, pathOf } from "../src/chart";
import { codecName } from "../src/p1203";
import { DEFAULTS, newRunName, parseRequest } from "../src/settings";
import * as words from "../src/words";

const clip = {
  id: "paper-2s",
  title: "Test picture",
  duration_s: 66,
  segment_s: 2,
  frame_rate: 24,
  codec: "avc1",
  dash: "m/manifest.mpd",
  qualities: [
    { name: "2K", bandwidth_bps: 6.06e6, bytes: 5e7, width: 640, height: 360 },
    { name: "4K", bandwidth_bps: 15.9e6, bytes: 1.31e8, width: 640, height: 360 },
  ],
};

test("an address asks for a run, within bounds", () => {
  const request = parseRequest(
    "?clip=a&quality=4K&protocol=hls&rebuffering=4&buffering=30&limit=200&autoplay=1&run=r-1",
  );
  assert.deepEqual(request, {
    clip: "a",
    autoplay: true,
    run: "r-1",
    settings: {
      ...DEFAULTS,
      protocol: "hls",
      quality: "4K",
      rebuffering_goal_s: 4,
      buffering_goal_s: 30,
      limit_s: 200,
    },
  });
  const wrong = parseRequest("?run=../x&rebuffering=NaN&buffering=-1&protocol=ftp");
  assert.deepEqual(wrong.settings, DEFAULTS);
  assert.deepEqual([wrong.run, wrong.clip, wrong.autoplay], [null, null, false]);
});

test("any text as an address gives settings within their bounds", () => {
  let seed = 3;
  const chance = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 2000; round += 1) {
    const byte = (): string => String.fromCharCode(32 + Math.floor(chance() * 95));
    const text = Array.from({ length: 12 }, byte).join("");
    const { settings, run } = parseRequest(`?rebuffering=${text}&buffering=${text}&run=${text}`);
    assert.ok(settings.rebuffering_goal_s >= 0 && settings.rebuffering_goal_s <= 600, text);
    assert.ok(settings.buffering_goal_s >= 1 && settings.buffering_goal_s <= 3600, text);
    assert.ok(run === null || /^[a-z0-9-]+$/.test(run), text);
  }
});

test("names of runs can be kept", () => {
  const name = newRunName(new Date("2026-01-02T03:04:05Z"), 0.5);
  assert.match(name, /^20260102-030405-[a-z0-9]{4}$/);
  assert.equal(parseRequest(`?run=${name}`).run, name);
});

test("clips are found by all words", () => {
  const clips = parseCatalogue({ clips: [clip] }).clips;
  assert.equal(search(clips, "4k PICTURE").length, 1);
  assert.equal(search(clips, "4k other").length, 0);
  assert.equal(search(clips, "").length, 1);
  assert.equal(nearestQuality(clip, 15e6)?.name, "4K");
  for (const wrong of [{}, { clips: [{}] }, { clips: [{ ...clip, dash: null }] }]) {
    assert.throws(() => parseCatalogue(wrong));
  }
});

test("grids are round", () => {
  assert.deepEqual(
    [66, 120, 3, 0.4].map((most) => gridStep(most, 6)),
    [20, 20, 0.5, 0.1],
  );
  assert.deepEqual(fromFirst([0, 1, 2], [0, 0, 3]), { x: [2], y: [3] });
  assert.deepEqual(fromFirst([0, 1], [0, 0]), { x: [0, 1], y: [0, 0] });
  assert.equal(pathOf([0, 1, 2], [5, 6, 7], true), "M0 5H1V6H2V7");
  assert.equal(pathOf([0, 1], [5, 6.04], false), "M0 5L1 6");
});

test("numbers for people", () => {
  assert.equal(words.seconds(null), "–");
  assert.equal(words.seconds(0.456), "0.46 s");
  assert.equal(words.megabits(15.9e6), "15.9 Mbit/s");
  assert.equal(words.clock(66), "1:06");
  assert.deepEqual([3.3148, 2.5728, 1.4844].map(words.mood), ["good", "fair", "bad"]);
  assert.equal(codecName("vp09.00.10.08"), "vp9");
});
