// A small table of texts and links, rewritten in place.

import { el, setText, show } from "./dom.js";

// The columns named in `words` hold words, the others numbers.
export class TextTable {
  constructor(caption, heads, words) {
    this.words = words;
    const title = el("caption");
    setText(title, caption);
    this.body = el("tbody");
    const head = el("tr", {}, ...heads.map((text, i) => {
      const cell = el("th", { scope: "col", class: words.includes(i) ? "text" : false });
      setText(cell, text);
      return cell;
    }));
    this.element = el("div", { class: "tablebox", tabindex: 0, role: "region", "aria-label": caption },
      el("table", {}, title, el("thead", {}, head), this.body));
  }

  update(rows) {
    show(this.element, rows.length > 0);
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((row, i) => {
      if (!this.body.rows[i]) {
        this.body.append(el("tr", {}, ...row.map((_, j) => el(j ? "td" : "th", { scope: j ? false : "row", class: this.words.includes(j) ? "text" : false }))));
      }
      row.forEach((cell, j) => put(this.body.rows[i].cells[j], cell));
    });
  }
}

function put(node, cell) {
  if (typeof cell === "string") {
    setText(node, cell);
    return;
  }
  let link = node.firstElementChild;
  if (!link) {
    link = el("a");
    node.replaceChildren(link);
  }
  setText(link, cell.text);
  if (link.getAttribute("href") !== cell.href) link.setAttribute("href", cell.href);
}
