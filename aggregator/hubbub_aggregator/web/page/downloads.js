// What can be taken along: one round, and all releases of the survey, as the API's documents and tables.

import { el, setText, show } from "./dom.js";

export class Downloads {
  constructor() {
    [this.json, this.csv] = [link("JSON"), link("CSV")];
    [this.allCsv, this.parquet] = [link("CSV"), link("Parquet")];
    this.one = group("this-round", "This round", this.json, this.csv);
    this.all = group("all-releases", "All releases", this.allCsv, this.parquet);
    this.element = el("div", { class: "links small" }, this.one, this.all);
    this.asked = false;
  }

  update(survey, round) {
    const base = `api/v1/surveys/${survey.digest}`;
    this.json.href = `${base}/rounds/${round.round}`;
    this.csv.href = `${base}/rounds/${round.round}.csv`;
    this.allCsv.href = `${base}/releases.csv`;
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

function group(name, words, ...links) {
  const title = el("span");
  setText(title, words);
  return el("p", { class: name }, title, ...links);
}
