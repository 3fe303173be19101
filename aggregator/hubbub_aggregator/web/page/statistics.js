// Statistics of tables: whether attributes are independent, and the shares of one within another's groups.

import { stateKey } from "./answers.js";
import { el, setText, show } from "./dom.js";
import { fixed, isKnown, share } from "./format.js";
import { TextTable } from "./texttable.js";

export class Statistics {
  constructor(answers, onChoice) {
    this.answers = answers;
    this.title = el("h3", { class: "quiet-title" });
    setText(this.title, "Statistics of the table");
    this.pairs = new TextTable("Are they independent?", ["Attributes", "Adjusted p", "Cramér's V", "95 % interval", "Note"], [0, 4]);
    this.choice = el("select", { "aria-label": "Shares shown" });
    this.choice.addEventListener("change", onChoice);
    this.shares = new TextTable("Shares within groups", ["Group", "Reading", "Share", "95 % interval", "Note"], [0, 1, 4]);
    this.csv = el("a");
    setText(this.csv, "CSV");
    this.foot = el("p", { class: "small" },
      "Of everybody who could have been asked, if those who answered are like a random part of them. p-values are of all pairs together (Holm). ", this.csv);
    this.element = el("section", { class: "statistics", "aria-label": "Statistics of the table" },
      this.title, this.pairs.element, this.choice, this.shares.element, this.foot);
  }

  update(survey, round, line) {
    const known = Boolean(survey.table) && !round.suppressed && Boolean(round.values?.length || round.values_omitted);
    const paired = known && survey.table.tables.some((members) => members.length > 1);
    show(this.element, paired);
    if (!paired) return;
    this.#offer(survey.table);
    const base = `api/v1/surveys/${survey.digest}/rounds/${round.round}/statistics`;
    const [of, given] = JSON.parse(this.choice.value);
    const asked = `kind=conditional&of=${encodeURIComponent(of)}&given=${encodeURIComponent(given)}`;
    this.csv.href = `${base}.csv?${asked}`;
    this.pairs.update(this.#rows(base, line).map((row) => [`${row.of}, ${row.given}`, chance(row.p_value), ...strength(row), row.note]));
    this.shares.update(this.#rows(`${base}?${asked}`, line).map((row) => [row.group, row.reading, ...shareOf(row), row.note]));
  }

  // Every two attributes that are in a table together.
  #offer({ attributes, tables }) {
    const ids = attributes.map(({ id }) => id);
    const together = (i, j) => i !== j && tables.some((members) => members.includes(i) && members.includes(j));
    const texts = ids.flatMap((of, i) => ids.filter((_, j) => together(i, j)).map((given) => [JSON.stringify([of, given]), `${of} within ${given}`]));
    if (texts.length === this.choice.options.length && texts.every(([value], i) => this.choice.options[i].value === value)) return;
    this.choice.replaceChildren(...texts.map(([value, text]) => {
      const option = el("option", { value });
      setText(option, text);
      return option;
    }));
  }

  #rows(address, line) {
    return this.answers.get(address, stateKey(line))?.document?.rows ?? [];
  }
}

function chance(p) {
  return p < 0.001 ? "below 0.001" : fixed(p, 3);
}

function strength(row) {
  return row.low === null ? ["–", "–"] : [row.estimate === null ? "–" : fixed(row.estimate, 2), `${fixed(row.low, 2)} to ${fixed(row.high, 2)}`];
}

function shareOf(row) {
  if (!isKnown(row)) return ["–", "–"];
  const { estimate, interval } = share(row);
  return [estimate, interval];
}
