// A viewer's score of a video that was played (004, Eq. 1): docs/algorithms/viewer-score.md.

/** What a viewer met while a clip played. */
export interface Viewing {
  /** From the wish to see the clip to its first picture, seconds. */
  initialLoadS: number;
  /** Times that it stopped for want of data after it had begun. */
  stalls: number;
  /** How long it stood still in all of them together, seconds. */
  stalledS: number;
  /** Length of the clip, seconds; above 0. */
  clipS: number;
}

/** How bad each of Eq. 1's three factors is: 1, 2 or 3. */
export interface Levels {
  initial_load: number;
  frequency: number;
  length: number;
}

/** Stalls per second of the clip. */
export function frequencyHz(viewing: Viewing): number {
  return viewing.stalls / viewing.clipS;
}

/** Mean length of a stall, seconds; 0 without one. */
export function meanStallS(viewing: Viewing): number {
  return viewing.stalls === 0 ? 0 : viewing.stalledS / viewing.stalls;
}

/** The levels of 004's three factors; each upper bound belongs to its level. */
export function levels(viewing: Viewing): Levels {
  return {
    initial_load: level(viewing.initialLoadS, 1, 5),
    frequency: level(frequencyHz(viewing), 0.02, 0.15),
    length: level(meanStallS(viewing), 5, 10),
  };
}

/** The mean opinion score, 1.48 to 3.31 (004, Eq. 1). */
export function mos(viewing: Viewing): number {
  const { initial_load, frequency, length } = levels(viewing);
  return 4.23 - 0.0672 * initial_load - 0.742 * frequency - 0.106 * length;
}

function level(value: number, low: number, middle: number): number {
  return value <= low ? 1 : value <= middle ? 2 : 3;
}
