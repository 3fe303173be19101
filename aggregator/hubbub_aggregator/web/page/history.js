// One number over the rounds of a survey: the mean, a category or a value, with its interval in every round.

import { el, setText, show } from "./dom.js";
import { isGrouped } from "./facts.js";
import { ShareFigure } from "./figure.js";
import { PERCENT, PLAIN, count, isKnown } from "./format.js";

const MOST_ROUNDS = 60; // fetched and drawn, the newest; the API has the others

export class History {
  constructor(go) {
    this.go = go;
    this.choice = el("select", { id: "history-cell" });
    this.choice.addEventListener("change", () => this.go({ ...this.route, cell: this.choice.value }));
    const label = el("label", { for: "history-cell" });
    setText(label, "What to follow");
    this.said = el("p", { class: "small" });
    this.figure = new ShareFigure("Round", "Rounds");
    this.element = el("div", { class: "history" }, el("p", { class: "pick" }, label, " ", this.choice), this.figure.element, this.said);
  }

  update({ survey, round, route, rounds }) {
    this.route = { ...route, survey: survey.digest };
    const cells = cellsOf(round);
    show(this.choice.parentElement, cells.length > 0);
    this.#offer(cells);
    const key = cells.some((cell) => cell.key === route.cell) ? route.cell : cells[0]?.key;
    if (key && this.choice.value !== key) this.choice.value = key;
    const lines = survey.rounds.filter((line) => !line.suppressed).slice(-MOST_ROUNDS);
    const found = lines.map((line) => {
      const known = line.round === round.round && round.values ? round : rounds.get(line);
      return { line, row: known && key ? cellOf(known, key) : null };
    });
    const items = found.filter(({ row }) => row).map(({ line, row }) => ({
      ...row, category: null, label: `${line.round + 1}${line.sealed ? "" : ", provisional"}`,
    }));
    show(this.figure.element, items.length > 0);
    const mean = key === "mean";
    if (items.length) this.figure.update(items, { unit: mean ? PLAIN : PERCENT, zero: !mean, title: cells.find((cell) => cell.key === key).name });
    const withheld = survey.rounds.filter((line) => line.suppressed).length;
    const parts = [items.length ? "Each round by itself, raw and unbiased, with its 95 % interval; no smoothing." : "No round has estimates yet."];
    if (withheld) parts.push(`${count(withheld)} of the rounds listed ${withheld === 1 ? "has" : "have"} too few devices for estimates.`);
    const older = survey.rounds.filter((line) => !line.suppressed).length - lines.length + (survey.rounds_omitted ?? 0);
    if (older) parts.push(`${count(older)} older rounds are in the API.`);
    setText(this.said, parts.join(" "));
  }

  #offer(cells) {
    if (cells.map((cell) => cell.key).join("\n") === this.offered) return;
    this.offered = cells.map((cell) => cell.key).join("\n");
    this.choice.replaceChildren(...cells.map(({ key, name }) => {
      const option = el("option", { value: key });
      setText(option, name);
      return option;
    }));
  }
}

// What can be followed: the mean, the categories where there are any, the values.
export function cellsOf(round) {
  const cells = round.mean && isKnown(round.mean) ? [{ key: "mean", name: "Mean" }] : [];
  const { values, categories } = { values: round.values ?? [], categories: round.categories ?? [] };
  if (isGrouped({ values, categories })) for (const { label } of categories) cells.push({ key: `category:${label}`, name: `Category ${label}` });
  for (const { label } of values) cells.push({ key: `value:${label}`, name: `Value ${label}` });
  return cells;
}

export function cellOf(round, key) {
  if (key === "mean") return round.mean && isKnown(round.mean) ? { label: "mean", ...round.mean } : null;
  const at = key.indexOf(":");
  const rows = key.slice(0, at) === "category" ? round.categories : round.values;
  return rows?.find((row) => row.label === key.slice(at + 1)) ?? null;
}
