// Numbers for people.

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

export function megabits(bps: number): string {
  const value = bps / 1e6;
  return `${value.toFixed(value < 10 ? 2 : 1)} Mbit/s`;
}

export function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return `${value.toFixed(value < 10 ? 1 : 0)} MB`;
}

/** Minutes and seconds, as players show a position. */
export function clock(value: number): string {
  // Clips end a frame before or after their length.
  const whole = Math.floor(value + 0.05);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** A date in the reader's own time, to the minute. */
export function moment(iso: string): string {
  const date = new Date(iso);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** A score with the place it has between worst and best. */
export function score(value: number): string {
  return value.toFixed(2);
}

/** Verdict on a score, for a glance; the bounds are a third of the range each. */
export function mood(value: number): "good" | "fair" | "bad" {
  return value > 2.7 ? "good" : value > 2.1 ? "fair" : "bad";
}
