// The forms in which one round's numbers can be seen. Raw estimates are the release; every other form is made of them
// for the eye, and says what it is.

import { effectiveSize } from "./facts.js";
import { isKnown } from "./format.js";
import { placeOnLabels } from "./profile.js";

export const FORMS = {
  raw: ["Raw", "Raw: unbiased, with 95 % intervals; negative where chance has it so."],
  curve: ["Cumulative", "Cumulative: the share of those with a value that have at most each value. The band holds for the whole curve at once, with 95 %; it rises, which the estimates themselves need not."],
  simultaneous: ["Raw, all at once", "Raw, with intervals that hold for all values at once, and for all categories at once, with 95 %: for picking out the largest or a surprise among many."],
  mean: ["Mean", "This round tells the mean, with its 95 % interval. It does not tell single values: their noise is larger than that of one plain answer for each of them."],
  consistent: ["Consistent", "Consistent: the nearest shares that are not negative and add up to one. Biased, so without intervals; for reading and plotting, not for testing."],
};

// The forms that a round has, the first one shown unless the address says otherwise.
export function formsOf(round) {
  const values = round.values ?? [];
  if (!values.length) return [];
  const first = round.cumulative ? ["curve"] : tellsMeanAlone(round) ? ["mean"] : [];
  return [...first, "raw", "simultaneous", "consistent"];
}

// Whether a number's mean is told and its single values are not: they are known worse than by one device for each.
export function tellsMeanAlone({ mean, values }) {
  if (!mean || !isKnown(mean) || placeOnLabels(values) === null) return false;
  const size = effectiveSize(values);
  return size !== null && size < values.length;
}

// The curve of a release, as rows with its band.
export function curve({ points, shares, errors, low, high }) {
  return points.map((point, i) => ({ label: String(point), category: null, estimate: shares[i], error: errors[i], low: low[i], high: high[i] }));
}

// Rows with the intervals that hold at once.
export function atOnce(rows) {
  return rows.map((row) => ({ ...row, low: row.simultaneous_low, high: row.simultaneous_high }));
}

// The consistent view of rows: their labels, the view's numbers; null where the document has none.
export function consistent(rows, numbers) {
  if (!numbers || numbers.length !== rows.length) return null;
  return rows.map((row, i) => ({
    label: row.label, category: row.category, estimate: numbers[i], low: null, high: null, plain: true,
    half: row.estimate === null ? 0 : (row.high - row.low) / 2,
  }));
}
