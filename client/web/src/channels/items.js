/**
 * Sets of items: one random subset of items and dummies for the whole set.
 *
 * @module
 */

import { unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { below, little } from '../random.js';
import { constant, packed, unpacked } from './distance.js';
import { MAX_TOTAL } from './keys.js';

/** @typedef {import('./keys.js').Ratio} Ratio */
/** @typedef {import('../random.js').Bytes} Bytes */

const MAX_MOST = 256;
const MAX_BINS = 2 ** 13;
/** The larger of the two weights that a filter reads. */
const NEAR = 2n ** 62n;

/** Return how many subsets of k there are. @param {number} n @param {number} k */
export function choose(n, k) {
  let found = 1n;
  for (let i = 1; i <= k; i++) found = (found * BigInt(n - k + i)) / BigInt(i);
  return k <= n ? found : 0n;
}

/** Another source's bytes, read so many at a time. @implements {Bytes} */
class Ahead {
  /** @param {Bytes} source @param {number} size */
  constructor(source, size) {
    this.source = source;
    this.size = size;
    this.left = new Uint8Array(0);
  }

  /** @param {number} n */
  take(n) {
    if (n > this.left.length) {
      this.left = new Uint8Array([...this.left, ...this.source.take(Math.max(n, this.size))]);
    }
    const found = this.left.subarray(0, n);
    this.left = this.left.subarray(n);
    return found;
  }
}

/** An input is a list of at most `most` items; any two sets are told apart alike. */
export class SetSelection {
  static keys = ['inputs', 'most', 'size', 'held'];
  tellsInputs = false;

  /** @param {import('./keys.js').Keys} keys */
  constructor(keys) {
    this.inputs = keys.count('inputs');
    const [most, size, held] = [keys.int('most'), keys.int('size'), keys.int('held')];
    must(this.inputs >= 2 && most <= MAX_MOST && this.inputs + Number(most) <= MAX_BINS, 'too many items');
    must(size <= this.inputs, 'a set of at most K cells');
    this.most = Number(most);
    this.size = Number(size);
    this.held = held;
    this.bins = this.inputs + this.most;
    const missed = choose(this.inputs, this.size);
    const meeting = choose(this.bins, this.size) - missed;
    /** @type {Ratio} */
    this.odds = [held * missed, (MAX_TOTAL - held) * meeting];
    must(this.odds[0] > this.odds[1], 'what meets the set must be favoured');
  }

  /** @returns {Ratio} */
  ratio() {
    return this.odds;
  }

  /** Return how many cells of the set a symbol that meets it has. @param {Bytes} source */
  hits(source) {
    let total = 0n;
    const ends = Array.from({ length: Math.min(this.most, this.size) }, (_, i) => {
      total += choose(this.most, i + 1) * choose(this.inputs, this.size - i - 1);
      return total;
    });
    let number = little(source.take(8));
    for (let bits = 64n; ; bits += 8n) {
      /** @param {bigint} upper */
      const passed = (upper) => ends.filter((end) => end << bits < upper * total).length;
      const least = ends.filter((end) => end << bits <= number * total).length;
      // The last end is 1, which no number reaches.
      if (least === Math.min(passed(number + 1n), ends.length - 1)) return 1 + least;
      number = (number << 8n) | BigInt(source.take(1)[0]);
    }
  }

  /** @param {number[]} items that differ, rising @param {Bytes} source */
  draw(items, source) {
    const bytes = new Ahead(source, 16 + 4 * this.size);
    const meeting = this.hits(bytes);
    const hits = little(bytes.take(8)) >> 1n < this.held ? meeting : 0;
    const own = [...items];
    for (let dummy = this.inputs; own.length < this.most; dummy++) own.push(dummy);
    const mine = new Set(own);
    for (let cell = 0; cell < this.bins; cell++) if (!mine.has(cell)) own.push(cell);
    const chosen = new Set();
    for (let step = 0; step < this.size; step++) {
      const [start, bound] =
        step < hits ? [0, this.most - hits + step + 1] : [this.most, this.inputs - this.size + step + 1];
      const place = start + Number(below(bytes, BigInt(bound)));
      chosen.add(chosen.has(place) ? start + bound - 1 : place);
    }
    const held = new Array(this.bins).fill(false);
    for (const place of chosen) held[own[place]] = true;
    return packed(held);
  }

  /** Return the weights of two readings, which stand for all sets. @param {unknown} symbol */
  column(symbol) {
    const held = unpacked(symbol, this.bins).filter(Boolean).length;
    must(held === this.size, 'a set of another size');
    return this.#weights();
  }

  /** @returns {Ratio} */
  #weights() {
    return [NEAR, (NEAR * this.odds[1]) / this.odds[0]];
  }

  fits() {
    return false;
  }

  distance() {
    return constant(2, unitsUp(...this.#weights()));
  }
}
