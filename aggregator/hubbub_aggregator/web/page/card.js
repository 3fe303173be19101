// One survey: which round is shown, its state, its facts, its charts, its accounting.

import { now } from "./clock.js";
import { el, setText, show } from "./dom.js";
import { ShareFigure } from "./figure.js";
import { count, epsilon, isKnown, plural, quantity, share, when } from "./format.js";
import { Identity } from "./identity.js";
import { BADGES, firstEstimate, roundWords, sentence, span, stageOf, surveyState } from "./states.js";

const NEWEST = "newest";
const OLDER = "older"; // a line that cannot be chosen: the live document lists the newest rounds only

export class Card {
  constructor(digest) {
    this.digest = digest;
    this.pinned = null; // the round that the reader chose; null follows the newest with estimates
    this.fetched = new Map();
    this.title = el("h2", { id: `title-${digest}` });
    this.origin = el("p", { class: "origin" });
    this.badge = el("span", { class: "badge" });
    this.choice = el("select", { "aria-label": "Round shown" });
    this.choice.addEventListener("change", () => this.#choose());
    this.moment = el("b", { class: "moment" });
    this.state = el("span", { class: "state" });
    this.news = el("p", { class: "news small" });
    this.facts = el("dl", { class: "facts" });
    this.devices = this.#fact("Devices");
    this.bar = el("span", { class: "fill" });
    this.meter = el("dd", { class: "meter", "aria-hidden": "true" }, this.bar);
    this.devices.box.append(this.meter);
    this.privacy = this.#fact("Privacy, per report");
    this.mean = this.#fact("Mean");
    this.window = this.#fact("Round");
    this.answered = this.#fact("Answered");
    this.categories = new ShareFigure("Category", "Categories");
    this.values = new ShareFigure("Value", "Values");
    this.withheld = el("div", { class: "withheld" });
    this.figures = el("div", { class: "figures" }, this.categories.element, this.values.element);
    this.absence = el("p", { class: "absence small" });
    this.identity = new Identity();
    this.json = el("a");
    this.csv = el("a");
    setText(this.json, "JSON");
    setText(this.csv, "CSV");
    this.links = el("p", { class: "links small" }, this.json, this.csv);
    const accounting = el("h3", { class: "quiet-title" });
    setText(accounting, "Reports of this round");
    this.under = el("div", { class: "under" }, el("div", {}, accounting, this.identity.element), this.links);
    this.element = el("article", { class: "card", id: `survey-${digest}`, "aria-labelledby": this.title.id },
      el("header", {}, el("div", { class: "names" }, this.title, this.origin),
        el("div", { class: "status" }, this.badge, this.choice)),
      el("p", { class: "states" }, this.moment, " ", this.state), this.facts, this.withheld, this.figures, this.absence,
      this.under, this.news);
  }

  #fact(name) {
    const title = el("dt");
    const main = el("dd", { class: "main" });
    const more = el("dd", { class: "more" });
    setText(title, name);
    const box = el("div", { class: "fact" }, title, main, more);
    this.facts.append(box);
    return { box, title, main, more };
  }

  update(survey) {
    this.survey = survey;
    setText(this.title, survey.title || survey.id);
    setText(this.origin, `${survey.id} · version ${survey.version} · digest ${survey.digest.slice(0, 12)}…`);
    this.origin.title = `The digest of the compiled survey, which every report carries: ${survey.digest}`;
    this.#offerRounds();
    this.#refresh();
  }

  // Writes what time alone changes: begins in, ends in.
  tick() {
    if (this.survey) this.#drawState();
  }

