// Documents of the API that a view asks for: fetched by address, kept, and fetched again when what they are made of moved.

const MOST_AT_ONCE = 4;

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
    this.known.set(address, found);
    this.onArrival();
  }
}

// The state of a round that a survey lists, as a key.
export function stateKey(line) {
  return `${line.sealed} ${line.as_of} ${line.devices} ${line.accepted}`;
}
