// The forms in which one round's numbers can be seen. Raw estimates are the release; every other form is made of them
// for the eye, and says what it is.

import { placeOnLabels } from "./profile.js";

const LONG = 24; // more numbers than this, and single ones are mostly noise

export const FORMS = {
  raw: ["Raw", "Raw: unbiased, with 95 % intervals; negative where chance has it so."],
  curve: ["Cumulative", "Cumulative: the share of those with a value that have at most each value. The band holds for the whole curve at once, with 95 %; it rises, which the estimates themselves need not."],
  simultaneous: ["Raw, all at once", "Raw, with intervals that hold for all values at once, and for all categories at once, with 95 %: for picking out the largest or a surprise among many."],
  cumulative: ["Cumulative", "Cumulative: the share of all devices at or below each value, as running sums of the raw estimates. Unbiased, and without intervals here; those of single values stand in the raw form."],
  consistent: ["Consistent", "Consistent: the nearest shares that are not negative and add up to one. Biased, so without intervals; for reading and plotting, not for testing."],
};

// The forms that a round has, the first one shown unless the address says otherwise.
export function formsOf(round) {
  const values = round.values ?? [];
  if (!values.length) return [];
  const first = round.cumulative ? ["curve"] : isLongNumber(values) ? ["cumulative"] : [];
  const atOnce = values.some((row) => Number.isFinite(row.simultaneous_low)) ? ["simultaneous"] : [];
  return [...first, "raw", ...atOnce, "consistent"];
}

// Whether the labels are many numbers in order: then neighbours belong together.
export function isLongNumber(values) {
  return values.length > LONG && placeOnLabels(values) !== null;
}

// Running sums of the raw estimates, "missing" left out: the share of all devices at or below each value.
export function cumulative(values) {
  let sum = 0;
  let square = 0;
  return values.filter((row) => row.label !== "missing").map((row) => {
    if (row.estimate === null) return { ...row, plain: true };
    sum += row.estimate;
    square += ((row.high - row.low) / 2) ** 2;
    return { label: row.label, category: null, estimate: sum, low: null, high: null, plain: true, half: Math.sqrt(square) };
  });
}

// The curve of a release, as rows with its band.
export function curve({ points, shares, low, high }) {
  return points.map((point, i) => ({ label: String(point), category: null, estimate: shares[i], low: low[i], high: high[i] }));
}

// Rows with the intervals that hold at once.
export function atOnce(rows) {
  return rows.map((row) => ({ ...row, low: row.simultaneous_low ?? null, high: row.simultaneous_high ?? null }));
}

// The consistent view of rows: their labels, the view's numbers; null where the document has none.
export function consistent(rows, numbers) {
  if (!numbers || numbers.length !== rows.length) return null;
  return rows.map((row, i) => ({
    label: row.label, category: row.category, estimate: numbers[i], low: null, high: null, plain: true,
    half: row.estimate === null ? 0 : (row.high - row.low) / 2,
  }));
}
