// Documents of the API that a view asks for: fetched by address, kept, and fetched again when what they are made of moved.

const MOST_AT_ONCE = 4;
const MOST_KEPT = 128; // more than any view looks at: a page on a wall must not keep a year of rounds

export class Answers {
  constructor(onArrival) {
    this.onArrival = onArrival;
    this.known = new Map();
    this.asked = new Set();
    this.waiting = [];
  }

  // The newest answer of an address, {document} or {problem}, or null while none has come. `key` names the state of what the
  // answer is made of: another key asks for a newer one.
  get(address, key) {
    const found = this.known.get(address);
    if (found) this.#keep(address, found);
    if (found?.key !== key && !this.asked.has(address)) {
      this.asked.add(address);
      this.waiting.push([address, key]);
      this.#next();
    }
    return found ?? null;
  }

  #next() {
    while (this.waiting.length && this.asked.size - this.waiting.length < MOST_AT_ONCE) this.#fetch(...this.waiting.shift());
  }

  async #fetch(address, key) {
    let found = null;
    try {
      const response = await fetch(address, { cache: "no-cache", signal: AbortSignal.timeout(20_000) });
      if (response.ok) found = { key, document: await response.json() };
      else if (response.status < 500) found = { key, problem: await response.json() };
    } catch {
      // The connection's own state tells the reader; the next update asks again.
    }
    this.asked.delete(address);
    this.#next();
    if (!found) return;
    this.#keep(address, found);
    this.onArrival();
  }

  // What was looked at last stays longest.
  #keep(address, found) {
    this.known.delete(address);
    this.known.set(address, found);
    if (this.known.size > MOST_KEPT) this.known.delete(this.known.keys().next().value);
  }
}

// The state of a round that a survey lists, as a key.
export function stateKey(line) {
  return `${line.sealed} ${line.as_of} ${line.devices} ${line.accepted} ${line.recounts?.length ?? 0}`;
}