  #choose() {
    this.pinned = this.choice.value === NEWEST ? null : Number(this.choice.value);
    this.#refresh();
  }

  #offerRounds() {
    const { rounds, shown } = this.survey;
    const texts = rounds.map((line) => [String(line.round), `Round ${line.round + 1} · ${stateOf(line)}`]).reverse();
    if (shown) texts.unshift([NEWEST, `Newest: round ${shown.round + 1}`]);
    const options = [...this.choice.options];
    if (this.survey.rounds_omitted) texts.push([OLDER, `${count(this.survey.rounds_omitted)} older: /api/surveys`]);
    texts.forEach(([value, text], i) => {
      let option = options[i];
      if (!option) {
        option = el("option");
        this.choice.append(option);
      }
      if (option.value !== value) option.value = value;
      setText(option, text);
      option.disabled = value === OLDER;
    });
    options.slice(texts.length).forEach((option) => option.remove());
    this.choice.value = this.pinned === null ? NEWEST : String(this.pinned);
    show(this.choice, rounds.length > 1);
  }

  // Draws the round at hand at once; fetches it first where the live document does not hold it in full.
  #refresh() {
    const { shown, rounds } = this.survey;
    if (!shown) {
      this.#drawUnanswered();
      return;
    }
    const number = this.pinned ?? shown.round;
    const line = rounds.find((candidate) => candidate.round === number) ?? rounds[rounds.length - 1];
    setText(this.json, "JSON");
    this.json.href = line.json;
    this.csv.href = line.csv;
    if (number === shown.round && !shown.values_omitted) {
      this.#draw(shown);
      return;
    }
    if (number === shown.round) this.#drawFacts(shown);
    this.#fetch(line);
  }

  async #fetch(line) {
    const key = `${line.round} ${line.sealed} ${line.as_of} ${line.devices}`;
    const known = this.fetched.get(line.round);
    if (known?.key === key && known.document) {
      this.#draw(known.document);
      if (line.sealed) return;
    }
    if (this.fetching) return; // the next update asks again
    this.fetching = true;
    try {
      const response = await fetch(line.json, { cache: "no-cache" });
      if (!response.ok) return;
      const document_ = await response.json();
      this.fetched.set(line.round, { key, document: document_ });
      if (line.round === (this.pinned ?? this.survey.shown.round)) this.#draw(document_);
    } catch {
      // The connection's own state tells the reader; the next update asks again.
    } finally {
      this.fetching = false;
    }
  }

  #draw(round) {
    this.#drawFacts(round);
    const { values, categories } = round;
    const meanAlone = !round.suppressed && !values?.length && Boolean(round.mean); // a score has no shares
    const suppressed = !meanAlone && (round.suppressed || !values?.length);
    show(this.withheld, suppressed);
    show(this.figures, !suppressed && !meanAlone);
    if (meanAlone) return;
    if (suppressed) {
      this.#drawWithheld(round);
      return;
    }
    const words = round.sealed ? `sealed, ${plural(round.devices, "device", "devices")}` : `provisional, ${plural(round.devices, "device", "devices")}`;
    // Where every value is its own category, one picture says it all.
    const same = categories.length === values.length && categories.every((row, i) => row.label === values[i].label);
    const grouped = categories.length > 1 && !same && !answeredOnly(categories);
    show(this.categories.element, grouped);
    this.figures.classList.toggle("single", !grouped);
    this.figures.classList.toggle("few", values.length <= 12);
    if (grouped) this.categories.update(categories, null, words);
    this.values.update(values, round.mean && isKnown(round.mean) ? round.mean : null, words);
  }

  // A survey that nobody answered yet, or ever: what it asks and when, and nothing that looks like a result.
  #drawUnanswered() {
    const { survey } = this;
    this.round = null;
    this.#drawState();
    for (const node of [this.devices.box, this.mean.box, this.answered.box, this.withheld, this.figures, this.absence, this.under, this.news]) show(node, false);
    this.#drawPrivacy(survey.epsilon);
    const { schedule } = survey;
    show(this.window.box, Boolean(schedule));
    if (!schedule) return;
    setText(this.window.title, "Schedule");
    setText(this.window.main, `${plural(schedule.rounds, "round", "rounds")} of ${span(schedule.round_s)}`);
    setText(this.window.more, `from ${when(schedule.start)} UTC`);
  }

  #drawState() {
    const { survey, round } = this;
    const { name, words } = surveyState(survey, now());
    const stage = round ? stageOf(round) : name;
    this.element.dataset.stage = stage;
    setText(this.badge, BADGES[stage]);
    setText(this.moment, sentence(words));
    setText(this.state, round ? roundWords(survey, round) + lostIn(round) : "");
  }

  #drawPrivacy({ declared, certified }) {
    setText(this.privacy.main, `ε ≤ ${epsilon(certified)}`);
    setText(this.privacy.more, `certified; ${epsilon(declared)} declared`);
    this.privacy.box.title = `declared ${declared}, certified ${certified}`;
  }

  #drawFacts(round) {
    const { survey } = this;
    this.round = round;
    this.#drawState();
    for (const node of [this.devices.box, this.window.box, this.under]) show(node, true);
    const accepted = round.accounting.accepted;
    const planned = survey.planned_devices;
    setText(this.devices.main, count(round.suppressed ? accepted : round.devices));
    setText(this.devices.more, planned ? `${round.sealed ? "counted" : `${count(accepted)} accepted`}, ${count(planned)} planned` : `${count(accepted)} accepted`);
    show(this.meter, Boolean(planned)); // without a plan there is nothing to be full of
    if (planned) this.bar.style.width = `${Math.min(100, (100 * accepted) / planned).toFixed(2)}%`;
    this.#drawPrivacy(round.epsilon);
    const withMean = Boolean(round.mean) && isKnown(round.mean);
    show(this.mean.box, withMean);
    if (withMean) {
      setText(this.mean.main, quantity(round.mean).text);
      setText(this.mean.more, `95 % interval ${quantity(round.mean).interval}`);
    }
    this.#drawAnswered(round.categories ?? []);
    const rounds = survey.schedule?.rounds;
    setText(this.window.title, "Round");
    setText(this.window.main, rounds ? `${round.round + 1} of ${count(rounds)}` : String(round.round + 1));
    this.window.box.title = `round ${round.round} in JSON and CSV, which count from 0`;
    setText(this.window.more, `${when(round.start)} – ${when(round.end)} UTC`);
    setText(this.absence, absenceIn(round));
    show(this.absence, Boolean(absenceIn(round)));
    this.identity.update(round.accounting);
    this.#drawNews(round);
  }

  // Who gave a value at all: one line, where a panel of two complementary bars would say no more.
  #drawAnswered(categories) {
    const [answered, missing] = answeredOnly(categories) ? categories : [];
    const known = Boolean(answered) && isKnown(answered);
    show(this.answered.box, known);
    if (!known) return;
    setText(this.answered.main, share(answered).text);
    setText(this.answered.more, isKnown(missing) ? `missing ${share(missing).text}` : "");
  }

  #drawWithheld(round) {
    const { accepted } = round.accounting;
    const least = this.survey.minimum_cohort;
    const text = el("p");
    setText(text, round.sealed
      ? `The round was sealed with ${plural(accepted, "device", "devices")}, fewer than its minimum cohort of ${count(least)}. Only the accounting is released.`
      : `${plural(accepted, "device", "devices")} so far. No estimate is shown of fewer than ${count(least)}, the minimum cohort; until then, the accounting alone.`);
    // A provisional step is shown when a whole cohort has come after it, so the first takes two.
    const fill = el("span", { class: "fill" });
    fill.style.width = `${Math.min(100, (100 * accepted) / (round.sealed ? Math.max(1, least) : firstEstimate(this.survey))).toFixed(2)}%`;
    this.withheld.replaceChildren(text, el("span", { class: "meter", "aria-hidden": "true" }, fill));
  }

  // A line on the round after the one shown, so that following the newest estimates hides nothing.
  #drawNews(round) {
    const later = this.survey.rounds.filter((line) => line.round > round.round).pop();
    setText(this.news, later ? `Round ${later.round + 1}: ${stateOf(later)}.` : "");
    show(this.news, Boolean(later));
  }
}

