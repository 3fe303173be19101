// Rounds in full, fetched by name and kept: the live document holds one round of each survey.

const MOST_AT_ONCE = 4;

export class Rounds {
  constructor(onArrival) {
    this.onArrival = onArrival;
    this.known = new Map();
    this.asked = new Set();
    this.waiting = [];
  }

  // What is known of a line's round: the newest document that came, or null; asks for a newer one where there is.
  get(line) {
    const key = `${line.sealed} ${line.as_of} ${line.devices} ${line.accepted}`;
    const found = this.known.get(line.json);
    if (found?.key !== key && !this.asked.has(line.json)) {
      this.asked.add(line.json);
      this.waiting.push([line, key]);
      this.#next();
    }
    return found?.document ?? null;
  }

  #next() {
    while (this.waiting.length && this.asked.size - this.waiting.length < MOST_AT_ONCE) this.#fetch(...this.waiting.shift());
  }

  async #fetch(line, key) {
    let document_ = null;
    try {
      const response = await fetch(line.json, { cache: "no-cache", signal: AbortSignal.timeout(20_000) });
      if (response.ok) document_ = await response.json();
    } catch {
      // The connection's own state tells the reader; the next update asks again.
    }
    this.asked.delete(line.json);
    this.#next();
    if (!document_) return;
    this.known.set(line.json, { key, document: document_ });
    this.onArrival();
  }
}
