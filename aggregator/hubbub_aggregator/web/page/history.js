// One number over the rounds of a survey: the mean, a category or a value, raw with its interval in every round, and a smoothed
// trend beside it, never alone.

import { el, setText, show } from "./dom.js";
import { isGrouped } from "./facts.js";
import { ShareFigure } from "./figure.js";
import { PERCENT, PLAIN, count, fixed, isKnown, plural } from "./format.js";

const MOST_ROUNDS = 60; // drawn, the newest; the API has the others
const NUMBERS = ["estimate", "low", "high", "trend"];

export class History {
  constructor(go) {
    this.go = go;
    this.choice = el("select", { id: "history-cell" });
    this.choice.addEventListener("change", () => this.go({ ...this.route, cell: this.choice.value }));
    const label = el("label", { for: "history-cell" });
    setText(label, "What to follow");
    this.said = el("p", { class: "small" });
    this.figure = new ShareFigure("Round", "Rounds");
    this.legendText = el("span");
    this.legend = el("p", { class: "legend small" }, el("span", { class: "trend-key", "aria-hidden": "true" }), this.legendText);
    this.element = el("div", { class: "history" }, el("p", { class: "pick" }, label, " ", this.choice), this.figure.element, this.legend, this.said);
  }

  update({ survey, round, route, rounds, answers }) {
    this.route = { ...route, survey: survey.digest };
    const cells = cellsOf(round);
    show(this.choice.parentElement, cells.length > 0);
    this.#offer(cells);
    const key = cells.some((cell) => cell.key === route.cell) ? route.cell : cells[0]?.key;
    if (key && this.choice.value !== key) this.choice.value = key;
    const listed = survey.rounds.filter((line) => !line.suppressed);
    const lines = listed.slice(-MOST_ROUNDS);
    const { items, past } = key ? this.#items(survey, round, key, lines, { rounds, answers }) : { items: [] };
    show(this.figure.element, items.length > 0);
    const mean = key === "mean";
    if (items.length) this.figure.update(items, { unit: mean ? PLAIN : PERCENT, zero: !mean, title: cells.find((cell) => cell.key === key).name });
    const smoothed = items.some((item) => Number.isFinite(item.trend));
    show(this.legend, smoothed);
    if (smoothed) setText(this.legendText, `Smoothed: a local level, each averaging about ${fixed(past.line.bandwidth, 1)} rounds. A view for the eye beside the raw numbers: biased where the truth jumps, and not for tests.`);
    const withheld = survey.rounds.length - listed.length;
    const parts = [items.length ? "Each round by itself, raw and unbiased, with its 95 % interval." : "No round has estimates yet."];
    if (past && !smoothed && past.line.estimate.length > 1) parts.push(`${past.smoothed[0].toUpperCase()}${past.smoothed.slice(1)}.`);
    if (withheld) parts.push(`${count(withheld)} of the rounds listed ${withheld === 1 ? "has" : "have"} too few devices for estimates.`);
    const older = listed.length - lines.length + (survey.rounds_omitted ?? 0);
    if (older) parts.push(`${plural(older, "older round is", "older rounds are")} in the API.`);
    setText(this.said, parts.join(" "));
  }

  // The cell in every round: of releases by the API's history, with its trend; of open rounds from their own documents.
  #items(survey, round, key, lines, { rounds, answers }) {
    const sealed = lines.filter((line) => line.sealed).length;
    const at = key.indexOf(":");
    const named = at < 0 ? `kind=${key}` : `kind=${key.slice(0, at)}&label=${encodeURIComponent(key.slice(at + 1))}`;
    const found = sealed ? answers.get(`api/v1/surveys/${survey.digest}/history?${named}`, sealedKey(survey)) : null;
    const document_ = found?.document;
    const past = document_ ? { ...document_, line: document_.mean ?? document_.values[0] ?? document_.categories[0] } : null;
    const items = lines.flatMap((line) => {
      const place = past?.line && line.sealed ? past.rounds.indexOf(line.round) : -1;
      const whole = line.round === round.round && round.values ? round : line.sealed ? null : rounds.get(line);
      const row = place >= 0 ? Object.fromEntries(NUMBERS.map((name) => [name, past.line[name]?.[place] ?? null])) : whole && cellOf(whole, key);
      return row ? [{ ...row, category: null, label: `${line.round + 1}${line.sealed ? "" : ", provisional"}` }] : [];
    });
    return { items, past: past?.line ? past : null };
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

// The releases that a history is made of, as a key: the list of rounds is cut, so that their number alone may stand still.
function sealedKey({ rounds, rounds_omitted: omitted }) {
  const sealed = rounds.filter((line) => line.sealed);
  return `${omitted ?? 0} ${sealed.length} ${sealed.at(-1)?.round}`;
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
