/**
 * Local hashing's reports: which of them support which inputs.
 *
 * @module
 */

import { Pool } from '../channels/hashing.js';

/** @typedef {import('./scores.js').Spec} Spec */

/** Seeds by inputs at most: what is larger is left out. */
const MOST_LOOKS = 2 ** 24;
/** Categories by symbols at most, for the laws of categories. */
const MOST_ENTRIES = 2 ** 22;

export class Hashed {
  /** @param {Spec} spec */
  constructor(spec) {
    this.inputs = Number(spec.int('inputs'));
    this.pool = new Pool(this.inputs, spec.int('buckets'));
    this.symbols = this.pool.seeds * this.pool.q;
    this.t = Number(spec.int('t'));
    this.u = Number(spec.int('u'));
    this.gap = Number(spec.int('t') - spec.int('u'));
    /** T */
    this.total = this.pool.seeds * (this.t + (this.pool.q - 1) * this.u);
    /** Whether symbols can be looked at one by one. */
    this.isSmall = this.pool.seeds * this.inputs <= MOST_LOOKS;
    /** The symbol of every input under every seed, by seeds. @type {Uint32Array | null} */
    this.table = null;
  }

  /** Return whether the laws of so many categories are worked out. @param {number} categories */
  tells(categories) {
    return this.isSmall && categories * this.symbols <= MOST_ENTRIES;
  }

  /** Return, per symbol, the sum of the shares of the inputs that it supports. @param {number[]} inputs @param {(x: number) => number} share */
  sums(inputs, share) {
    const { seeds, q } = this.pool;
    if (this.table === null) {
      this.table = new Uint32Array(seeds * this.inputs);
      for (let s = 0; s < seeds; s++) {
        for (let x = 0; x < this.inputs; x++) this.table[s * this.inputs + x] = s * q + this.pool.cell(s, x);
      }
    }
    const found = new Float64Array(this.symbols);
    for (let s = 0; s < seeds; s++) for (const x of inputs) found[this.table[s * this.inputs + x]] += share(x);
    return found;
  }

  /** Return how many of some inputs every symbol supports. @param {number[]} inputs */
  held(inputs) {
    return this.sums(inputs, () => 1);
  }

  /** Return how often every symbol is sent by devices of these shares, which sum to one. @param {number[]} inputs @param {(x: number) => number} share */
  sent(inputs, share) {
    return this.sums(inputs, share).map((held) => (this.u + this.gap * held) / this.total);
  }
}
