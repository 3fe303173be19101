// What is certain about a survey and the round that is shown: devices, privacy, mean, schedule, who is missing.

import { el, setText, show } from "./dom.js";
import { count, decimals, epsilon, isKnown, plural, quantity, share, when } from "./format.js";
import { roundName, span } from "./states.js";
import { roundOf, whoseOf } from "./whose.js";

export class Facts {
  constructor() {
    this.element = el("dl", { class: "facts" });
    this.devices = this.#fact("Devices");
    this.bar = el("span", { class: "fill" });
    this.meter = el("dd", { class: "meter", "aria-hidden": "true" }, this.bar);
    this.devices.box.append(this.meter);
    this.privacy = this.#fact("Privacy, per report");
    this.readers = this.#fact("Privacy, this release");
    this.mean = this.#fact("Mean");
    this.median = this.#fact("Median");
    this.window = this.#fact("Round");
    this.answered = this.#fact("Answered");
  }

  #fact(name) {
    const title = el("dt");
    const main = el("dd", { class: "main" });
    const more = el("dd", { class: "more" });
    setText(title, name);
    const box = el("div", { class: "fact" }, title, main, more);
    this.element.append(box);
    return { box, title, main, more };
  }

  // `round` is null for a survey that nobody answered yet, or ever: then nothing is shown that looks like a result.
  update(survey, round) {
    this.#drawPrivacy((round ?? survey).epsilon);
    this.#drawReaders(round?.after_shuffling);
    this.#drawDevices(survey, round);
    const shown = round && roundOf(round, whoseOf(round)[0]);
    this.#drawMean(shown?.mean);
    this.#drawQuartiles(shown?.quantiles ?? []);
    this.#drawWindow(survey, round);
    this.#drawAnswered(round?.categories ?? []);
  }

  #drawPrivacy({ declared, certified }) {
    setText(this.privacy.main, `ε ≤ ${epsilon(certified)}`);
    setText(this.privacy.more, `certified; ${epsilon(declared)} declared`);
    this.privacy.box.title = `declared ${declared}, certified ${certified}`;
  }

  // What readers learn who see no single report: a statement with its assumption, where the release has one.
  #drawReaders(found) {
    show(this.readers.box, Boolean(found));
    if (!found) return;
    const { epsilon: alone, watched_epsilon: watched, reports, watched_reports: step, delta } = found;
    setText(this.readers.main, `ε ≤ ${epsilon(alone)}, δ ${delta}`);
    setText(this.readers.more, `for readers of it alone, if ${count(reports)} reports are honest; ${epsilon(watched)} who watched steps of ${count(step)}. No promise.`);
    this.readers.box.title = found.assumption;
  }

  #drawDevices(survey, round) {
    show(this.devices.box, Boolean(round));
    if (!round) return;
    const { accepted } = round.accounting;
    const planned = Math.floor(survey.planned_devices / (survey.schedule?.rotation ?? 1));
    setText(this.devices.main, count(round.suppressed ? accepted : round.devices));
    setText(this.devices.more, planned ? `${round.sealed ? "counted" : `${count(accepted)} accepted`}, ${count(planned)} planned` : `${count(accepted)} accepted`);
    show(this.meter, Boolean(planned)); // without a plan there is nothing to be full of
    if (planned) this.bar.style.width = `${Math.min(100, (100 * accepted) / planned).toFixed(2)}%`;
  }

  #drawMean(mean) {
    const known = Boolean(mean) && isKnown(mean);
    show(this.mean.box, known);
    if (!known) return;
    setText(this.mean.main, quantity(mean).text);
    setText(this.mean.more, `95 % interval ${quantity(mean).interval}`);
  }

  #drawQuartiles(quantiles) {
    const [lower, median, upper] = [0.25, 0.5, 0.75].map((at) => quantiles.find(({ share: each }) => each === at));
    const known = Boolean(median) && median.estimate !== null;
    show(this.median.box, known);
    if (!known) return;
    const said = ({ estimate, low, high }) => `${tidy(high > low ? Number(estimate.toFixed(decimals((high - low) / 2))) : estimate)} (${tidy(low)} to ${tidy(high)})`;
    setText(this.median.main, said(median));
    setText(this.median.more, lower && upper ? `quartiles ${said(lower)}, ${said(upper)}; all three at once, 95 %` : "95 % interval");
  }

  #drawWindow(survey, round) {
    const { schedule } = survey;
    show(this.window.box, Boolean(round || schedule));
    if (round) {
      setText(this.window.title, "Round");
      setText(this.window.main, roundName(survey, round.round).replace("round ", ""));
      setText(this.window.more, `${when(round.start)} – ${when(round.end)} UTC`);
    } else if (schedule) {
      setText(this.window.title, "Schedule");
      const turn = schedule.rotation > 1 ? `, a device in one of ${count(schedule.rotation)}` : "";
      setText(this.window.main, `${plural(schedule.rounds, "round", "rounds")} of ${span(schedule.round_s)}${turn}`);
      setText(this.window.more, `from ${when(schedule.start)} UTC`);
    }
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
}

