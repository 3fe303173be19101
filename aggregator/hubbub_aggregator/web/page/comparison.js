// Two rounds side by side, of one survey or of two that ask the same: what changed, with the intervals that the API gives the
// change, or why that cannot be said.

import { stateKey } from "./answers.js";
import { el, offer, setText, show } from "./dom.js";
import { isGrouped } from "./facts.js";
import { ShareFigure } from "./figure.js";
import { POINTS, isKnown, plural, quantity, spelled } from "./format.js";

export class Comparison {
  constructor(go) {
    this.go = go;
    this.first = this.#select("compare-first", () => ({ against: Number(this.first.value), round: Number(this.second.value) }));
    this.second = this.#select("compare-second", () => ({ against: Number(this.first.value), round: Number(this.second.value) }));
    this.origin = this.#select("compare-origin", () => ({ from: this.origin.value || undefined, against: undefined }));
    const label = (select, words) => {
      const node = el("label", { for: select.id });
      setText(node, words);
      return node;
    };
    this.of = el("span", { class: "pick" }, label(this.origin, "of"), this.origin);
    this.verdict = el("p", { class: "verdict-words" });
    this.said = el("p", { class: "small" });
    this.categories = new ShareFigure("Category", "Change of categories", POINTS);
    this.values = new ShareFigure("Value", "Change of values", POINTS);
    this.figures = el("div", { class: "figures" }, this.categories.element, this.values.element);
    this.element = el("div", { class: "comparison" },
      el("p", { class: "pick" }, label(this.first, "From round"), this.first, this.of, label(this.second, "to round"), this.second),
      this.verdict, this.figures, this.said);
  }

  #select(id, choice) {
    const select = el("select", { id });
    select.addEventListener("change", () => this.go({ ...this.route, ...choice() }));
    return select;
  }

  update({ survey, round, line, route, answers, surveys }) {
    this.route = { ...route, survey: survey.digest };
    const others = surveys.filter((each) => each !== survey && each.rounds.length);
    const origin = others.find((each) => each.digest === route.from) ?? survey;
    const known = origin.rounds.map((each) => each.round);
    const first = known.includes(route.against) ? route.against : usual(origin, survey, round.round);
    show(this.of, others.length > 0);
    choose(this.origin, [["", "this survey"], ...others.map((each) => [each.digest, each.title || each.id])], origin === survey ? "" : origin.digest);
    choose(this.first, numbered(known), first);
    choose(this.second, numbered(survey.rounds.map((each) => each.round)), round.round);
    const earlier = origin.rounds.find((each) => each.round === first);
    const why = refusal(origin, earlier, survey, line);
    const from = origin === survey ? "" : `&from=${origin.digest}`;
    const answer = why ? null : answers.get(`api/v1/surveys/${survey.digest}/change?before=${first}&after=${line.round}${from}&stage=all`,
      `${stateKey(earlier)} ${stateKey(line)}`);
    show(this.figures, Boolean(answer?.document));
    show(this.said, Boolean(answer?.document));
    if (!answer?.document) setText(this.verdict, why || (answer ? sentence(answer.problem) : "Fetching the change."));
    else this.#draw(answer.document, round);
  }

  #draw(change, round) {
    const values = change.values.map((row, i) => ({ ...row, category: round.values?.[i]?.category ?? null }));
    const grouped = isGrouped(change);
    setText(this.verdict, verdict(change, grouped));
    setText(this.said, grounds(change));
    show(this.categories.element, grouped);
    show(this.values.element, values.length > 0);
    this.figures.classList.toggle("single", !grouped);
    this.figures.classList.toggle("few", values.length <= 12);
    if (grouped) this.categories.update(change.categories);
    if (values.length) this.values.update(values);
  }
}

function numbered(rounds) {
  return rounds.map((number) => [String(number), String(number)]);
}

function choose(select, options, chosen) {
  offer(select, options);
  if (select.value !== String(chosen)) select.value = String(chosen);
}

// The round that one is compared with unless the address says otherwise: the one before it with estimates, or, of another
// survey, the newest.
function usual(origin, survey, number) {
  const shown = origin.rounds.filter((line) => !line.suppressed);
  if (origin !== survey) return (shown.pop() ?? origin.rounds[origin.rounds.length - 1]).round;
  return shown.filter((line) => line.round < number).pop()?.round ?? origin.rounds.find((line) => line.round !== number)?.round;
}

// Why two rounds cannot be compared, or "": what the page knows without asking. Attributes and cells are the API's to judge.
function refusal(origin, earlier, survey, line) {
  if (!earlier) return "This survey has one round: choose a round of another survey.";
  if (origin === survey && earlier.round === line.round) return "A round is compared with another one: choose two.";
  for (const each of [earlier, line]) {
    if (each.suppressed) return `Round ${each.round} has too few devices for estimates, so nothing can be compared with it.`;
  }
  return "";
}

function sentence({ detail }) {
  return `These two rounds cannot be compared: ${detail}.`;
}

// What the comparison says: the mean's change, and which cells changed by more than noise, all of them looked at together.
function verdict({ mean, values, categories }, grouped) {
  const parts = [];
  if (mean && isKnown(mean)) parts.push(`The mean changed by ${quantity(mean).text}, ${mean.differs ? "more than" : "within"} its noise.`);
  const rows = [...(grouped ? categories : []), ...values].filter(isKnown);
  const moved = rows.filter((row) => row.differs);
  const largest = [...moved].sort((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate))[0];
  if (moved.length) parts.push(`${moved.length} of ${rows.length} cells changed by more than noise, taken together; the largest change is ${largest.label}, ${spelled(largest, POINTS).text}.`);
  else if (rows.length) parts.push(`None of ${rows.length} cells changed by more than noise, taken together.`);
  return parts.join(" ");
}

// What the intervals rest on.
function grounds({ before, after, answers, shared }) {
  const each = "Each whisker is the 95 % interval of its own change.";
  if (before.digest !== after.digest) return `${each} Two surveys draw noise of their own, so the errors of the two are independent. Whether the same people were asked is not known here.`;
  if (answers === "fresh") return `${each} Devices drew fresh noise in each round, so the errors of the two are independent.`;
  if (shared) return `${each} Answers are memoised: a device in both rounds sent the same answer twice. At least ${plural(shared, "device is", "devices are")} in both, and their noise cancels, which narrows the intervals.`;
  return `${each} Answers are memoised: a device in both rounds sent the same answer twice. How many are in both is not known, so the intervals are those of independent rounds, which are never too narrow.`;
}
