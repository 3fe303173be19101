// What can be taken along: one round, all releases of the survey, and what checks them, as the API's documents and tables.

import { el, setText, show } from "./dom.js";

export class Downloads {
  constructor() {
    [this.json, this.csv] = [link("JSON"), link("CSV")];
    [this.allCsv, this.parquet] = [link("CSV"), link("Parquet")];
    this.one = group("this-round", "This round", this.json, this.csv);
    this.all = group("all-releases", "All releases", this.allCsv, this.parquet);
    this.checked = [link("release"), link("counts"), link("survey")];
    this.check = group("to-check", "To check", ...this.checked, note());
    this.element = el("div", { class: "links small" }, this.one, this.all, this.check);
    this.asked = false;
  }

  update(survey, round) {
    const base = `api/v1/surveys/${survey.digest}`;
    this.json.href = `${base}/rounds/${round.round}`;
    this.csv.href = `${base}/rounds/${round.round}.csv`;
    this.allCsv.href = `${base}/releases.csv`;
    const parts = [`rounds/${round.round}/sealed`, `rounds/${round.round}/counts`, "canonical"];
    parts.forEach((part, i) => (this.checked[i].href = `${base}/${part}`));
    show(this.check, round.sealed && !round.suppressed);
    const released = survey.rounds.some((line) => line.sealed && !line.suppressed);
    show(this.all, released);
    if (released) this.#offerParquet(`${base}/releases.parquet`);
  }

  // A server without DuckDB writes no Parquet: asked once, by a request without a body.
  async #offerParquet(address) {
    this.parquet.href = address;
    if (this.asked) return;
    this.asked = true;
    show(this.parquet, false);
    try {
      const response = await fetch(address, { method: "HEAD", signal: AbortSignal.timeout(20_000) });
      show(this.parquet, response.ok);
    } catch {
      this.asked = false; // the next update asks again
    }
  }
}

function link(words) {
  const node = el("a");
  setText(node, words);
  return node;
}

// A page of the operator finds mistakes, not lies: it says so, and what would find lies.
function note() {
  const node = el("span");
  setText(node, "“Sealed” is this server’s own word, and this page would find its mistakes, not its lies. To find those, open verify.html, from a copy of Hubbub that is not this server’s, and give it this server’s address.");
  return node;
}

function group(name, words, ...links) {
  const title = el("span");
  setText(title, words);
  return el("p", { class: name }, title, ...links);
}
