/**
 * The map of a channel: its keys, and what each may hold.
 *
 * @module
 */

import { Pairs, array, binary, integer, must, text } from '../msgpack.js';

/** @typedef {import('../msgpack.js').Value} Value */

export const MAX_INPUTS = 2 ** 17;
/** A table's symbols, and the entries of a dense one. */
export const MAX_OUTPUTS = 2 ** 24;
/** Integers of a channel, and totals of its rows, are below this. */
export const MAX_TOTAL = 2n ** 63n;

export class Keys {
  /** @param {Value} map */
  constructor(map) {
    must(map instanceof Pairs, 'a channel that is no map');
    /** @type {[string, Value][]} */
    const items = map.items.map(([key, value]) => [text(key), value]);
    // Ascii alone can be a key that is known, and its order is that of the bytes.
    must(items.every(([key], i) => i === 0 || items[i - 1][0] < key), 'keys must rise');
    this.items = new Map(items);
  }

  /** @param {string[]} names */
  exactly(names) {
    const all = this.items.size === names.length + 1 && names.every((name) => this.items.has(name));
    must(all, 'other keys than those of the kind');
  }

  /** @param {string} name */
  has(name) {
    return this.items.has(name);
  }

  /** @param {string} name @returns {Value} */
  value(name) {
    const found = this.items.get(name);
    must(found !== undefined, 'a key is missing');
    return found;
  }

  kind() {
    return text(this.value('kind'));
  }

  /** @param {string} name */
  int(name) {
    return integer(this.value(name), 1n, MAX_TOTAL - 1n);
  }

  /** @param {string} name @param {bigint} [least] @param {bigint} [most] */
  ints(name, least = 1n, most = MAX_TOTAL - 1n) {
    const items = array(this.value(name));
    must(items.length > 0, 'an empty list');
    return items.map((n) => integer(n, least, most));
  }

  /** Return a number of inputs. @param {string} name */
  count(name) {
    const n = this.int(name);
    must(n <= BigInt(MAX_INPUTS), 'too many inputs');
    return Number(n);
  }

  /** Return the sizes of categories. @param {string} name */
  sizes(name) {
    const list = this.ints(name);
    must(sum(list) <= BigInt(MAX_INPUTS), 'too many inputs');
    return list.map(Number);
  }

  /** @param {string} name */
  binary(name) {
    return binary(this.value(name));
  }
}

/** @param {bigint[]} numbers */
export function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0n);
}

/** Return the number of the part that each place lies in. @param {number[]} sizes */
export function labels(sizes) {
  /** @type {number[]} */
  const found = [];
  sizes.forEach((size, part) => {
    for (let i = 0; i < size; i++) found.push(part);
  });
  return found;
}

/** @param {number[]} a @param {number[]} b */
export function same(a, b) {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}

/** A ratio n / d of whole numbers. @typedef {[bigint, bigint]} Ratio */

/** Return the larger of two ratios. @param {Ratio} a @param {Ratio} b @returns {Ratio} */
export function larger(a, b) {
  return a[0] * b[1] >= b[0] * a[1] ? a : b;
}

/** Return the largest of ratios, and 1 of none. @param {Ratio[]} ratios */
export function largest(ratios) {
  return ratios.reduce(larger, /** @type {Ratio} */ ([1n, 1n]));
}
