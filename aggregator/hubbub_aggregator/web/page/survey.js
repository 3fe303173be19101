// One survey: its state, the round that is shown, its facts, and the views of it.

import { Alerts } from "./alerts.js";
import { Answers } from "./answers.js";
import { now } from "./clock.js";
import { Comparison } from "./comparison.js";
import { Distribution } from "./distribution.js";
import { el, setText, show } from "./dom.js";
import { Downloads } from "./downloads.js";
import { Facts, absenceIn, leastForged, lostIn } from "./facts.js";
import { count, isKnown, plural } from "./format.js";
import { History } from "./history.js";
import { Identity } from "./identity.js";
import { Recounts } from "./recounts.js";
import { Rounds } from "./rounds.js";
import { VIEWS, address } from "./route.js";
import { BADGES, roundWords, sentence, stageOf, surveyState, unanswered } from "./states.js";
import { Statistics } from "./statistics.js";

const NEWEST = "newest";
const OLDER = "older"; // a line that cannot be chosen: the live document lists the newest rounds only
const NOBODY = "nobody answered"; // no more can this one
const NAMES = { distribution: "Distribution", history: "Over rounds", comparison: "Two rounds compared" };

export class SurveyPage {
  constructor(digest, go) {
    this.go = go;
    this.answers = new Answers(() => this.#draw());
    this.rounds = new Rounds(this.answers);
    this.heading = el("h2", { id: `title-${digest}`, tabindex: -1 });
    this.origin = el("p", { class: "origin" });
    this.badge = el("span", { class: "badge" });
    this.choice = el("select", { "aria-label": "Round shown" });
    this.choice.addEventListener("change", () => this.#choose());
    this.moment = el("b", { class: "moment" });
    this.state = el("span", { class: "state" });
    this.facts = new Facts();
    this.alerts = new Alerts();
    this.tabs = el("nav", { class: "tabs", "aria-label": "Views of this survey" });
    this.views = { distribution: new Distribution(go), history: new History(go), comparison: new Comparison(go) };
    this.panel = el("div", { class: "panel" });
    this.strength = el("p", { class: "strength small" });
    this.absence = el("p", { class: "absence small" });
    this.recounts = new Recounts();
    this.statistics = new Statistics(this.answers, () => this.#draw());
    this.identity = new Identity();
    this.downloads = new Downloads();
    this.news = el("p", { class: "news small" });
    const accounting = el("h3", { class: "quiet-title" });
    setText(accounting, "Reports of this round");
    this.under = el("div", { class: "under" }, el("div", {}, accounting, this.identity.element),
      this.downloads.element);
    this.element = el("article", { class: "card page", id: `survey-${digest}`, "aria-labelledby": this.heading.id },
      el("header", {}, el("div", { class: "names" }, this.heading, this.origin),
        el("div", { class: "status" }, this.badge, this.choice)),
      el("p", { class: "states" }, this.moment, " ", this.state), this.facts.element, this.alerts.element, this.tabs, this.panel,
      this.strength, this.absence, this.recounts.element, this.statistics.element, this.under, this.news);
  }

  get title() {
    const { survey, line } = this;
    if (!survey) return "Survey";
    return [survey.title || survey.id, ...(line ? [`round ${line.round}`] : [])].join(" · ");
  }

  update(live, route) {
    this.surveys = live.surveys;
    this.survey = live.surveys.find((survey) => survey.digest === this.element.id.slice(7));
    this.route = route;
    this.#draw();
  }

  tick() {
    this.#drawState();
  }

  #draw() {
    const { survey, route } = this;
    if (!survey) return;
    setText(this.heading, survey.title || survey.id);
    setText(this.origin, `${survey.id} · version ${survey.version} · digest ${survey.digest.slice(0, 12)}…`);
    this.origin.title = `The digest of the compiled survey, which every report carries: ${survey.digest}`;
    const line = this.#line();
    this.line = line;
    this.round = line ? this.#found(line) : null;
    this.#offerRounds();
    this.#drawState();
    this.facts.update(survey, this.round);
    this.alerts.update(survey, this.round);
    this.#drawTabs();
    const { round } = this;
    show(this.choice, Boolean(line) && survey.rounds.length > 1);
    for (const node of [this.panel, this.under]) show(node, Boolean(round));
    if (!round) {
      for (const node of [this.strength, this.absence, this.recounts.element, this.statistics.element, this.news, this.tabs]) show(node, false);
      return;
    }
    const name = this.#offered().includes(route.view) ? route.view : VIEWS[0];
    const view = this.views[name];
    if (this.panel.firstChild !== view.element) this.panel.replaceChildren(view.element);
    view.update({ survey, round, line, route, rounds: this.rounds, answers: this.answers, surveys: this.surveys });
    this.#drawUnder(round, line);
  }

  // The line of the round asked for; of the newest with estimates where none is, or none such.
  #line() {
    const { shown, rounds } = this.survey;
    if (!shown) return null;
    return rounds.find((line) => line.round === this.route.round) ?? rounds.find((line) => line.round === shown.round);
  }

  #found(line) {
    const { shown } = this.survey;
    if (line.round !== shown.round) return this.rounds.get(line);
    return shown.values_omitted ? this.rounds.get(line) ?? shown : shown;
  }

