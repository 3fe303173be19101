// All surveys: a card each that says where the survey stands and its main numbers, and leads to its page.

import { now } from "./clock.js";
import { el, setText, show } from "./dom.js";
import { Facts, isGrouped } from "./facts.js";
import { count, isKnown } from "./format.js";
import { placeOnLabels } from "./profile.js";
import { address } from "./route.js";
import { RowChart } from "./rows.js";
import { BADGES, roundWords, sentence, stageOf, surveyState } from "./states.js";

const MOST_BARS = 8; // more shares than this are for the survey's own page
const LARGEST = 5; // of labels, shown in their place

export class Overview {
  constructor() {
    this.cards = new Map();
    this.empty = el("p", { class: "empty" });
    this.grid = el("div", { class: "overview" });
    const title = el("h2", { class: "page-title", tabindex: -1 });
    setText(title, "All surveys");
    this.element = el("div", { class: "page" }, title, this.grid, this.empty);
    this.heading = title;
  }

  get title() {
    return "All surveys";
  }

  update(live) {
    const kept = new Set(live.surveys.map((survey) => survey.digest));
    for (const [digest, card] of [...this.cards]) {
      if (kept.has(digest)) continue;
      card.element.remove();
      this.cards.delete(digest);
    }
    live.surveys.forEach((survey, i) => {
      let card = this.cards.get(survey.digest);
      if (!card) {
        card = new Brief(survey.digest);
        this.cards.set(survey.digest, card);
      }
      const { children } = this.grid;
      if (children[i] !== card.element) this.grid.insertBefore(card.element, children[i] ?? null);
      card.update(survey);
    });
    show(this.empty, live.surveys.length === 0);
    setText(this.empty, "No survey has been published yet. The first one appears here by itself.");
  }

  tick() {
    for (const card of this.cards.values()) card.tick();
  }
}

class Brief {
  constructor(digest) {
    this.link = el("a", { href: address({ survey: digest }) });
    const title = el("h3", { id: `title-${digest}` }, this.link);
    this.origin = el("p", { class: "origin" });
    this.badge = el("span", { class: "badge" });
    this.moment = el("b", { class: "moment" });
    this.state = el("span", { class: "state" });
    this.facts = new Facts();
    this.place = el("div", { class: "figures single few" });
    this.left = el("p", { class: "small" });
    this.element = el("article", { class: "card brief", id: `survey-${digest}`, "aria-labelledby": title.id },
      el("header", {}, el("div", { class: "names" }, title, this.origin), el("div", { class: "status" }, this.badge)),
      el("p", { class: "states" }, this.moment, " ", this.state), this.facts.element, this.place, this.left);
  }

  update(survey) {
    this.survey = survey;
    setText(this.link, survey.title || survey.id);
    setText(this.origin, `${survey.id} · version ${survey.version}`);
    this.facts.update(survey, survey.shown);
    this.tick();
    const { rows, of } = mainRows(survey.shown);
    show(this.place, rows.length > 0);
    show(this.left, of > rows.length);
    if (!rows.length) return;
    setText(this.left, `The ${rows.length} largest of ${count(of)}.`);
    if (!this.chart) {
      this.chart = new RowChart("Shares");
      this.place.append(this.chart.element);
    }
    this.chart.update(rows, `${rows.length} estimates with 95 % intervals, in per cent of devices; the survey's page has them as a table.`);
  }

  tick() {
    const { survey } = this;
    const { name, words } = surveyState(survey, now());
    const stage = survey.shown ? stageOf(survey.shown) : name;
    this.element.dataset.stage = stage;
    setText(this.badge, BADGES[stage]);
    setText(this.moment, sentence(words));
    setText(this.state, survey.shown ? roundWords(survey, survey.shown) : "");
  }
}

// The few shares that stand for a round: its categories where it has some, else its values; of many labels the largest, since
// single numbers of many say little. "missing" is among the facts, and no answer.
function mainRows(round) {
  const values = round?.values ?? [];
  if (!values.length || round.suppressed) return { rows: [], of: 0 };
  const all = isGrouped({ values, categories: round.categories }) ? round.categories : values;
  if (all.length <= MOST_BARS) return { rows: all, of: all.length };
  const known = placeOnLabels(all) ? [] : all.filter((row) => isKnown(row) && row.label !== "missing");
  return { rows: known.sort((a, b) => b.estimate - a.estimate).slice(0, LARGEST), of: known.length };
}
