// A chart of a few shares: one row each, a bar from the zero line, a whisker for the interval, the number beside it.
// Rows place their marks in percent of their own width, so nothing is redrawn when the window changes size.

import { el, svg, setText } from "./dom.js";
import { domain, position } from "./scale.js";
import { PERCENT, fixed, isKnown, spelled, unknown } from "./format.js";

const percent = (fraction) => `${(100 * fraction).toFixed(3)}%`;

export class RowChart {
  constructor() {
    this.rows = [];
    this.axis = svg("svg", { class: "axis", height: 22 });
    this.list = el("div", { class: "rows" });
    this.element = el("div", { class: "rowchart", role: "group" },
      this.list, el("div", { class: "row axis-row", "aria-hidden": "true" }, el("span"), this.axis, el("span")));
    new ResizeObserver(() => this.#thin()).observe(this.axis);
  }

  // `ends`: numbers that the axis holds whatever the rows are.
  update(items, summary, { unit = PERCENT, zero = true, ends = [] } = {}) {
    this.element.setAttribute("aria-label", summary);
    this.element.classList.toggle("airy", items.length <= 8);
    const known = items.filter(isKnown);
    this.element.classList.toggle("wide", known.some((item) => spelled(item, unit).text.length > 20));
    const before = this.domain;
    const held = ends.map((estimate) => ({ estimate, plain: true }));
    this.domain = domain([...known, ...held], this.unit === unit ? this.domain : undefined, { most: 5, zero, scale: unit.scale });
    this.unit = unit;
    while (this.rows.length > items.length) this.rows.pop().element.remove();
    while (this.rows.length < items.length) {
      const row = new Row();
      this.rows.push(row);
      this.list.append(row.element);
    }
    items.forEach((item, i) => this.rows[i].update(item, this.domain, before !== this.domain, unit));
    if (before !== this.domain) this.#drawAxis();
  }

  #drawAxis() {
    const { ticks, places } = this.domain;
    this.axis.replaceChildren(...ticks.map((tick) => {
      const text = svg("text", { x: percent(position(tick, this.domain)), y: 15, "text-anchor": "middle" });
      text.textContent = fixed(this.unit.scale * tick, places);
      return text;
    }));
    this.#thin();
  }

  // Shows as many labels of the axis as stand apart in the room there is, zero among them.
  #thin() {
    const texts = [...this.axis.children];
    const { width } = this.axis.getBoundingClientRect();
    if (!width || !texts.length) return;
    const { ticks, low, high } = this.domain;
    const label = 7 * Math.max(...texts.map((text) => text.textContent.length)) + 8;
    const room = (width * (ticks.at(-1) - ticks[0])) / (high - low) || 1;
    const pace = Math.max(1, Math.ceil((label * (texts.length - 1)) / room));
    const zero = Math.max(0, ticks.findIndex((tick) => tick >= 0));
    texts.forEach((text, i) => text.setAttribute("visibility", (i - zero) % pace ? "hidden" : "visible"));
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
    this.trend = svg("rect", { class: "trend", y: 1, width: 4, height: 20, rx: 1.5, visibility: "hidden" });
    this.name = el("span");
    this.label = el("span", { class: "label" }, this.name);
    this.number = el("span", { class: "number" });
    this.element = el("div", { class: "row" }, this.label,
      svg("svg", { class: "plot", height: 22, "aria-hidden": "true" }, this.grid, this.bar, this.zero, this.whisker, this.low, this.high, this.trend, this.dot),
      this.number);
  }

  update(item, range, redrawGrid, unit) {
    this.#drawLabel(item);
    if (redrawGrid || !this.grid.firstChild) {
      this.grid.replaceChildren(...range.ticks.map((tick) =>
        svg("rect", { x: percent(position(tick, range)), y: -4, width: 1, height: 30 })));
      this.zero.setAttribute("x", percent(position(range.base, range)));
    }
    const hidden = !isKnown(item);
    const smoothed = !hidden && Number.isFinite(item.trend);
    this.trend.setAttribute("visibility", smoothed ? "visible" : "hidden");
    if (smoothed) this.trend.setAttribute("x", percent(position(item.trend, range)));
    this.element.classList.toggle("unknown", hidden);
    this.element.classList.toggle("plain", Boolean(item.plain));
    setText(this.number, hidden ? unknown(item) : spelled(item, unit).text);
    if (hidden) return;
    const ends = item.plain ? [item.estimate, item.estimate] : [item.low, item.high];
    const [base, at, low, high] = [range.base, item.estimate, ...ends].map((v) => position(v, range));
    this.bar.setAttribute("x", percent(Math.min(base, at)));
    this.bar.setAttribute("width", percent(Math.abs(at - base)));
    this.whisker.setAttribute("x", percent(low));
    this.whisker.setAttribute("width", percent(high - low));
    this.low.setAttribute("x", percent(low));
    this.high.setAttribute("x", percent(high));
    this.dot.setAttribute("cx", percent(at));
    this.element.classList.toggle("negative", item.estimate < 0);
  }

  // A label leads somewhere where there is more to see.
  #drawLabel(item) {
    const wanted = item.href ? "A" : "SPAN";
    if (this.name.tagName !== wanted) {
      this.name = el(wanted.toLowerCase());
      this.label.replaceChildren(this.name);
    }
    setText(this.name, item.label);
    this.label.title = item.label;
    if (!item.href) return;
    if (this.name.getAttribute("href") !== item.href) this.name.setAttribute("href", item.href);
    if (item.current) this.name.setAttribute("aria-current", "true");
    else this.name.removeAttribute("aria-current");
  }
}
