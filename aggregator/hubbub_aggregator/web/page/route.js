// The address says what is shown, and reading it back shows the same: page, survey, round, view.
//
//   ./                                          all surveys
//   ?survey=DIGEST                              one survey, its newest round with estimates
//   ?survey=DIGEST&round=2&view=history      
//   ?survey=DIGEST&view=comparison&round=3&against=2, &from=DIGEST where round 2 is another survey's
//   ?page=operations, ?page=person
//
// A route is {page, survey, round, view, show, of, category, cell, against, from}; rounds in it count from 1.

export const VIEWS = ["distribution", "history", "comparison"];
const PAGES = ["surveys", "operations", "person"];
const TEXTS = ["show", "of", "category", "cell", "from"];

export function read(search, hash = "") {
  const asked = new URLSearchParams(search);
  // Addresses of the page's first form, which had one page and a mark per survey.
  const survey = asked.get("survey") ?? (hash.startsWith("#survey-") ? hash.slice(8) : null);
  const route = { page: survey ? "survey" : PAGES.includes(asked.get("page")) ? asked.get("page") : "surveys" };
  if (survey) route.survey = survey.toLowerCase();
  if (VIEWS.includes(asked.get("view"))) route.view = asked.get("view");
  for (const name of ["round", "against"]) {
    if (/^[1-9]\d{0,14}$/.test(asked.get(name) ?? "")) route[name] = Number(asked.get(name));
  }
  for (const name of TEXTS) if (asked.get(name)) route[name] = asked.get(name);
  return route;
}

export function address(route) {
  const parts = new URLSearchParams();
  if (route.survey) parts.set("survey", route.survey);
  else if (route.page && route.page !== "surveys") parts.set("page", route.page);
  if (route.view && route.view !== VIEWS[0]) parts.set("view", route.view);
  for (const name of ["round", "against"]) if (Number.isInteger(route[name])) parts.set(name, route[name]);
  for (const name of TEXTS) if (route[name]) parts.set(name, route[name]);
  const text = parts.toString();
  return text ? `?${text}` : "./";
}

export class Router {
  constructor(onRoute) {
    this.onRoute = onRoute;
    this.route = read(location.search, location.hash);
    if (location.hash.startsWith("#survey-")) history.replaceState(null, "", address(this.route));
    addEventListener("popstate", () => this.#take("history"));
    document.addEventListener("click", (event) => this.#click(event));
  }

  // Shows a route; the address follows, and going back returns to the one before.
  go(route) {
    const target = new URL(address(route), location.href).href;
    if (target === location.href) return;
    history.pushState(null, "", target);
    this.#take("link");
  }

  #take(how) {
    this.route = read(location.search, location.hash);
    this.onRoute(this.route, how);
  }

  // A plain click on a link to this page changes the address alone; every other one is the browser's.
  #click(event) {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.target || link.hasAttribute("download") || link.hash) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || to.pathname !== location.pathname) return;
    event.preventDefault();
    if (to.href === location.href) return;
    history.pushState(null, "", to.href);
    this.#take("link");
  }
}
