/**
 * Local hashing: a public pool of seeds over the field of q elements, and responses of cells.
 *
 * @module
 */

import { gcd, unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { constant } from './distance.js';
import { MAX_INPUTS } from './keys.js';
import { Table } from './tables.js';

/** @typedef {import('./keys.js').Keys} Keys */
/** @typedef {import('./keys.js').Ratio} Ratio */

/** Inputs that hashes may have, which no table lists. */
const MAX_HASHED = 2 ** 20;
const MAX_SYMBOLS = 2 ** 20;
/** Of more inputs than any other channel takes. */
const MAX_WIDE_SYMBOLS = 2 ** 22;
const MAX_DEGREE = 17;
/** The least irreducible polynomial of each degree from 2, bit i for x^i. */
const POLYNOMIALS = [7, 11, 19, 37, 67, 131, 283, 515, 1033, 2053, 4105, 8219, 16417, 32771, 65579, 131081];

/** @param {number} q */
function isPrime(q) {
  for (let d = 2; d * d <= q; d++) if (q % d === 0) return false;
  return q >= 2;
}

/** The pool for K inputs and q cells. */
export class Pool {
  /**
   * @param {number} inputs
   * @param {bigint} buckets q
   */
  constructor(inputs, buckets) {
    const most = inputs > MAX_INPUTS ? MAX_WIDE_SYMBOLS : MAX_SYMBOLS;
    must(buckets >= 2n && buckets <= BigInt(most), 'buckets of 2 and more');
    const q = Number(buckets);
    const degree = 31 - Math.clz32(q);
    const isPower = q === 1 << degree && degree >= 2;
    must(!isPower || degree <= MAX_DEGREE, 'a power of two of at most 2^17');
    must(isPower || isPrime(q), 'a prime');
    this.q = q;
    this.degree = degree;
    this.digits = 1;
    // q^n stays below 2^20 2^22, and 1000 times that below 2^53.
    this.whole = q;
    while (this.whole < inputs) {
      this.whole *= q;
      this.digits += 1;
    }
    this.seeds = (this.whole - 1) / (q - 1);
    must(this.seeds * q <= most, 'too many symbols');
    this.stride = Math.ceil((618 * this.whole) / 1000);
    while (gcd(BigInt(this.stride), buckets) > 1n) this.stride += 1;
    this.polynomial = isPower ? POLYNOMIALS[degree - 2] : 0;
  }

  /** @param {number} a @param {number} b */
  product(a, b) {
    if (this.polynomial === 0) return (a * b) % this.q;
    let found = 0;
    for (let bit = 0; bit < this.degree; bit++) {
      if ((b >> bit) & 1) found ^= a;
      a <<= 1;
      if (a & this.q) a ^= this.polynomial;
    }
    return found;
  }

  /** Return the cell of an input under a seed. @param {number} seed @param {number} input */
  cell(seed, input) {
    const { q } = this;
    let rest = seed;
    let first = 1;
    while (rest >= first) {
      rest -= first;
      first *= q;
    }
    let direction = first + rest;
    // Their product may pass 2^53.
    let point = Number((BigInt(input) * BigInt(this.stride)) % BigInt(this.whole));
    let found = 0;
    for (let i = 0; i < this.digits; i++) {
      const term = this.product(direction % q, point % q);
      found = this.polynomial === 0 ? (found + term) % q : found ^ term;
      direction = Math.floor(direction / q);
      point = Math.floor(point / q);
    }
    return found;
  }
}

/** Randomised response of an input's cell under a public seed. */
export class LocalHashing extends Table {
  static keys = ['inputs', 'buckets', 't', 'u'];

  /** @param {Keys} keys */
  constructor(keys) {
    const [inputs, t, u] = [Number(keys.int('inputs')), keys.int('t'), keys.int('u')];
    must(u < t && inputs <= MAX_HASHED, 't must be above u, and inputs at most 2^20');
    const pool = new Pool(inputs, keys.int('buckets'));
    const each = t + BigInt(pool.q - 1) * u;
    super(inputs, pool.seeds * pool.q, BigInt(pool.seeds) * each, MAX_HASHED);
    this.pool = pool;
    this.t = t;
    this.u = u;
    this.each = each;
  }

  /** @returns {Ratio} */
  ratio() {
    return [this.t, this.u];
  }

  /** The law of answers that share no coordinate: two readings for all inputs, which every symbol tells apart. */
  alone() {
    return { inputs: 2, distance: () => constant(2, unitsUp(...this.ratio())), column: () => this.ratio() };
  }

  /** @param {number} x @param {bigint} d */
  select(x, d) {
    const { q } = this.pool;
    const seed = Number(d / this.each);
    const rest = (d % this.each) / this.u;
    return seed * q + (rest < BigInt(q) ? Number(rest) : this.pool.cell(seed, x));
  }

  /** @param {number} x @param {number} y */
  weight(x, y) {
    const { q } = this.pool;
    return this.pool.cell(Math.floor(y / q), x) === y % q ? this.t : this.u;
  }
}
