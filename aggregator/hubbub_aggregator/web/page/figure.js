// A figure: a title, a chart in the form that suits the number of shares, and its table behind a button.

import { el, setText, show } from "./dom.js";
import { count, isKnown, share } from "./format.js";
import { ProfileChart } from "./profile.js";
import { RowChart } from "./rows.js";
import { ShareTable } from "./table.js";

const MOST_ROWS = 24; // more rows than this no longer fit a screen: the profile shows them at once

let figures = 0;

export class ShareFigure {
  constructor(one, many) {
    figures += 1;
    [this.one, this.many] = [one, many];
    this.title = el("h3", { id: `figure-${figures}` });
    const unit = el("span", { class: "unit" });
    setText(unit, "% of devices");
    this.button = el("button", { type: "button", class: "quiet toggle", "aria-pressed": "false" });
    setText(this.button, "Table");
    this.button.setAttribute("aria-label", `Show ${many.toLowerCase()} as a table`);
    this.button.addEventListener("click", () => this.#toggle());
    this.table = new ShareTable(`${many}: estimates with 95 % intervals`);
    this.place = el("div", { class: "chart" });
    this.element = el("figure", { "aria-labelledby": this.title.id, class: many.toLowerCase() },
      el("div", { class: "figure-head" }, this.title, unit, this.button), this.place, this.table.element);
    this.asTable = false;
  }

  update(items, mean, words) {
    this.latest = [items, mean, words];
    setText(this.title, `${this.many} (${count(items.length)})`);
    if (this.asTable) {
      this.table.update(this.one, items);
      return;
    }
    const form = items.length > MOST_ROWS ? "profile" : "rows";
    if (form !== this.form) {
      this.form = form;
      this.chart = form === "rows" ? new RowChart(this.many) : new ProfileChart();
      this.place.replaceChildren(this.chart.element);
    }
    this.chart.update(items, this.#summary(items, words), mean);
  }

  #toggle() {
    this.asTable = !this.asTable;
    this.button.setAttribute("aria-pressed", String(this.asTable));
    show(this.place, !this.asTable);
    show(this.table.element, this.asTable);
    this.update(...this.latest);
  }

  // What the picture says, for who does not see it: how many shares, and the largest of them.
  #summary(items, words) {
    const largest = items.filter(isKnown).sort((a, b) => b.estimate - a.estimate).slice(0, 3);
    const named = largest.map((item) => `${item.label} ${share(item).text}`).join("; ");
    return `${this.many}, ${words}: ${count(items.length)} estimates. Largest: ${named}. The table button gives all.`;
  }
}
