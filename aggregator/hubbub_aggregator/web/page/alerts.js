// The alerts of the round that is shown, in words: what was found, and how often honest rounds would show it.

import { el, setText, show } from "./dom.js";
import { count, fixed } from "./format.js";

const PERCENT = "\u202f%";

export class Alerts {
  constructor() {
    this.title = el("h3", { class: "quiet-title" });
    this.list = el("ul");
    this.foot = el("p", { class: "small" });
    this.element = el("section", { class: "alerts", "aria-label": "Alerts" }, this.title, this.list, this.foot);
  }

  update(survey, round) {
    const found = round?.sealed ? survey.alerts?.rounds.find((line) => line.round === round.round) : undefined;
    show(this.element, Boolean(found));
    if (!found) return;
    const raised = found.alerts.length > 0;
    this.element.dataset.raised = raised;
    setText(this.title, raised ? "Alerts" : "No alerts");
    const lines = found.alerts.map((alert) => words(alert, found));
    const left = Object.values(found.omitted).reduce((sum, each) => sum + each, 0);
    if (left) lines.push(`${count(left)} more; the API has their number by kind.`);
    while (this.list.children.length > lines.length) this.list.lastChild.remove();
    lines.forEach((text, i) => setText(this.list.children[i] ?? this.list.appendChild(el("li")), text));
    show(this.list, lines.length > 0);
    const fresh = survey.attributes.some(({ kind }) => kind !== "static");
    setText(this.foot, foot(survey.alerts.rate, found, fresh, Boolean(round.parts)));
  }
}

function words({ kind, family, label, statistic, threshold, window, against }, { since }) {
  const cell = family === "total" ? "All values together" : family === "mean" ? "The mean" : `“${label}”`;
  const places = family === "total" ? 0 : 1;
  const percent = (share) => fixed(100 * share, places);
  if (kind === "margin") {
    return `Few forged reports, ${fixed(100 * statistic, 3)}${PERCENT} of all, would move ${cell} by its margin of error. This is no sign that there are any.`;
  }
  if (kind === "issuer") {
    return `The reports that “${label || "others"}” vouched for are distributed otherwise than all others' (chance: at most ${statistic.toExponential(1)}). Its devices are other people, or reports were forged.`;
  }
  if (kind === "part") {
    return `There are more reports about “${label}” than the devices' public coins give (chance: at most ${statistic.toExponential(1)}). Reports were forged.`;
  }
  const compared =
    window > 1 || against > 1 ? `in the last ${rounds(window)} beside the ${rounds(against)} before` : `since round ${since}`;
  if (kind === "joint") {
    return `All values together changed ${compared} by more than noise, though perhaps no single one did: a squared distance of ${fixed(statistic, 1)}, where noise alone stays within ${fixed(threshold, 1)}. People changed, or reports were forged.`;
  }
  if (kind === "jump") {
    const moved = statistic > 0 ? "rose" : "fell";
    return `${cell} ${moved} by ${percent(Math.abs(statistic))} points ${compared}; noise alone stays within ${percent(Math.abs(threshold))}. People changed, or reports were forged.`;
  }
  const bound = statistic > threshold ? "at most" : "at least";
  if (family === "mean") {
    return `The mean lies at ${percent(statistic)}${PERCENT} of the way between its ends; any population gives ${bound} ${percent(threshold)}${PERCENT}.`;
  }
  return `${cell} ${family === "total" ? "show" : "shows"} ${percent(statistic)}${PERCENT}; any population gives ${bound} ${percent(threshold)}${PERCENT}.`;
}

const rounds = (n) => (n === 1 ? "round" : `${n} rounds`);

function foot(rate, { judged, since }, fresh, parts) {
  if (!judged && parts) return "Only how often each part was drawn is judged.";
  if (!judged) return "Surveys of so many values that are asked by levels are not judged.";
  const beside = since === null ? "there is no earlier round to compare it with" : `compared with round ${since}${fresh ? " and those before it" : ""}`;
  return `No more than about one honest round in ${count(Math.floor(1 / rate))} raises an alert; ${beside}.`;
}
