// One number over the rounds of a survey: the mean, a category or a value, raw with its interval in every round, and a smoothed
// trend beside it, never alone. Time runs to the right; a round without estimates is a gap, and has a row in the table.

import { now } from "./clock.js";
import { el, offer, setText, show } from "./dom.js";
import { isGrouped } from "./facts.js";
import { ShareFigure } from "./figure.js";
import { PERCENT, PLAIN, began, fixed, isKnown, plural, spelled } from "./format.js";
import { stageOf, unanswered } from "./states.js";
import { rowsOf, whoseOf } from "./whose.js";

const MOST_ROUNDS = 2000; // drawn, the newest; the API has the others
const NUMBERS = ["estimate", "low", "high", "trend"];
const NOTHING = { estimate: null, low: null, high: null };
const WHY = { withheld: "too few devices", collecting: "no estimates yet", nobody: "nobody answered" };

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
    offer(this.choice, cells.map(({ key, name }) => [key, name]));
    const key = cells.some((cell) => cell.key === route.cell) ? route.cell : cells[0]?.key;
    if (key && this.choice.value !== key) this.choice.value = key;
    const past = key ? this.#past(survey, key, answers) : null;
    const items = key ? itemsOf(survey, round, key, past, rounds) : [];
    const known = items.some(isKnown);
    show(this.figure.element, known);
    const mean = key === "mean";
    if (known) this.figure.update(items, { form: "points", unit: mean ? PLAIN : PERCENT, zero: !mean, title: cells.find((cell) => cell.key === key).name });
    const smoothed = items.some((item) => Number.isFinite(item.trend));
    show(this.legend, smoothed);
    if (smoothed) setText(this.legendText, `Smoothed: a local level, each averaging about ${fixed(past.line.bandwidth, 1)} rounds. A view for the eye beside the raw numbers: biased where the truth jumps, and not for tests.`);
    setText(this.said, known ? wordsOf(items, past, smoothed, mean ? PLAIN : PERCENT) : "No round has estimates yet.");
  }

  // The cell in every release, with its trend, as the API's history says; null until it came.
  #past(survey, key, answers) {
    if (!survey.rounds.some((line) => line.sealed && !line.suppressed)) return null;
    const at = key.indexOf(":");
    const named = at < 0 ? `kind=${key}` : `kind=${key.slice(0, at)}&label=${encodeURIComponent(key.slice(at + 1))}`;
    const found = answers.get(`api/v1/surveys/${survey.digest}/history?${named}`, sealedKey(survey))?.document;
    const line = found && (found.mean ?? found.values[0] ?? found.categories[0]);
    return line ? { ...found, line } : null;
  }
}

// One item for every round: of releases by the API's history, of open rounds from their own documents.
function itemsOf(survey, round, key, past, rounds) {
  const lines = new Map(survey.rounds.map((line) => [line.round, line]));
  const places = new Map((past?.rounds ?? []).map((number, place) => [number, place]));
  const silent = new Set(unanswered(survey, now()));
  const numbers = [...lines.keys(), ...places.keys(), ...silent];
  const last = Math.max(...numbers);
  const items = [];
  for (let number = Math.max(Math.min(...numbers), last + 1 - MOST_ROUNDS); number <= last; number += 1) {
    const line = lines.get(number);
    const stage = line ? stageOf(line) : silent.has(number) ? "nobody" : places.has(number) ? "sealed" : "";
    const place = places.get(number);
    const whole = !line || line.suppressed ? null : number === round.round && round.values ? round : line.sealed ? null : rounds.get(line);
    const row = place !== undefined && stage === "sealed" ? Object.fromEntries(NUMBERS.map((name) => [name, past.line[name]?.[place] ?? null]))
      : whole && cellOf(whole, key);
    items.push({ ...NOTHING, why: WHY[stage] ?? "no estimates", ...row, ...placeOf(survey, number, stage) });
  }
  return items;
}

// Where a round stands: its number for people, when it began, its stage.
function placeOf({ schedule }, number, stage) {
  const label = String(number);
  const begins = schedule ? Date.parse(schedule.start) / 1000 + (number - 1) * schedule.round_s : number;
  const tick = schedule ? began(begins, schedule.round_s) : label;
  const said = ["", `Round ${label}`, tick, ...(stage === "provisional" ? [stage] : [])].filter(Boolean).join(", ");
  return { label, begins, tick, said, category: null, open: stage === "provisional", stage: WHY[stage] ? stage.replace("nobody", "unanswered") : stage };
}

// What is drawn, and what is not.
function wordsOf(items, past, smoothed, unit) {
  const whose = !past ? "" : past.of === "crowd" ? ", of everybody who could have been asked" : ", of the devices counted";
  const parts = [`Each round by itself, raw and unbiased, with its 95 % interval${whose}.`];
  if (items.some((item) => item.open)) parts.push("A hollow point is provisional: its round is still counting.");
  const all = past?.so_far?.rounds.length > 1 && (past.so_far.mean ?? past.so_far.values[0] ?? past.so_far.categories[0]);
  if (all && all.low.at(-1) !== null) {
    const [estimate, low, high] = NUMBERS.slice(0, 3).map((name) => all[name].at(-1));
    parts.push(`All reports so far, whichever round: ${spelled({ estimate, low, high }, unit).text}; this holds at every look.`);
  }
  if (past && !smoothed && past.line.estimate.length > 1) parts.push(`${past.smoothed[0].toUpperCase()}${past.smoothed.slice(1)}.`);
  const gaps = items.filter((item) => !isKnown(item)).length;
  if (gaps) parts.push(`${plural(gaps, "round has", "rounds have")} no estimates: the table says why.`);
  const older = Number(items[0].label) - 1;
  if (older > 0) parts.push(`${plural(older, "older round is", "older rounds are")} in the API.`);
  return parts.join(" ");
}

// The releases that a history is made of, as a key: the list of rounds is cut, so that their number alone may stand still.
function sealedKey({ rounds, rounds_omitted: omitted }) {
  const sealed = rounds.filter((line) => line.sealed);
  return `${omitted ?? 0} ${sealed.length} ${sealed.at(-1)?.round}`;
}

// What can be followed: the mean, the categories where there are any, the values.
function cellsOf(round) {
  const cells = round.mean && isKnown(round.mean) ? [{ key: "mean", name: "Mean" }] : [];
  const { values, categories } = { values: round.values ?? [], categories: round.categories ?? [] };
  if (isGrouped({ values, categories })) for (const { label } of categories) cells.push({ key: `category:${label}`, name: `Category ${label}` });
  for (const { label } of values) cells.push({ key: `value:${label}`, name: `Value ${label}` });
  return cells;
}

function cellOf(round, key) {
  const [of] = whoseOf(round);
  if (key === "mean") return round.mean && isKnown(round.mean) ? { label: "mean", ...rowsOf([round.mean], of)[0] } : null;
  const at = key.indexOf(":");
  const rows = key.slice(0, at) === "category" ? round.categories : round.values;
  const row = rows?.find((each) => each.label === key.slice(at + 1));
  return row ? rowsOf([row], of)[0] : null;
}
