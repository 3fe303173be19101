// One round: its categories, the values in them, and the form in which they are seen.

import { Parts, TableChoice, inReading, isBundle } from "./bundle.js";
import { el, setText, show } from "./dom.js";
import { isGrouped, worthOf } from "./facts.js";
import { ShareFigure } from "./figure.js";
import { PERCENT, PLAIN, isKnown, plural } from "./format.js";
import { FORMS, atOnce, consistent, curve, formsOf } from "./forms.js";
import { HeatMap, isMap, isTree, treeMembers, treePanels } from "./levels.js";
import { address } from "./route.js";
import { firstEstimate } from "./states.js";
import { WHOSE, roundOf, whoseOf } from "./whose.js";

const VALUED = { ...PERCENT, of: "% of those with a value" };

export class Distribution {
  constructor() {
    this.forms = el("nav", { class: "forms", "aria-label": "Form of the numbers" });
    this.said = el("p", { class: "form-words small" });
    this.whose = el("nav", { class: "forms whose", "aria-label": "Whose shares the intervals are of" });
    this.whoseSaid = el("p", { class: "form-words small" });
    this.withheld = el("div", { class: "withheld" });
    this.values = new ShareFigure("Value", "Values");
    this.groups = [];
    this.map = new HeatMap();
    this.back = el("a", { class: "back small" });
    setText(this.back, "Show all values");
    this.tables = new TableChoice(() => this.update(this.latest));
    this.parts = new Parts();
    this.figures = el("div", { class: "figures" }, el("div", { class: "right" }, this.tables.element, this.back, this.values.element));
    this.element = el("div", { class: "distribution" }, this.forms, this.said, this.whose, this.whoseSaid, this.withheld, this.map.element, this.figures, this.parts.element);
  }

  update(latest) {
    this.latest = latest;
    const { survey, round, line, route, rounds } = latest;
    const { values } = round;
    this.parts.update(round);
    const meanAlone = !round.suppressed && !values?.length && Boolean(round.mean) && !round.values_omitted; // a score has no shares
    const pending = !round.suppressed && round.values_omitted;
    const withheld = !meanAlone && !pending && (round.suppressed || !values?.length);
    show(this.withheld, withheld);
    show(this.figures, Boolean(values?.length) && !withheld);
    const map = Boolean(values?.length) && !withheld && isMap(survey, round);
    show(this.map.element, map);
    if (map) this.map.update(survey, round);
    const forms = withheld ? [] : formsOf(round);
    const form = forms.includes(route.show) ? route.show : forms[0];
    show(this.said, forms.length > 1);
    if (forms.length > 1) setText(this.said, FORMS[form][1]);
    choose(this.forms, forms, form, FORMS, (name, i) => address({ ...route, survey: survey.digest, show: i ? name : undefined }));
    const whose = withheld || meanAlone || !values?.length || form === "consistent" ? [] : form === "curve" && !round.sealed ? ["devices"] : whoseOf(round);
    const of = whose.includes(route.of) ? route.of : whose[0];
    show(this.whoseSaid, whose.length > 0);
    if (of) setText(this.whoseSaid, WHOSE[of][1]);
    choose(this.whose, whose, of, WHOSE, (name, i) => address({ ...route, survey: survey.digest, of: i ? name : undefined }));
    if (withheld) this.#drawWithheld(survey, round);
    if (withheld || !values?.length) return;
    this.#drawFigures(survey, form === "consistent" ? rounds.get(line) ?? round : roundOf(round, of ?? "devices"), form, route);
  }

