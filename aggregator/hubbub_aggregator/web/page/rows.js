// A chart of a few shares: one row each, a bar from the zero line, a whisker for the interval, the number beside it.
// Rows place their marks in percent of their own width, so nothing is redrawn when the window changes size.

import { el, svg, setText } from "./dom.js";
import { domain, position } from "./scale.js";
import { fixed, isKnown, share } from "./format.js";

const percent = (fraction) => `${(100 * fraction).toFixed(3)}%`;

export class RowChart {
  constructor(name) {
    this.rows = [];
    this.axis = svg("svg", { class: "axis", height: 22 });
    this.list = el("div", { class: "rows" });
    this.element = el("div", { class: "rowchart", role: "img", "aria-label": name },
      this.list, el("div", { class: "row axis-row", "aria-hidden": "true" }, el("span"), this.axis, el("span")));
  }

  update(items, summary) {
    this.element.setAttribute("aria-label", summary);
    this.element.classList.toggle("airy", items.length <= 8);
    const known = items.filter(isKnown);
    const before = this.domain;
    this.domain = domain(known, this.domain, 5);
    while (this.rows.length > items.length) this.rows.pop().element.remove();
    while (this.rows.length < items.length) {
      const row = new Row();
      this.rows.push(row);
      this.list.append(row.element);
    }
    items.forEach((item, i) => this.rows[i].update(item, this.domain, before !== this.domain));
    if (before !== this.domain) this.#drawAxis();
  }

  #drawAxis() {
    const { ticks, places } = this.domain;
    this.axis.replaceChildren(...ticks.map((tick) => {
      const text = svg("text", { x: percent(position(tick, this.domain)), y: 15, "text-anchor": "middle" });
      text.textContent = fixed(100 * tick, places);
      return text;
    }));
  }
}

class Row {
  constructor() {
    this.grid = svg("g", { class: "grid" });
    this.bar = svg("rect", { class: "bar", y: 5, height: 12 });
    this.zero = svg("rect", { class: "zero", y: -4, width: 1, height: 30 });
    this.whisker = svg("rect", { class: "whisker", y: 10.25, height: 1.5 });
    this.low = svg("rect", { class: "whisker", y: 7, width: 1.5, height: 8 });
    this.high = svg("rect", { class: "whisker", y: 7, width: 1.5, height: 8 });
    this.dot = svg("circle", { class: "dot", cy: 11, r: 4 });
    this.label = el("span", { class: "label" });
    this.number = el("span", { class: "number" });
    this.element = el("div", { class: "row" }, this.label,
      svg("svg", { class: "plot", height: 22 }, this.grid, this.bar, this.zero, this.whisker, this.low, this.high, this.dot),
      this.number);
  }

  update(item, range, redrawGrid) {
    setText(this.label, item.label);
    this.label.title = item.label;
    if (redrawGrid || !this.grid.firstChild) {
      this.grid.replaceChildren(...range.ticks.map((tick) =>
        svg("rect", { x: percent(position(tick, range)), y: -4, width: 1, height: 30 })));
      this.zero.setAttribute("x", percent(position(0, range)));
    }
    const hidden = !isKnown(item);
    this.element.classList.toggle("unknown", hidden);
    setText(this.number, hidden ? "not identifiable" : share(item).text);
    if (hidden) return;
    const [zero, at, low, high] = [0, item.estimate, item.low, item.high].map((v) => position(v, range));
    this.bar.setAttribute("x", percent(Math.min(zero, at)));
    this.bar.setAttribute("width", percent(Math.abs(at - zero)));
    this.whisker.setAttribute("x", percent(low));
    this.whisker.setAttribute("width", percent(high - low));
    this.low.setAttribute("x", percent(low));
    this.high.setAttribute("x", percent(high));
    this.dot.setAttribute("cx", percent(at));
    this.element.classList.toggle("negative", item.estimate < 0);
  }
}