function lostIn(round) {
  const lost = (round.lost ?? []).reduce((sum, range) => sum + range.until - range.from, 0);
  return lost ? ` It is incomplete: up to ${plural(lost, "record", "records")} of it were lost before they were counted.` : "";
}

// Who was asked and is not counted, and what that can do to the shares.
function absenceIn(round) {
  const { absent, asked, bias } = round.enrolment ?? {};
  if (absent === undefined || absent === null) return "";
  const points = (share) => `${(100 * share).toFixed(2)} points`;
  const largest = bias ? bias.largest ?? Math.max(...bias.values, ...bias.categories) : null;
  const reach = largest === null ? "" : ` If all of them refused to stay within their budgets, no share of those asked is more than ${points(largest)} away from the share shown, sampling error aside; who stayed away for other reasons is not in this bound.`;
  return `${(100 * absent).toFixed(1)} % of the ${plural(asked, "device", "devices")} asked are not in this round: they refused or were absent, and nobody is told which.${reach}`;
}

// A survey without categories has two: who answered and who is missing.
function answeredOnly(categories) {
  return categories.length === 2 && categories[0].label === "answered" && categories[1].label === "missing";
}

function stateOf(line) {
  const words = { sealed: "sealed", withheld: "sealed, withheld", collecting: "collecting", provisional: "provisional" };
  const stage = stageOf(line);
  return stage === "sealed" || stage === "provisional" ? `${words[stage]}, ${plural(line.devices, "device", "devices")}` : words[stage];
}
