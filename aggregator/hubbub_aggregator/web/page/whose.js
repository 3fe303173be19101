// Whose shares intervals are of. A sealed round has two: of everybody who could have been asked, and of the devices counted.
// An open round has bands of the devices counted so far that hold however often it is looked at.

export const WHOSE = {
  crowd: ["Everybody who could have been asked", "Intervals are of everybody who could have been asked, if those who answered are like a random part of them."],
  devices: ["The devices counted", "Intervals are of the devices counted: they leave room for the noise alone."],
  watched: ["The devices counted so far", "Intervals are of the devices counted so far, and hold at every look, however often you come back."],
};

const PREFIX = { crowd: "crowd_", devices: "", watched: "always_" };
const ENDS = ["low", "high", "simultaneous_low", "simultaneous_high"];

// Whose intervals a round has, the ones first that are shown unless the address says otherwise.
export function whoseOf({ sealed, values, mean }) {
  const row = values?.[0] ?? mean ?? {};
  if (!sealed) return "always_low" in row ? ["watched"] : ["devices"];
  return "crowd_low" in row ? ["crowd", "devices"] : ["devices"];
}

// Rows with the intervals of one of them; a row that has none keeps its own.
export function rowsOf(rows, whose) {
  const prefix = PREFIX[whose];
  if (!prefix || !rows) return rows;
  return rows.map((row) => ({ ...row, ...Object.fromEntries(ENDS.filter((end) => prefix + end in row).map((end) => [end, row[prefix + end]])) }));
}

// A round with the intervals of one of them.
export function roundOf(round, whose) {
  const [mean] = rowsOf(round.mean ? [round.mean] : [], whose);
  const [cumulative] = rowsOf(round.cumulative ? [round.cumulative] : [], whose); // its ends are columns
  const [values, categories, quantiles] = [round.values, round.categories, round.quantiles].map((rows) => rowsOf(rows, whose));
  return { ...round, values, categories, quantiles, mean: mean ?? round.mean, cumulative: cumulative ?? round.cumulative };
}
