// The same numbers as a table: for readers of screens, for copying, and for who prefers digits. A column's head sorts it.

import { el, setText } from "./dom.js";
import { PERCENT, aligned, count, isKnown, smooth, spelled, unknown } from "./format.js";

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
    this.heads = "";
    this.sort = null; // {column, down}; null is the survey's own order
  }

  update(kind, items, unit = PERCENT) {
    this.latest = [kind, items, unit];
    this.columns = columnsOf(kind, items, unit);
    this.#drawHeads();
    const shown = this.#sorted(items).slice(0, MOST_ROWS);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) {
      const cells = this.columns.slice(1).map(({ isText }) => el("td", { class: isText ? "text" : false }));
      this.body.append(el("tr", {}, el("th", { scope: "row" }), ...cells));
    }
    this.columns.forEach(({ texts }, j) => texts(shown).forEach((text, i) => setText(this.body.rows[i].cells[j], text)));
    const notes = [
      ...(unit.cut && items.some((item) => !item.plain) ? [unit.cut] : []),
      ...(items.length > MOST_ROWS ? [`The first ${count(MOST_ROWS)} of ${count(items.length)} values; the CSV has all of them.`] : []),
    ];
    this.note.hidden = !notes.length;
    setText(this.note, notes.join(" "));
  }

  #drawHeads() {
    const heads = this.columns.map(({ head }) => head).join();
    if (heads !== this.heads) {
      this.heads = heads;
      this.sort = null;
      this.head.replaceChildren(...this.columns.map(({ head, isText }, i) => {
        const button = el("button", { type: "button" });
        setText(button, head);
        button.addEventListener("click", () => this.#sortBy(i));
        return el("th", { scope: "col", class: isText ? "text" : false }, button);
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
    const first = column > 0 && !this.columns[column].isText;
    const { sort } = this;
    if (sort?.column !== column) this.sort = { column, down: first };
    else this.sort = sort.down === first ? { column, down: !first } : null;
    this.update(...this.latest);
  }

  #sorted(items) {
    if (!this.sort) return items;
    const { key } = this.columns[this.sort.column];
    const order = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    const turned = this.sort.down ? -1 : 1;
    return [...items].sort((a, b) => turned * order(key(a), key(b)));
  }
}

// The columns that the rows need: a head, the texts of the rows shown, and what they are sorted by.
function columnsOf(kind, items, unit) {
  const spell = (item) => (isKnown(item) ? spelled(item, unit) : { estimate: unknown(item), half: "–", interval: "–" });
  const signed = (text) => (/\d/.test(text) ? text + (unit.sign.startsWith("\u202f") ? " %" : "") : text);
  const digits = (name) => (rows) => aligned(rows.map((item) => spell(item)[name])).map(signed);
  const plainly = (text) => (rows) => rows.map(text);
  const worded = (name) => ({ texts: plainly((item) => item[name] ?? ""), key: (item) => item[name] ?? "", isText: true });
  const known = (item, value) => (isKnown(item) ? value : -Infinity);
  const columns = [{ head: kind, texts: plainly((item) => item.label), key: (item) => item.label }];
  if (items.some(({ category, label }) => category !== undefined && category !== null && category !== label)) {
    columns.push({ head: "Category", ...worded("category") });
  }
  if (items.some((item) => item.tick)) columns.push({ head: "Begins", ...worded("tick"), key: (item) => item.begins });
  if (items.some((item) => item.stage)) columns.push({ head: "Stage", ...worded("stage") });
  columns.push(
    { head: "Estimate", texts: digits("estimate"), key: (item) => item.estimate ?? -Infinity },
    { head: "± half width", texts: digits("half"), key: (item) => known(item, item.high - item.low) },
    { head: "95 % interval", texts: plainly((item) => spell(item).interval), key: (item) => item.low ?? -Infinity },
  );
  if (items.some((item) => Number.isFinite(item.trend))) {
    columns.push({ head: "Smoothed", texts: plainly((item) => (Number.isFinite(item.trend) ? smooth(item, unit) : "–")), key: (item) => item.trend ?? -Infinity });
  }
  return columns;
}
