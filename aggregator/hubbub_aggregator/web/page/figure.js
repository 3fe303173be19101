// A figure: a title, a chart in the form that suits the number of shares, and its table behind a button.

import { el, setText, show } from "./dom.js";
import { PERCENT, count, isKnown, spelled } from "./format.js";
import { ProfileChart } from "./profile.js";
import { RowChart } from "./rows.js";
import { ShareTable } from "./table.js";

const MOST_ROWS = 24; // more rows than this no longer fit a screen: the profile shows them at once

let figures = 0;

export class ShareFigure {
  constructor(one, many, unit = PERCENT) {
    figures += 1;
    [this.one, this.many, this.unit] = [one, many, unit];
    this.title = el("h3", { id: `figure-${figures}` });
    this.of = el("span", { class: "unit" });
    this.button = el("button", { type: "button", class: "quiet toggle", "aria-pressed": "false" });
    setText(this.button, "Table");
    this.button.setAttribute("aria-label", `Table of ${many.toLowerCase()}`);
    this.button.addEventListener("click", () => this.#toggle());
    this.table = new ShareTable(`${many}: estimates with 95 % intervals`);
    this.place = el("div", { class: "chart" });
    this.worth = el("p", { class: "worth small" });
    this.element = el("figure", { "aria-labelledby": this.title.id, class: many.toLowerCase().replaceAll(" ", "-") },
      el("div", { class: "figure-head" }, this.title, this.of, this.button), this.place, this.table.element, this.worth);
    this.asTable = false;
  }

  // Options: `mean` a row or null; `words` what the numbers are; `title` in place of the figure's own name; `unit`;
  // `form` of a profile, `zero` false an axis that need not begin at zero, `ends` numbers that it holds; `worth` what the
  // shares are worth, below them.
  update(items, options = {}) {
    this.latest = [items, options];
    const unit = options.unit ?? this.unit;
    const name = options.title ?? this.many;
    setText(this.title, items.length > 1 ? `${name} (${count(items.length)})` : name);
    setText(this.worth, options.worth ?? "");
    show(this.worth, Boolean(options.worth));
    setText(this.of, unit.of);
    if (this.asTable) {
      this.table.update(this.one, items, unit);
      return;
    }
    const kind = items.length > MOST_ROWS || ["curve", "points"].includes(options.form) ? "profile" : "rows";
    if (kind !== this.kind) {
      this.kind = kind;
      this.chart = kind === "rows" ? new RowChart() : new ProfileChart();
      this.place.replaceChildren(this.chart.element);
    }
    this.chart.update(items, this.#summary(items, unit, options), { ...options, unit });
  }

  #toggle() {
    this.asTable = !this.asTable;
    this.button.setAttribute("aria-pressed", String(this.asTable));
    show(this.place, !this.asTable);
    show(this.table.element, this.asTable);
    this.update(...this.latest);
  }

  // What the picture says, for who does not see it: how many shares, and the largest of them.
  #summary(items, unit, { words = "", title = this.many }) {
    const largest = items.filter(isKnown).sort((a, b) => b.estimate - a.estimate).slice(0, 3);
    const named = largest.map((item) => `${item.label} ${spelled(item, unit).text}`).join("; ");
    return `${title}${words ? `, ${words}` : ""}: ${count(items.length)} estimates. Largest: ${named}. The table button gives all.`;
  }
}