  #choose() {
    const { view, show: form, category, cell, against, from } = this.route;
    const round = this.choice.value === NEWEST ? undefined : Number(this.choice.value);
    this.go({ survey: this.survey.digest, view, show: form, category, cell, against, from, round });
  }

  #offerRounds() {
    const { rounds, shown } = this.survey;
    const lines = [...rounds.map((line) => [line.round, stateOf(line)]), ...unanswered(this.survey, now()).map((number) => [number, NOBODY])];
    const texts = lines.sort(([a], [b]) => b - a).map(([number, state]) => [String(number), `Round ${number} · ${state}`]);
    if (shown) texts.unshift([NEWEST, `Newest: round ${shown.round}`]);
    const options = [...this.choice.options];
    if (this.survey.rounds_omitted) texts.push([OLDER, `${count(this.survey.rounds_omitted)} older: /api/v1/surveys`]);
    texts.forEach(([value, text], i) => {
      let option = options[i];
      if (!option) {
        option = el("option");
        this.choice.append(option);
      }
      if (option.value !== value) option.value = value;
      setText(option, text);
      option.disabled = value === OLDER || text.endsWith(NOBODY);
    });
    options.slice(texts.length).forEach((option) => option.remove());
    const asked = rounds.some((line) => line.round === this.route.round) ? String(this.route.round) : NEWEST;
    if (this.choice.value !== asked) this.choice.value = asked;
  }

  #drawState() {
    const { survey, round, line } = this;
    if (!survey) return;
    const { name, words } = surveyState(survey, now());
    const stage = line ? stageOf(round ?? line) : name;
    this.element.dataset.stage = stage;
    setText(this.badge, BADGES[stage]);
    setText(this.moment, sentence(words));
    setText(this.state, round ? roundWords(survey, round) + lostIn(round) : line ? `Fetching round ${line.round}.` : "");
  }

  // The views that this survey has: a history of several rounds, a comparison with them or with a survey of the same attributes.
  #offered() {
    const { survey, surveys, route } = this;
    const ids = ({ attributes }) => attributes.map(({ id }) => id).join("\n");
    const several = survey.rounds.length > 1;
    const related = surveys.some((each) => each !== survey && each.rounds.length && (each.digest === route.from || ids(each) === ids(survey)));
    return VIEWS.filter((view) => view === VIEWS[0] || several || (view === "comparison" && related));
  }

  #drawTabs() {
    const { survey, route } = this;
    const offered = this.#offered();
    show(this.tabs, offered.length > 1);
    while (this.tabs.children.length > offered.length) this.tabs.lastChild.remove();
    offered.forEach((view, i) => {
      const link = this.tabs.children[i] ?? this.tabs.appendChild(el("a"));
      setText(link, NAMES[view]);
      const { round, against, from, cell } = route;
      const href = address({ survey: survey.digest, view, round, ...(view === "comparison" ? { against, from } : {}), ...(view === "history" ? { cell } : {}) });
      if (link.getAttribute("href") !== href) link.setAttribute("href", href);
      if ((route.view ?? VIEWS[0]) === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  }

  #drawUnder(round, line) {
    // The live document has no poison margin; a sealed round is fetched for it once, an open one moves too often.
    const strength = [unsentIn(round), strengthOf(line.sealed ? this.rounds.get(line) ?? round : round)].filter(Boolean).join(" ");
    setText(this.strength, strength);
    show(this.strength, Boolean(strength));
    const absence = absenceIn(round);
    setText(this.absence, absence);
    show(this.absence, Boolean(absence));
    this.recounts.update(this.survey, round, line);
    this.statistics.update(this.survey, round, line);
    this.identity.update(round.accounting);
    this.downloads.update(this.survey, round);
    // A line on the round after the one shown, so that following the newest estimates hides nothing.
    const later = this.survey.rounds.filter((each) => each.round > round.round).pop();
    setText(this.news, later ? `Round ${later.round}: ${stateOf(later)}.` : "");
    show(this.news, Boolean(later));
  }
}

// How far items' true shares may be above those shown, of a survey of sets that asks who has more items than count.
function unsentIn({ categories, values }) {
  const row = values?.at(-2);
  if (categories?.length !== 0 || !row || !isKnown(row) || !/^more than \d+$/.test(row.label)) return "";
  const [most, noisy] = [row.estimate, row.high].map((each) => (100 * Math.max(each, 0)).toFixed(1));
  return `Devices with ${row.label} items sent some of them: an item's true share is between the one shown and ${most} points more (${noisy} with noise).`;
}

// What the numbers are worth against forgery.
function strengthOf(round) {
  const forged = leastForged(round);
  if (forged === null) return "";
  return `${plural(forged, "forged report", "forged reports")} would be enough to move the least defended share by its margin of error (poison margin).`;
}

const WORDS = { sealed: "sealed", withheld: "sealed, withheld", collecting: "collecting", provisional: "provisional" };

function stateOf(line) {
  const stage = stageOf(line);
  return stage === "sealed" || stage === "provisional" ? `${WORDS[stage]}, ${plural(line.devices, "device", "devices")}` : WORDS[stage];
}
