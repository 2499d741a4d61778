import assert from "node:assert/strict";
import { test } from "node:test";

import { StallFinder } from "../src/stalls";

/** The position of a clip that begins at `from` and stands still in the given times. */
function positionAt(tS: number, from: number, stills: readonly [number, number][]): number {
  const still = stills.map(([start, end]) => Math.max(0, Math.min(tS, end) - start));
  return Math.max(0, tS - from - still.reduce((a, b) => a + b, 0));
}

function watch(
  untilS: number,
  from: number,
  stills: readonly [number, number][],
  stepS = () => 0.1,
): StallFinder {
  const finder = new StallFinder(0.25);
  for (let tS = 0; tS <= untilS; tS += stepS()) {
    finder.sample(tS, positionAt(tS, from, stills), true);
  }
  return finder;
}

const near = (value: number | undefined | null, expected: number, within = 0.02): void =>
  assert.ok(Math.abs((value ?? NaN) - expected) < within, `${value} is not ${expected}`);

test("the initial load ends with the first picture, not with the sample after it", () => {
  near(watch(5, 1.234, []).initialLoadS, 1.234, 1e-9);
  assert.equal(new StallFinder().initialLoadS, null);
});

test("a stall has its true bounds, between samples", () => {
  const finder = watch(20, 0.53, [[5.03, 7.77], [12, 12.6]]);
  assert.equal(finder.stalls.length, 2);
  near(finder.stalls[0]?.start_s, 5.03);
  near(finder.stalls[0]?.length_s, 2.74);
  near(finder.stalls[0]?.media_s, 4.5);
  near(finder.stalls[1]?.length_s, 0.6);
});

test("what is shorter than the least is no stall", () => {
  assert.equal(watch(20, 0, [[5, 5.2]]).stalls.length, 0);
});

test("late samples of a clip that plays are no stalls, and hide none", () => {
  assert.equal(watch(30, 0, [], () => 1.3).stalls.length, 0);
  const [stall] = watch(30, 0, [[10.2, 12.2]], () => 5).stalls;
  near(stall?.length_s, 2);
});

test("random stalls and random delays of samples: all are found, and none else", () => {
  let seed = 7;
  const chance = (): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 2147483648;
  };
  for (let round = 0; round < 300; round += 1) {
    const stills: [number, number][] = [];
    let at = 1 + chance();
    while (at < 50) {
      const length = 0.45 + 5 * chance();
      stills.push([at, at + length]);
      at += length + 1 + 8 * chance();
    }
    const finder = watch(70, chance() * 0.9, stills, () => 0.08 + 0.06 * chance());
    assert.equal(finder.stalls.length, stills.length, `round ${round}`);
    const length = stills.reduce((sum, [start, end]) => sum + end - start, 0);
    const found = finder.stalls.reduce((sum, stall) => sum + stall.length_s, 0);
    near(found, length, 0.05 * stills.length);
  }
});

test("a pause of the viewer is no stall, and neither is a seek", () => {
  const finder = new StallFinder(0.25);
  const play = (from: number, to: number, offset: number): void => {
    for (let tS = from; tS < to; tS += 0.1) finder.sample(tS, tS - offset, true);
  };
  play(0, 5, 0.5);
  for (let tS = 5; tS < 9; tS += 0.1) finder.sample(tS, 4.4, false);
  play(9, 12, 4.6);
  play(12, 15, -20);
  play(15, 18, 10);
  finder.finish(18);
  assert.deepEqual(finder.stalls, []);
});

test("a stall that lasts at the end counts up to it", () => {
  const finder = watch(10, 0.5, [[6, 99]]);
  assert.ok(finder.stalled);
  near(finder.totals(10).stalledS, 4, 0.15);
  finder.finish(10);
  near(finder.stalls[0]?.length_s, 4, 0.15);
  assert.ok(!finder.stalled);
});
