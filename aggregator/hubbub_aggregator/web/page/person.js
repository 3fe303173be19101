// What can be learned about one person, in words: odds, from the epsilon that is certified of the devices' integers.

import { el, setText, show } from "./dom.js";
import { count, epsilon, plural } from "./format.js";
import { address } from "./route.js";

export class PersonPage {
  constructor() {
    this.heading = el("h2", { class: "page-title", tabindex: -1 });
    setText(this.heading, "What can be learned about one person");
    const texts = [
      "Every device changes its answer at random before anything leaves it. Whoever sees a report, this server and its operator included, can never be sure what its sender's answer was: the odds between any two answers move by at most the factor below, whatever else is known.",
      "The factor is e to the power of the certified epsilon. That epsilon is not a promise: it is computed from the very integers that the devices sample from, and rounded up; so is the factor.",
    ];
    this.list = el("div", { class: "persons" });
    const after = [
      "A device keeps account of everything that it ever answered, and refuses a survey that could take it past its lifetime budget; the page that it shows to its owner says what was asked, sent and learned.",
      "None of this depends on who runs the server. It says nothing of what is learned about a group: that is the purpose of a survey.",
    ];
    const paragraphs = (lines) => lines.map((line) => {
      const p = el("p");
      setText(p, line);
      return p;
    });
    this.sum = el("p");
    this.whole = el("section", { class: "all-surveys" }, el("h3"), this.sum);
    setText(this.whole.firstChild, "All surveys together");
    this.element = el("div", { class: "page card prose-page" }, this.heading, ...paragraphs(texts), this.list, this.whole, ...paragraphs(after));
    this.parts = new Map();
  }

  get title() {
    return "What can be learned about one person";
  }

  update(live) {
    const kept = new Set(live.surveys.map((survey) => survey.digest));
    for (const [digest, part] of [...this.parts]) {
      if (kept.has(digest)) continue;
      part.element.remove();
      this.parts.delete(digest);
    }
    for (const survey of live.surveys) {
      if (!this.parts.has(survey.digest)) {
        const part = new Part(survey.digest);
        this.parts.set(survey.digest, part);
        this.list.append(part.element);
      }
      this.parts.get(survey.digest).update(survey);
    }
    const total = live.surveys.reduce((sum, survey) => sum + inAll(survey), 0);
    show(this.whole, live.surveys.length > 1);
    setText(this.sum, `If one device answers every round of all ${count(live.surveys.length)} surveys: epsilon at most ${epsilon(total)} in sum. ${odds(total)} A device whose lifetime budget is smaller answers fewer of them.`);
  }
}

class Part {
  constructor(digest) {
    this.link = el("a", { href: address({ survey: digest }) });
    this.one = el("p");
    this.all = el("p");
    this.element = el("section", {}, el("h3", {}, this.link), this.one, this.all);
  }

  update(survey) {
    setText(this.link, survey.title || survey.id);
    const { certified } = survey.epsilon;
    setText(this.one, `One report: epsilon at most ${epsilon(certified)}. ${odds(certified)}`);
    const rounds = survey.schedule?.rounds ?? 1;
    setText(this.all, rounds === 1 ? "The survey asks once."
      : isFresh(survey)
        ? `${freshly(survey)}: epsilon at most ${epsilon(inAll(survey))} in sum. ${odds(inAll(survey))}`
        : `It asks in ${plural(rounds, "round", "rounds")}, and the answer is memoised: a device whose value stays sends the same answer each time, and nothing more is learned from it.`);
  }
}

function isFresh({ attributes }) {
  return attributes.some(({ kind }) => kind !== "static");
}

function freshly({ schedule }) {
  const rounds = count(schedule.rounds);
  return schedule.rotation > 1
    ? `All its ${rounds} rounds, of which one device answers one in every ${count(schedule.rotation)} with fresh noise`
    : `All its ${rounds} rounds, if one device answers each with fresh noise`;
}

// The epsilon of all rounds of a survey in sum: one a cycle; a memoised answer is drawn once.
function inAll(survey) {
  const { rounds = 1, rotation = 1 } = survey.schedule ?? {};
  return survey.epsilon.certified * (isFresh(survey) ? Math.ceil(rounds / rotation) : 1);
}

// Odds in words, every number rounded against us.
export function odds(certified) {
  const factor = Math.exp(certified);
  const belief = factor / (1 + factor);
  if (factor > 1000) {
    const power = Math.ceil(certified / Math.LN10);
    return `Odds move by a factor of less than 10 to the power of ${power}: who sees that much can become nearly certain.`;
  }
  const rounded = Math.ceil(factor * 100 * (1 - 1e-12)) / 100;
  const per = Math.ceil(belief * 1000 * (1 - 1e-12)) / 10;
  return `Who held two answers for equally likely, 50 to 50, can afterwards hold one for at most ${per} % likely: odds move by a factor of at most ${rounded}.`;
}
