// Statistics of tables: whether attributes are independent, and what one says within another's groups.

import { stateKey } from "./answers.js";
import { el, offer, setText, show } from "./dom.js";
import { POINTS, fixed, isKnown, quantity, share, spelled } from "./format.js";
import { TextTable } from "./texttable.js";

// Every kind of the API: its caption, the columns that name a row, the head of its number, and how that is written.
const KINDS = {
  conditional: ["Shares within groups", ["Group", "Reading"], "Share", share],
  mean: ["Means within groups", ["Group"], "Mean", quantity],
  difference: ["Differences between groups", ["Group", "Reading"], "Difference", (row) => spelled(row, POINTS)],
  odds_ratio: ["Odds ratios", ["Group", "Reading"], "Odds ratio", quantity],
  reweighted: ["Shares by a census", ["Reading"], "Share", share],
  regression: ["Least squares", ["Regressor"], "Coefficient", quantity],
};

export class Statistics {
  constructor(answers, onChoice) {
    this.answers = answers;
    this.title = el("h3", { class: "quiet-title" });
    setText(this.title, "Statistics of the table");
    this.pairs = new TextTable("Are they independent?", ["Attributes", "Adjusted p", "Cramér's V", "95 % interval", "Note"], [0, 4]);
    this.kind = el("select", { "aria-label": "Statistic shown" });
    offer(this.kind, Object.entries(KINDS).map(([kind, [caption]]) => [kind, caption]));
    this.choice = el("select", { "aria-label": "Attributes shown" });
    this.on = el("span", { role: "group", "aria-label": "Attributes that explain" });
    this.census = el("textarea", { "aria-label": "Census, a line reading,share for each reading", rows: 4, cols: 30 });
    for (const node of [this.kind, this.choice, this.on, this.census]) node.addEventListener("change", onChoice);
    this.tables = Object.fromEntries(Object.entries(KINDS).map(([kind, [caption, names, head]]) =>
      [kind, new TextTable(caption, [...names, head, "95 % interval", "Note"], [...names.keys(), names.length + 2])]));
    this.problem = el("p", { class: "small", role: "status" });
    [this.csv, this.tests] = [el("a"), el("a")];
    setText(this.csv, "CSV");
    setText(this.tests, "CSV of the tests");
    this.foot = el("p", { class: "small" },
      "Of everybody who could have been asked, if those who answered are like a random part of them. p-values are of all pairs together (Holm). ", this.csv, ", ", this.tests);
    this.element = el("section", { class: "statistics", "aria-label": "Statistics of the table" },
      this.title, this.pairs.element, el("p", { class: "pick" }, this.kind, this.choice, this.on, this.census), this.problem,
      ...Object.values(this.tables).map((table) => table.element), this.foot);
  }

  update(survey, round, line) {
    const known = Boolean(survey.table) && !round.suppressed && Boolean(round.values?.length || round.values_omitted);
    const paired = known && survey.table.tables.some((members) => members.length > 1);
    show(this.element, paired);
    if (!paired) return;
    offer(this.choice, together(survey.table));
    const base = `api/v1/surveys/${survey.digest}/rounds/${round.round}/statistics`;
    this.tests.href = `${base}.csv`;
    this.pairs.update(this.#rows(base, line).map((row) => [`${row.of}, ${row.given}`, chance(row.p_value), ...strength(row), row.note]));
    const kind = this.kind.value;
    const asked = new URLSearchParams({ kind, ...this.#asked(survey.table, kind) });
    this.csv.href = `${base}.csv?${asked}`;
    const rows = this.#rows(`${base}?${asked}`, line);
    const [, names, , written] = KINDS[kind];
    for (const [each, table] of Object.entries(this.tables)) {
      table.update(each === kind ? rows.map((row) => [...names.map((name) => row[name === "Group" ? "group" : "reading"] ?? "–"), ...numbers(row, written), row.note]) : []);
    }
    const { problem } = this.answers.get(`${base}?${asked}`, stateKey(line)) ?? {};
    setText(this.problem, problem ? `This cannot be said: ${problem.detail}.` : "");
    show(this.problem, Boolean(problem));
  }

  // The parameters of a kind, from what is chosen. What was written of a census or ticked stays until other attributes are chosen.
  #asked({ attributes }, kind) {
    const [of, given] = JSON.parse(this.choice.value);
    show(this.on, kind === "regression");
    show(this.census, kind === "reweighted");
    if (this.chosen !== this.choice.value) {
      this.chosen = this.choice.value;
      const { readings } = attributes.find(({ id }) => id === given);
      this.census.value = readings.map((reading) => `${field(reading)},${1 / readings.length}\n`).join("");
      this.on.replaceChildren(...attributes.filter(({ id }) => id !== of).map(({ id }) => {
        const box = el("input", { type: "checkbox", value: id, checked: id === given });
        return el("label", {}, box, ` ${id} `);
      }));
    }
    if (kind === "reweighted") return { of, given, census: this.census.value };
    if (kind !== "regression") return { of, given };
    return { of, on: [...this.on.querySelectorAll("input:checked")].map(({ value }) => value).join(",") };
  }

  #rows(address, line) {
    return this.answers.get(address, stateKey(line))?.document?.rows ?? [];
  }
}

// Every two attributes that are in a table together, as values and texts of a choice.
function together({ attributes, tables }) {
  const ids = attributes.map(({ id }) => id);
  const both = (i, j) => i !== j && tables.some((members) => members.includes(i) && members.includes(j));
  return ids.flatMap((of, i) => ids.filter((_, j) => both(i, j)).map((given) => [JSON.stringify([of, given]), `${of} within ${given}`]));
}

// A text as a field of CSV.
function field(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function chance(p) {
  if (p === null) return "–"; // of a table that no report told
  return p < 0.001 ? "below 0.001" : fixed(p, 3);
}

function strength(row) {
  return row.low === null ? ["–", "–"] : [row.estimate === null ? "–" : fixed(row.estimate, 2), `${fixed(row.low, 2)} to ${fixed(row.high, 2)}`];
}

// The number of a row and its interval, of which one end may be as far away as can be.
function numbers(row, written) {
  if (row.low !== null && row.high === null) return [row.estimate === null ? "–" : fixed(row.estimate, 2), `${fixed(row.low, 2)} and above`];
  if (!isKnown(row)) return ["–", "–"];
  const { estimate, interval } = written(row);
  return [estimate, interval];
}