  #drawFigures(survey, round, form, route) {
    const words = `${round.sealed ? "sealed" : "provisional"}, ${plural(round.devices, "device", "devices")}`;
    const grouped = isGrouped(round);
    const groups = grouped ? (isTree(round) ? treePanels(round.categories, route.category) : panels(survey, round.categories)) : [];
    const chosen = grouped ? groups.flatMap(({ rows }) => rows).find((row) => row.label === route.category) : undefined;
    this.figures.classList.toggle("single", !grouped);
    this.figures.classList.toggle("few", round.values.length <= 12);
    this.#drawGroups(groups, { survey, round, form, route, words });
    const kept = chosen ? members(survey, round, chosen, groups) : null;
    const picked = kept && kept.some(Boolean) ? kept : null;
    show(this.back, Boolean(picked));
    this.back.href = address({ ...route, survey: survey.digest, category: undefined });
    const apart = !picked && (form === "curve" || form === "mean"); // numbers of another kind than shares of values
    if (apart) return this.values.update(...(form === "curve" ? ofCurve(round, words) : ofMean(round, words)));
    const seen = form === "curve" || form === "mean" ? round.values : seenAs(form, round);
    const table = this.tables.update(survey);
    const within = ([row, i]) => (!table || (i >= table.begin && i < table.end)) && row;
    const all = seen.map((row, i) => [row, i]).filter(within);
    const some = all.filter(([, i]) => picked?.[i]);
    const items = (some.length ? some : all).map(([row]) => row);
    this.values.update(items, {
      mean: !picked && round.mean && isKnown(round.mean) ? round.mean : null,
      words,
      worth: isBundle(survey) ? "" : worthOf(round.values),
      title: some.length ? `Values in ${chosen.label}` : table?.name,
    });
    return undefined;
  }

  #drawGroups(groups, { survey, round, form, route, words }) {
    while (this.groups.length > groups.length) this.groups.pop().element.remove();
    groups.forEach(({ title, rows }, i) => {
      if (!this.groups[i]) {
        this.groups.push(new ShareFigure("Category", "Categories"));
        this.groups[i].element.classList.add("categories");
        this.figures.insertBefore(this.groups[i].element, this.figures.lastChild);
      }
      const numbers = round.consistent?.categories && rows.map((row) => round.consistent.categories[round.categories.indexOf(row)]);
      const seen = form === "consistent" ? consistent(rows, numbers) ?? rows : form === "simultaneous" ? atOnce(rows) : rows;
      this.groups[i].update(seen.map((row, k) => ({
        ...row,
        label: rows[k].short ?? row.label,
        href: address({ ...route, survey: survey.digest, category: rows[k].label === route.category ? undefined : rows[k].label }),
        current: rows[k].label === route.category,
      })), { words, title, worth: isBundle(survey) ? "" : worthOf(rows) });
    });
  }

  #drawWithheld(survey, round) {
    const { accepted } = round.accounting;
    const least = survey.minimum_cohort;
    const text = el("p");
    setText(text, round.sealed
      ? `The round was sealed with ${plural(accepted, "device", "devices")}, fewer than its minimum cohort of ${plural(least, "device", "devices")}. Only the accounting is released.`
      : `${plural(accepted, "device", "devices")} so far. No estimate is shown of fewer than ${least.toLocaleString("en")}, the minimum cohort; until then, the accounting alone.`);
    // A provisional step is shown when a whole one has come after it, so the first takes two.
    const fill = el("span", { class: "fill" });
    fill.style.width = `${Math.min(100, (100 * accepted) / (round.sealed ? Math.max(1, least) : firstEstimate(survey))).toFixed(2)}%`;
    this.withheld.replaceChildren(text, el("span", { class: "meter", "aria-hidden": "true" }, fill));
  }
}

// Draws links between which one chooses, where there are several.
function choose(nav, names, chosen, words, href) {
  show(nav, names.length > 1);
  if (names.length < 2) return;
  while (nav.children.length > names.length) nav.lastChild.remove();
  names.forEach((name, i) => {
    const link = nav.children[i] ?? nav.appendChild(el("a"));
    setText(link, words[name][0]);
    link.setAttribute("href", href(name, i));
    if (name === chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
}

function ofCurve(round, words) {
  const mean = round.mean && isKnown(round.mean) ? round.mean : null;
  const rows = curve(round.cumulative);
  const shares = rows.slice(0, -1); // the last is 1 whatever comes
  const worth = worthOf(shares, { total: shares.reduce((sum, { estimate }) => sum + estimate, 0), who: " with a value" });
  return [rows, { mean, words, worth, form: "curve", unit: VALUED, title: "At or below each value" }];
}

// The mean by itself, on the whole range of the answers.
function ofMean({ mean, values }, words) {
  const numbers = values.filter(({ label }) => label !== "missing").map(({ label }) => Number(label));
  return [[{ label: "Mean", ...mean }], { words, title: "Mean", unit: PLAIN, zero: false, ends: [numbers[0], numbers.at(-1)] }];
}

function seenAs(form, round) {
  if (form === "simultaneous") return atOnce(round.values);
  return form === "consistent" ? consistent(round.values, round.consistent?.values) ?? round.values : round.values;
}

// The categories as panels: one of all, or, of a cross table, one of each attribute's margin.
function panels(survey, categories) {
  const attributes = (survey.attributes ?? []).map(({ id }) => id);
  const of = (id) => categories.filter((row) => row.label.startsWith(`${id}: `));
  const parts = attributes.map(of);
  if (attributes.length < 2 || parts.reduce((sum, part) => sum + part.length, 0) !== categories.length) {
    return [{ rows: categories }];
  }
  return attributes.map((id, i) => {
    for (const row of parts[i]) row.short = row.label.slice(id.length + 2);
    return { title: `By ${id}`, rows: parts[i] };
  });
}

// Which values lie in a category: by their own word, or, of a cross table, by their place. Values are listed as
// numbers are counted, the last attribute fastest, and labels may hold whatever stands between two of them.
function members(survey, round, chosen, groups) {
  if (isTree(round)) return treeMembers(round, chosen);
  if (groups.length < 2) return round.values.map((row) => row.category === chosen.label);
  const at = groups.findIndex(({ rows }) => rows.includes(chosen));
  const one = groups[at].rows.indexOf(chosen);
  if (isBundle(survey)) return inReading(survey, at, one);
  const faster = groups.slice(at + 1).reduce((product, { rows }) => product * rows.length, 1);
  return round.values.map((row, i) => Math.floor(i / faster) % groups[at].rows.length === one);
}
