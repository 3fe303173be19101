// The same numbers as a table: for readers of screens, for copying, and for who prefers digits. A column's head sorts it.

import { el, setText } from "./dom.js";
import { PERCENT, aligned, count, isKnown, smooth, spelled } from "./format.js";

const MOST_ROWS = 1000; // what a browser lays out without a pause; the CSV has all

export class ShareTable {
  constructor(caption) {
    this.caption = el("caption");
    setText(this.caption, caption);
    this.head = el("tr");
    this.body = el("tbody");
    this.note = el("p", { class: "small", hidden: true });
    this.table = el("table", {}, this.caption, el("thead", {}, this.head), this.body);
    this.element = el("div", { class: "tablebox", tabindex: 0, role: "region", "aria-label": caption, hidden: true }, this.table, this.note);
    this.columns = [];
    this.sort = null; // {column, down}; null is the survey's own order
  }

  update(kind, items, unit = PERCENT) {
    this.latest = [kind, items, unit];
    const withCategory = items.some((item) => item.category !== undefined && item.category !== null && item.category !== item.label);
    const withTrend = items.some((item) => Number.isFinite(item.trend));
    this.#drawHeads([kind, ...(withCategory ? ["Category"] : []), "Estimate", "± half width", "95 % interval", ...(withTrend ? ["Smoothed"] : [])]);
    const shown = this.#sorted(items, withCategory).slice(0, MOST_ROWS);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) {
      const cells = this.columns.slice(1).map((head) => el("td", { class: head === "Category" ? "text" : false }));
      this.body.append(el("tr", {}, el("th", { scope: "row" }), ...cells));
    }
    const texts = shown.map((item) => (isKnown(item) ? spelled(item, unit) : { estimate: "not identifiable", half: "–", interval: "–" }));
    const estimates = aligned(texts.map((text) => text.estimate));
    const halves = aligned(texts.map((text) => text.half));
    const signed = (text, sign) => (/\d/.test(text) ? text + (sign.startsWith("\u202f") ? " %" : "") : text);
    shown.forEach((item, i) => {
      const cells = [item.label, ...(withCategory ? [item.category ?? ""] : []),
        signed(estimates[i], unit.sign), signed(halves[i], unit.sign), texts[i].interval,
        ...(withTrend ? [Number.isFinite(item.trend) ? smooth(item, unit) : "–"] : [])];
      [...this.body.rows[i].cells].forEach((cell, j) => setText(cell, cells[j]));
    });
    this.note.hidden = items.length <= MOST_ROWS;
    setText(this.note, `The first ${count(MOST_ROWS)} of ${count(items.length)} values; the CSV has all of them.`);
  }

  #drawHeads(heads) {
    if (heads.join() !== this.columns.join()) {
      this.columns = heads;
      this.sort = null;
      this.head.replaceChildren(...heads.map((text, i) => {
        const button = el("button", { type: "button" });
        setText(button, text);
        button.addEventListener("click", () => this.#sortBy(i));
        return el("th", { scope: "col", class: text === "Category" ? "text" : false }, button);
      }));
      this.body.replaceChildren();
    }
    [...this.head.cells].forEach((cell, i) => {
      if (this.sort?.column === i) cell.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }

  // A first press sorts, numbers from the largest; a second turns it round; a third gives the survey's order back.
  #sortBy(column) {
    const first = column > 0 && this.columns[column] !== "Category";
    const { sort } = this;
    if (sort?.column !== column) this.sort = { column, down: first };
    else this.sort = sort.down === first ? { column, down: !first } : null;
    this.update(...this.latest);
  }

  #sorted(items, withCategory) {
    if (!this.sort) return items;
    const keys = [(item) => item.label, ...(withCategory ? [(item) => item.category ?? ""] : []),
      (item) => item.estimate ?? -Infinity, (item) => (item.low === null ? -Infinity : item.high - item.low), (item) => item.low ?? -Infinity, (item) => item.trend ?? -Infinity];
    const key = keys[this.sort.column];
    const order = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    const turned = this.sort.down ? -1 : 1;
    return [...items].sort((a, b) => turned * order(key(a), key(b)));
  }
}