// A point of a survey's own grid, with all the digits that it has and none of binary fractions.
function tidy(value) {
  return value === null ? "–" : String(Number(value.toPrecision(12))).replace("-", "\u2212");
}

// The devices whose plain answers, without noise, would be as uncertain by chance as these shares are by noise; null where
// too few rows have an error. The shares' squares are taken without the bias that their own errors give them; `total` is
// what the shares add up to.
export function effectiveSize(rows, total = 1) {
  const known = (rows ?? []).filter((row) => row.estimate !== null && Number.isFinite(row.error) && row.error > 0);
  if (known.length < 2) return null;
  const noise = known.reduce((sum, { error }) => sum + error ** 2, 0);
  const squares = known.reduce((sum, { estimate, error }) => sum + estimate ** 2 - error ** 2, 0);
  return (total - Math.min(Math.max(squares, 0), total)) / noise;
}

// What the shares of one panel are worth, in words; "" where nothing can be said.
export function worthOf(rows, { total = 1, who = "" } = {}) {
  const size = effectiveSize(rows, total);
  if (size === null || size < 1) return "";
  return `As uncertain, by the devices' noise, as a plain sample of ${plural(Math.round(size), "device", "devices")}${who} is by chance (effective sample size).`;
}

// The fewest forged reports that move any share by its margin of error; null where the release does not say.
export function leastForged({ poison_margin: margin }) {
  const known = [...(margin?.values ?? []), ...(margin?.categories ?? [])].filter((count_) => count_ !== null);
  return known.length ? Math.ceil(Math.min(...known)) : null;
}

// A survey without categories has two: who answered and who is missing.
export function answeredOnly(categories) {
  return categories.length === 2 && categories[0].label === "answered" && categories[1].label === "missing";
}

// Categories that say more than the values do: where every value is its own category, one picture says it all.
export function isGrouped({ values, categories }) {
  const same = categories.length === values.length && categories.every((row, i) => row.label === values[i].label);
  return categories.length > 1 && !same && !answeredOnly(categories);
}

export function lostIn(round) {
  const lost = (round.lost ?? []).reduce((sum, range) => sum + range.until - range.from, 0);
  return lost ? ` It is incomplete: up to ${plural(lost, "record", "records")} of it were lost before they were counted.` : "";
}

// Who was asked and is not counted, and what that can do to the shares.
export function absenceIn(round) {
  const { absent, asked, bias } = round.enrolment ?? {};
  if (absent === undefined || absent === null) return "";
  const points = (value) => `${(100 * value).toFixed(2)} points`;
  const largest = bias ? bias.largest ?? Math.max(...bias.values, ...bias.categories) : null;
  const reach = largest === null ? "" : ` If all of them refused to stay within their budgets, no share of those asked is more than ${points(largest)} away from the share shown, sampling error aside; who stayed away for other reasons is not in this bound.`;
  return `${(100 * absent).toFixed(1)} % of the ${plural(asked, "device", "devices")} asked are not in this round: they refused or were absent, and nobody is told which.${reach}`;
}
