// The dashboard: takes each live document and writes it into the page in place, so that nothing jumps or reloads.

import { Card } from "./card.js";
import { setByServer } from "./clock.js";
import { Connection } from "./connection.js";
import { el, setText, show } from "./dom.js";
import { plural, timeOfDay } from "./format.js";
import { Identity } from "./identity.js";
import { stageOf } from "./states.js";

const at = (id) => document.getElementById(id);
const cards = new Map();
const links = new Map();
const totals = new Identity();
let changed = null;

at("totals").append(totals.element);

function take(live) {
  changed = new Date();
  totals.update(live.accounting);
  setText(at("log-state"), logState(live));
  for (const survey of live.surveys) {
    if (!cards.has(survey.digest)) add(survey);
    cards.get(survey.digest).update(survey);
    const { shown } = survey;
    const { link, text } = links.get(survey.digest);
    setText(text, survey.title || survey.id);
    link.dataset.stage = shown ? stageOf(shown) : "collecting";
  }
  const kept = new Set(live.surveys.map((survey) => survey.digest));
  for (const digest of [...cards.keys()]) if (!kept.has(digest)) drop(digest);
  show(at("empty"), live.surveys.length === 0);
  setText(at("empty"), "No survey has been published yet. The first one appears here by itself.");
  show(at("contents"), live.surveys.length > 1);
}

function add(survey) {
  const card = new Card(survey.digest);
  cards.set(survey.digest, card);
  at("surveys").append(card.element);
  const text = el("span");
  const link = el("a", { href: `#survey-${survey.digest}` }, el("span", { class: "lamp", "aria-hidden": "true" }), text);
  links.set(survey.digest, { link, text });
  at("contents").append(link);
}

function drop(digest) {
  cards.get(digest).element.remove();
  links.get(digest).link.remove();
  cards.delete(digest);
  links.delete(digest);
}

function logState(live) {
  const partitions = live.partitions ?? [];
  const lag = partitions.reduce((sum, partition) => sum + (partition.lag ?? 0), 0);
  const parts = live.stale ? [`Standing still since ${live.stale.since.replace("T", " ").replace("Z", " UTC")}: ${live.stale.why}`] : [];
  if (live.unsealed) parts.push(`No round is sealed: ${live.unsealed}`);
  parts.push(
    lag ? `${plural(lag, "log record waits", "log records wait")} to be counted` : "Every log record is counted",
    plural(partitions.length, "partition", "partitions"),
  );
  if (live.unknown) parts.push(`${plural(live.unknown, "report", "reports")} of unknown surveys, outside this sum`);
  if (live.dead) parts.push(`${plural(live.dead, "unreadable record", "unreadable records")} skipped`);
  return parts.join(" · ");
}

const WORDS = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  polling: "Live, by polling",
  lost: "Connection lost",
};

function showState(state) {
  document.body.dataset.connection = state;
  const since = changed && state === "lost" ? `, numbers of ${timeOfDay(changed)}` : "";
  setText(at("connection-text"), WORDS[state] + since);
}

// Light, dark, or what the system says: remembered in this browser, told to nobody.
const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(at("theme"), `Theme: ${theme}`);
  try {
    localStorage.setItem("hubbub-theme", theme);
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
}

let theme = "auto";
try {
  theme = localStorage.getItem("hubbub-theme") ?? "auto";
} catch {
  // As above.
}
setTheme(THEMES.includes(theme) ? theme : "auto");
at("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "auto";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});

setInterval(() => { if (!document.hidden) cards.forEach((card) => card.tick()); }, 1000);
setByServer();
new Connection({ base: "api/", onDocument: take, onState: showState });
