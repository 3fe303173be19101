// The dashboard: takes each live document and writes it into the page that the address names, in place, so that
// nothing jumps or reloads.

import { setByServer } from "./clock.js";
import { Connection } from "./connection.js";
import { el, setText, show } from "./dom.js";
import { timeOfDay } from "./format.js";
import { OperationsPage, troubles } from "./operations.js";
import { Overview } from "./overview.js";
import { PersonPage } from "./person.js";
import { Router, address } from "./route.js";
import { SurveyPage } from "./survey.js";
import { followTheme } from "./theme.js";

const at = (id) => document.getElementById(id);
const pages = new Map();
let live = null;
let page = null;
let changed = null;

const router = new Router((route, how) => draw(how));

// Pages are made when first shown and kept: going back finds a chosen table and an open cell as they were.
function pageOf({ page: name, survey }) {
  const key = survey ?? name;
  if (!pages.has(key)) {
    pages.set(key, survey ? new SurveyPage(survey, (route) => router.go(route))
      : name === "operations" ? new OperationsPage() : name === "person" ? new PersonPage() : new Overview());
  }
  return pages.get(key);
}

function draw(how) {
  if (!live) return;
  const { route } = router;
  const known = !route.survey || live.surveys.some((survey) => survey.digest === route.survey);
  const next = known ? pageOf(route) : unknownSurvey();
  const turned = next !== page;
  if (turned) {
    page = next;
    at("main").replaceChildren(page.element);
  }
  page.update(live, route);
  drawNavigation(route);
  const title = `${page.title} · Hubbub`;
  if (document.title !== title) document.title = title;
  if (!turned || !how) return;
  if (how === "link") scrollTo(0, 0);
  page.heading.focus({ preventScroll: true }); // a reader of the screen hears where the link has led
}

const lost = { element: el("div", { class: "page" }), heading: el("h2", { class: "page-title", tabindex: -1 }), title: "No such survey", update() {} };
function unknownSurvey() {
  if (!lost.element.firstChild) {
    setText(lost.heading, "No such survey");
    const back = el("a", { href: "./" });
    setText(back, "All surveys");
    const words = el("p", { class: "empty" }, "No survey with the digest of this address has been published here. ", back);
    lost.element.append(lost.heading, words);
  }
  return lost;
}

function drawNavigation(route) {
  for (const link of at("pages").querySelectorAll("a")) {
    if (link.dataset.page === route.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(at("contents"), live.surveys.length > 1 && route.page === "survey");
  if (at("contents").hidden) return;
  live.surveys.forEach((survey, i) => {
    const link = at("contents").children[i] ?? at("contents").appendChild(el("a"));
    setText(link, survey.title || survey.id);
    const href = address({ survey: survey.digest });
    if (link.getAttribute("href") !== href) link.setAttribute("href", href);
    if (survey.digest === route.survey) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  while (at("contents").children.length > live.surveys.length) at("contents").lastChild.remove();
}

function take(document_) {
  changed = new Date();
  live = document_;
  const trouble = troubles(live);
  show(at("trouble"), trouble.length > 0);
  setText(at("trouble"), trouble.join(" "));
  for (const key of [...pages.keys()]) {
    if (/^[0-9a-f]{32}$/.test(key) && !live.surveys.some((survey) => survey.digest === key)) pages.delete(key);
  }
  draw();
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

followTheme(at("theme"));
setInterval(() => { if (!document.hidden) page?.tick?.(); }, 1000);
setByServer();
new Connection({ base: "api/", onDocument: take, onState: showState });
