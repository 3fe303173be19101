// The accounting identity, in current numbers: received = accepted + duplicate + early + late + invalid + over quota.

import { el, setText } from "./dom.js";
import { count } from "./format.js";

const PARTS = [
  ["accepted", "accepted"], ["duplicate", "duplicate"], ["early", "early"],
  ["late", "late"], ["invalid", "invalid"], ["over_quota", "over quota"],
];

export class Identity {
  constructor() {
    this.terms = new Map();
    this.verdict = el("span", { class: "verdict" });
    this.element = el("p", { class: "identity" },
      this.#term("attempts", "received", ""),
      ...PARTS.map(([key, name], i) => this.#term(key, name, i ? "+" : "=")),
      this.verdict);
  }

  #term(key, name, sign) {
    const number = el("b");
    const label = el("span", { class: "term-name" });
    setText(number, "0");
    setText(label, name);
    this.terms.set(key, number);
    const sign_ = el("span", { class: "sign" });
    setText(sign_, sign);
    return el("span", { class: `term ${key}` }, ...(sign ? [sign_, " "] : []), number, " ", label, " ");
  }

  update(accounting) {
    let sum = 0;
    for (const [key, node] of this.terms) {
      const value = accounting?.[key] ?? 0;
      if (key !== "attempts") sum += value;
      setText(node, count(value));
      node.parentElement.classList.toggle("none", value === 0);
    }
    const holds = sum === (accounting?.attempts ?? 0);
    this.verdict.classList.toggle("broken", !holds);
    setText(this.verdict, holds ? "✓ adds up" : `✗ the parts give ${count(sum)}`);
  }
}
