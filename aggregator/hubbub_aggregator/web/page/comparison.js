// Two rounds of a survey, side by side: what changed, with an interval of the change, or why that cannot be said.

import { el, setText, show } from "./dom.js";
import { isGrouped } from "./facts.js";
import { ShareFigure } from "./figure.js";
import { POINTS, isKnown, quantity, spelled } from "./format.js";

const Z = 1.959964; // of a 95 % interval by the normal law

export class Comparison {
  constructor(go) {
    this.go = go;
    this.first = this.#select("compare-first");
    this.second = this.#select("compare-second");
    const [from, to] = [el("label", { for: "compare-first" }), el("label", { for: "compare-second" })];
    setText(from, "From round");
    setText(to, "to round");
    this.verdict = el("p", { class: "verdict-words" });
    this.said = el("p", { class: "small" });
    this.categories = new ShareFigure("Category", "Change of categories", POINTS);
    this.values = new ShareFigure("Value", "Change of values", POINTS);
    this.figures = el("div", { class: "figures" }, this.categories.element, this.values.element);
    this.element = el("div", { class: "comparison" }, el("p", { class: "pick" }, from, " ", this.first, " ", to, " ", this.second),
      this.verdict, this.figures, this.said);
  }

  #select(id) {
    const select = el("select", { id });
    select.addEventListener("change", () => {
      this.go({ ...this.route, against: Number(this.first.value), round: Number(this.second.value) });
    });
    return select;
  }

  update({ survey, round, route, rounds }) {
    this.route = { ...route, survey: survey.digest };
    const second = round.round;
    const known = survey.rounds.map((line) => line.round);
    const before = survey.rounds.filter((line) => line.round < second && !line.suppressed).pop();
    const first = known.includes(route.against) ? route.against : before?.round ?? known.find((number) => number !== second);
    this.#offer(this.first, known, first);
    this.#offer(this.second, known, second);
    const line = survey.rounds.find((each) => each.round === first);
    const other = rounds.get(line);
    const why = other ? refusal(other, round) : "Fetching the other round.";
    show(this.figures, !why);
    show(this.said, !why);
    if (why) {
      setText(this.verdict, why);
      return;
    }
    const memoised = survey.attributes.some(({ kind }) => kind === "static");
    const values = changes(other.values, round.values, memoised);
    const categories = changes(other.categories, round.categories, memoised);
    const grouped = isGrouped(round);
    setText(this.verdict, verdict(other, round, [...(grouped ? categories : []), ...values], memoised));
    show(this.categories.element, grouped);
    this.figures.classList.toggle("single", !grouped);
    this.figures.classList.toggle("few", values.length <= 12);
    if (grouped) this.categories.update(categories);
    this.values.update(values);
    setText(this.said, memoised
      ? "Answers to this survey are memoised: a device in both rounds sent the same answer twice, so the rounds share noise. The intervals here add the two standard errors, which is never too narrow, whatever is shared."
      : "Devices drew fresh noise in each round, so the intervals here are those of a difference of two independent estimates: 1.96 times the root of the sum of the squared standard errors.");
  }

  #offer(select, numbers, chosen) {
    if (select.options.length !== numbers.length) {
      select.replaceChildren(...numbers.map((number) => {
        const option = el("option", { value: number });
        setText(option, String(number + 1));
        return option;
      }));
    }
    if (select.value !== String(chosen)) select.value = String(chosen);
  }
}

// Why two rounds cannot be compared, or "".
function refusal(first, second) {
  if (first.round === second.round) return "A round is compared with another one: choose two.";
  for (const round of [first, second]) {
    if (round.suppressed) return `Round ${round.round + 1} has too few devices for estimates, so nothing can be compared with it.`;
  }
  const labels = (round) => (round.values ?? []).map((row) => row.label).join("\n");
  if (labels(first) !== labels(second)) return "The two rounds do not ask the same.";
  return "";
}

// The change of every cell, from the first round to the second, with its interval.
export function changes(first, second, memoised) {
  return second.map((row, i) => change(first[i], row, memoised));
}

function change(first, second, memoised) {
  const label = { label: second.label, category: second.category };
  if (!isKnown(first) || !isKnown(second)) return { ...label, estimate: null, low: null, high: null };
  const half = Z * (memoised ? first.error + second.error : Math.hypot(first.error, second.error));
  const estimate = second.estimate - first.estimate;
  return { ...label, estimate, low: estimate - half, high: estimate + half };
}

// What the comparison says in a sentence: the mean's change, and how many cells moved beyond their interval.
function verdict(first, second, rows, memoised) {
  const parts = [];
  if (first.mean && second.mean && isKnown(first.mean) && isKnown(second.mean)) {
    const mean = change({ label: "mean", ...first.mean }, { label: "mean", ...second.mean }, memoised);
    parts.push(`The mean changed by ${quantity(mean).text}, from ${quantity(first.mean).text} to ${quantity(second.mean).text}.`);
  }
  const known = rows.filter(isKnown);
  const moved = known.filter((row) => row.low > 0 || row.high < 0);
  const largest = [...moved].sort((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate))[0];
  if (known.length) {
    parts.push(moved.length
      ? `${moved.length} of ${known.length} intervals leave out no change; the largest is ${largest.label}, ${spelled(largest, POINTS).text}. By chance alone at most about one in twenty would.`
      : `None of ${known.length} intervals leaves out no change.`);
  }
  return parts.join(" ");
}
