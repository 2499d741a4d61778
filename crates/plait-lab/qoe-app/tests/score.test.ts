import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { levels, mos } from "../src/score";

test("scores are those of the vectors that the Rust code has too", () => {
  const file = process.env["PLAIT_VECTORS"];
  assert.ok(file, "PLAIT_VECTORS names viewer_score/vectors.txt; scripts/qoe-app sets it");
  const lines = readFileSync(file, "utf8").split("\n");
  const cases = lines.filter((line) => line && !line.startsWith("#"));
  assert.equal(cases.length, 12);
  for (const line of cases) {
    const [initialLoadS, stalls, stalledS, clipS, expected] = line.split(" ").map(Number);
    const viewing = { initialLoadS, stalls, stalledS, clipS } as Parameters<typeof mos>[0];
    assert.ok(Math.abs(mos(viewing) - (expected ?? NaN)) < 5e-5, `${line}: ${mos(viewing)}`);
  }
});

test("a bound belongs to the level that it ends", () => {
  const viewing = { initialLoadS: 5, stalls: 1, stalledS: 5, clipS: 50 };
  assert.deepEqual(levels(viewing), { initial_load: 2, frequency: 1, length: 1 });
});
