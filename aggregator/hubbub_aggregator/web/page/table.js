// The same numbers as a table: for readers of screens, for copying, and for who prefers digits.

import { el, setText } from "./dom.js";
import { count, isKnown, share } from "./format.js";

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
    this.columns = 0;
  }

  update(kind, items) {
    const withCategory = items.some((item) => item.category !== undefined && item.category !== null && item.category !== item.label);
    const heads = [kind, ...(withCategory ? ["Category"] : []), "Estimate", "± half width", "95 % interval"];
    if (heads.length !== this.columns) {
      this.columns = heads.length;
      this.head.replaceChildren(...heads.map((text) => {
        const cell = el("th", { scope: "col", class: text === "Category" ? "text" : false });
        setText(cell, text);
        return cell;
      }));
      this.body.replaceChildren();
    }
    const shown = items.slice(0, MOST_ROWS);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) {
      const cells = heads.slice(1).map((head) => el("td", { class: head === "Category" ? "text" : false }));
      this.body.append(el("tr", {}, el("th", { scope: "row" }), ...cells));
    }
    shown.forEach((item, i) => {
      const text = isKnown(item) ? share(item) : null;
      const texts = [
        item.label,
        ...(withCategory ? [item.category ?? ""] : []),
        ...(text ? [`${text.estimate} %`, `${text.half} %`, text.interval] : ["not identifiable", "–", "–"]),
      ];
      [...this.body.rows[i].cells].forEach((cell, j) => setText(cell, texts[j]));
    });
    this.note.hidden = items.length <= MOST_ROWS;
    setText(this.note, `The first ${count(MOST_ROWS)} of ${count(items.length)} values; the CSV has all of them.`);
  }
}
