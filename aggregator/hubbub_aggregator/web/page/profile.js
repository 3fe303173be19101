// A chart of many shares: values from left to right in the survey's order, bars from the zero line, whiskers for the
// intervals, bands for the categories. A cursor, by pointer or by arrow keys, reads one value out.
// A few paths draw everything, so that a hundred thousand values cost no more elements than a hundred.

import { el, svg, setText } from "./dom.js";
import { domain, position } from "./scale.js";
import { PERCENT, count, fixed, isKnown, quantity, smooth, spelled, unknown } from "./format.js";

const HEIGHT = 272;
const TOP = 26;
const BOTTOM = 28;
const LEFT = 46;
const RIGHT = 6;
const LEAST = 2.5; // pixels per value; below that, neighbours share a column

export class ProfileChart {
  constructor() {
    this.items = [];
    this.at = null;
    this.bands = svg("g", { class: "bands" });
    this.grid = svg("g", { class: "grid" });
    this.area = svg("path", { class: "area" });
    this.bars = svg("path", { class: "bars" });
    this.whiskers = svg("path", { class: "whiskers" });
    this.dots = svg("path", { class: "dots" });
    this.open = svg("path", { class: "dots open" });
    this.hollow = svg("path", { class: "hollow" });
    this.trend = svg("path", { class: "trendline" });
    this.labels = svg("g", { class: "ticks" });
    this.meanMark = svg("g", { class: "mean" });
    this.cursor = svg("rect", { class: "cursor", y: TOP, height: HEIGHT - TOP - BOTTOM, visibility: "hidden" });
    this.zero = svg("rect", { class: "zero", x: LEFT, height: 1 });
    this.plot = svg("svg", { class: "profile", height: HEIGHT, tabindex: 0, role: "slider", "aria-orientation": "horizontal" },
      this.bands, this.grid, this.cursor, this.area, this.bars, this.zero, this.whiskers, this.trend, this.dots, this.open,
      this.hollow, this.meanMark, this.labels);
    this.readout = el("p", { class: "readout", "aria-hidden": "true" });
    this.element = el("div", { class: "profilechart" }, this.plot, this.readout);
    this.plot.addEventListener("pointermove", (event) => this.#point(event));
    this.plot.addEventListener("pointerdown", (event) => this.#point(event));
    this.plot.addEventListener("pointerleave", () => { if (document.activeElement !== this.plot) this.#select(null); });
    this.plot.addEventListener("focus", () => { if (this.at === null) this.#select(0); });
    this.plot.addEventListener("blur", () => this.#select(null));
    this.plot.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  // `form`: "bars" from the zero line; "curve", a line in its band; "points", hollow where an item is `open`.
  update(items, summary, { mean = null, unit = PERCENT, form = "bars", zero = true } = {}) {
    if (this.unit !== unit || this.form !== form) this.domain = undefined;
    [this.unit, this.form, this.withZero] = [unit, form, zero];
    this.items = items;
    this.mean = mean;
    this.summary = summary;
    this.plot.setAttribute("aria-label", summary);
    this.plot.setAttribute("aria-valuemin", 1);
    this.plot.setAttribute("aria-valuemax", Math.max(items.length, 1));
    this.#draw();
  }

  #draw() {
    const width = Math.floor(this.element.clientWidth);
    const { items } = this;
    if (!width || !items.length) return;
    this.plot.setAttribute("width", width);
    this.plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.inner = width - LEFT - RIGHT;
    this.domain = domain(items.filter(isKnown), this.domain, { zero: this.withZero, scale: this.unit.scale });
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * position(value, this.domain);
    const pitch = this.inner / items.length;
    this.each = Math.max(1, Math.ceil(LEAST / pitch));
    this.#drawMarks(y, pitch);
    this.#drawGrid(y, width);
    this.#drawBands(pitch);
    this.#drawTicks(pitch);
    this.#drawMean(y);
    this.#select(this.at);
  }

  #drawMarks(y, pitch) {
    const bars = [];
    const whiskers = [];
    const [dots, open, band] = [[], [], []];
    const zero = y(this.domain.base).toFixed(1);
    const curve = this.form === "curve";
    const { items, each } = this;
    const cap = Math.min(3, pitch * 0.28);
    for (let i = 0; i < items.length; i += each) {
      let [low, high, least, most] = [Infinity, -Infinity, Infinity, -Infinity];
      for (const item of items.slice(i, i + each)) {
        if (!isKnown(item)) continue;
        low = Math.min(low, item.plain ? item.estimate : item.low);
        high = Math.max(high, item.plain ? item.estimate : item.high);
        least = Math.min(least, item.estimate);
        most = Math.max(most, item.estimate);
      }
      if (low > high) continue;
      const x = (LEFT + pitch * (i + Math.min(each, items.length - i) / 2)).toFixed(1);
      if (curve) bars.push(`${bars.length ? "L" : "M"}${x} ${y((least + most) / 2).toFixed(1)}`);
      else if (this.form === "bars") bars.push(`M${x} ${zero}V${y(Math.abs(least) > Math.abs(most) ? least : most).toFixed(1)}`);
      if (curve) {
        band.push(`${x} ${y(high).toFixed(1)}`);
        band.unshift(`${x} ${y(low).toFixed(1)}`);
      } else if (high > low) whiskers.push(`M${x} ${y(low).toFixed(1)}V${y(high).toFixed(1)}`);
      if (!curve && high > low && each === 1 && pitch >= 7) {
        for (const end of [low, high]) whiskers.push(`M${(x - cap).toFixed(1)} ${y(end).toFixed(1)}h${(2 * cap).toFixed(1)}`);
      }
      (items.slice(i, i + each).some((item) => item.open) ? open : dots).push(each === 1 ? `M${x} ${y(least).toFixed(1)}h0` : `M${x} ${y(least).toFixed(1)}V${y(most).toFixed(1)}`);
    }
    const smoothed = items.map((item, i) => [LEFT + pitch * (i + 0.5), item.trend]).filter(([, level]) => Number.isFinite(level));
    this.trend.setAttribute("d", smoothed.map(([x, level], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y(level).toFixed(1)}`).join(""));
    const column = pitch * each;
    this.area.setAttribute("d", band.length ? `M${band.join("L")}Z` : "");
    this.bars.setAttribute("d", bars.join(""));
    this.bars.setAttribute("class", curve ? "curve" : "bars");
    this.bars.setAttribute("stroke-width", curve ? 2 : Math.max(1, Math.min(26, column * 0.72)).toFixed(1));
    this.whiskers.setAttribute("d", whiskers.join(""));
    this.whiskers.setAttribute("stroke-width", column >= 7 ? 1.5 : 1);
    this.dots.setAttribute("d", dots.join(""));
    const points = this.form === "points";
    const dot = Math.max(points ? 3 : 1.6, Math.min(points ? 8 : 5.5, column * 0.55));
    this.whiskers.setAttribute("opacity", points && column < 7 ? 0.4 : 1); // many whiskers must not hide their points
    this.dots.setAttribute("stroke-width", dot.toFixed(1));
    for (const [path, size] of [[this.open, dot + 1], [this.hollow, dot / 2]]) {
      path.setAttribute("d", open.join(""));
      path.setAttribute("stroke-width", size.toFixed(1));
    }
    this.zero.setAttribute("y", (y(this.domain.base) - 0.5).toFixed(1));
    this.zero.setAttribute("width", this.inner);
  }

  #drawGrid(y, width) {
    const { ticks, places } = this.domain;
    this.grid.replaceChildren(...ticks.flatMap((tick) => {
      const text = svg("text", { x: LEFT - 7, y: (y(tick) + 4).toFixed(1), "text-anchor": "end" });
      text.textContent = fixed(this.unit.scale * tick, places);
      return [svg("rect", { x: LEFT, y: (y(tick) - 0.5).toFixed(1), width: width - LEFT - RIGHT, height: 1 }), text];
    }));
  }

  // Runs of one category, as alternating grounds with the name above where it fits.
  #drawBands(pitch) {
    const runs = [];
    this.items.forEach((item, i) => {
      const last = runs[runs.length - 1];
      if (last && last.name === item.category) last.length += 1;
      else runs.push({ name: item.category, start: i, length: 1 });
    });
    const useful = runs.length > 1 && runs.length < this.items.length;
    this.bands.replaceChildren(...(useful ? runs : []).flatMap((run, i) => {
      const x = LEFT + pitch * run.start;
      const width = pitch * run.length;
      const name = String(run.name ?? "");
      const text = svg("text", { x: (x + width / 2).toFixed(1), y: TOP - 9, "text-anchor": "middle" });
      const room = Math.floor((width - 6) / 8);
      text.textContent = name.length <= room ? name : room >= 4 ? `${name.slice(0, room - 1)}…` : "";
      const ground = svg("rect", {
        class: i % 2 ? "odd" : "even", x: x.toFixed(1), y: TOP - 24, width: width.toFixed(1), height: HEIGHT - TOP - BOTTOM + 24,
      });
      const title = svg("title");
      title.textContent = name;
      ground.append(title);
      return [ground, text];
    }));
  }

  // Labels under the axis: as many as fit without touching, at a regular pace.
  #drawTicks(pitch) {
    const { items } = this;
    const name = (item) => item.tick ?? item.label;
    const longest = Math.min(14, Math.max(...items.slice(0, 400).map((item) => name(item).length)));
    const pace = niceEvery((longest * 7 + 12) / pitch);
    const ticks = [];
    for (let i = 0; i < items.length; i += pace) {
      const x = LEFT + pitch * (i + 0.5);
      const text = svg("text", { x: x.toFixed(1), y: HEIGHT - 7, "text-anchor": "middle" });
      const label = name(items[i]);
      text.textContent = label.length > 14 ? `${label.slice(0, 13)}…` : label;
      if (x + (longest * 7) / 2 <= LEFT + this.inner + RIGHT + 2) ticks.push(text);
    }
    this.labels.replaceChildren(...ticks);
  }

  // The mean, where the labels are numbers in order: a line and a band across the chart.
  #drawMean(y) {
    const place = this.mean ? placeOnLabels(this.items) : null;
    if (!place) return this.meanMark.replaceChildren();
    const pitch = this.inner / this.items.length;
    const x = (value) => LEFT + pitch * (place(value) + 0.5);
    const [low, at, high] = [x(this.mean.low), x(this.mean.estimate), x(this.mean.high)];
    const inside = (value) => Math.min(Math.max(value, LEFT), LEFT + this.inner);
    const band = svg("rect", {
      class: "band", x: inside(low).toFixed(1), width: Math.max(1, inside(high) - inside(low)).toFixed(1),
      y: TOP, height: HEIGHT - TOP - BOTTOM,
    });
    const line = svg("path", { class: "line", d: `M${inside(at).toFixed(1)} ${TOP}V${HEIGHT - BOTTOM}` });
    const right = at > LEFT + this.inner * 0.7;
    const text = svg("text", { x: (inside(at) + (right ? -6 : 6)).toFixed(1), y: TOP + 12, "text-anchor": right ? "end" : "start" });
    text.textContent = `mean ${quantity(this.mean).estimate}`;
    return this.meanMark.replaceChildren(band, line, text);
  }

  #point(event) {
    const box = this.plot.getBoundingClientRect();
    const i = Math.floor((event.clientX - box.left - LEFT) / (this.inner / this.items.length));
    if (i >= 0 && i < this.items.length) this.#select(i);
  }

  #key(event) {
    const last = this.items.length - 1;
    const page = Math.max(1, Math.round(last / 10));
    const moves = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page, Home: -Infinity, End: Infinity,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.#select(Math.min(Math.max((this.at ?? 0) + moves[event.key], 0), last));
  }

  #select(i) {
    this.at = i === null ? null : Math.min(i, this.items.length - 1);
    const item = this.at === null ? null : this.items[this.at];
    this.cursor.setAttribute("visibility", item ? "visible" : "hidden");
    if (!item) {
      this.plot.setAttribute("aria-valuenow", 1);
      this.plot.setAttribute("aria-valuetext", "no value read out; use the arrow keys");
      setText(this.readout, this.each > 1
        ? `Each column spans ${count(this.each)} values. Point at one, or use the arrow keys.`
        : "Point at the chart, or use the arrow keys.");
      return;
    }
    const pitch = this.inner / this.items.length;
    const width = Math.max(pitch, 2);
    this.cursor.setAttribute("x", (LEFT + pitch * (this.at + 0.5) - width / 2).toFixed(1));
    this.cursor.setAttribute("width", width.toFixed(1));
    const where = item.said ?? (item.category && item.category !== item.label ? `${item.label} (${item.category})` : item.label);
    const smoothed = Number.isFinite(item.trend) ? `, smoothed ${smooth(item, this.unit)}` : "";
    const text = isKnown(item)
      ? `${where}: ${spelled(item, this.unit).text}${item.plain ? "" : `, 95 % interval ${spelled(item, this.unit).interval}`}${smoothed}`
      : `${where}: ${unknown(item)}`;
    setText(this.readout, text);
    this.plot.setAttribute("aria-valuenow", this.at + 1);
    this.plot.setAttribute("aria-valuetext", text);
  }
}

// The least of 1, 2, 5, 10, 20, 50 ... that is at least `least`.
function niceEvery(least) {
  for (let power = 1; ; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  }
}

// A function from a number to its place among the labels (0 is the first label), or null when they are not numbers
// in ascending order. The label "missing" is left out.
export function placeOnLabels(items) {
  const numbers = items.filter((item) => item.label !== "missing").map((item) => (item.label.trim() === "" ? NaN : Number(item.label)));
  if (numbers.length < 2 || !numbers.every((n, i) => Number.isFinite(n) && (i === 0 || n > numbers[i - 1]))) return null;
  return (value) => {
    let i = 1;
    while (i < numbers.length - 1 && numbers[i] < value) i += 1;
    return i - 1 + (value - numbers[i - 1]) / (numbers[i] - numbers[i - 1]);
  };
}
