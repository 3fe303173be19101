/**
 * Channels that are a table: a number as symbol, drawn by one uniform integer below the rows' total.
 *
 * @module
 */

import { unitsDown, unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { WORD, below } from '../random.js';
import { MAX_BLOCKS, constant } from './distance.js';
import { MAX_INPUTS, MAX_OUTPUTS, MAX_TOTAL, labels, largest, same, sum } from './keys.js';

/** @typedef {import('./keys.js').Keys} Keys */
/** @typedef {import('./keys.js').Ratio} Ratio */
/** @typedef {import('./distance.js').Distance} Distance */
/** @typedef {import('../random.js').Bytes} Bytes */

/** A table of weights; a kind says what its rows are. */
export class Table {
  /**
   * @param {number} inputs K
   * @param {number | bigint} outputs how many symbols
   * @param {bigint} total of every row
   */
  constructor(inputs, outputs, total, most = MAX_INPUTS) {
    must(inputs >= 2 && inputs <= most, 'inputs out of range');
    must(outputs >= 2 && outputs <= MAX_OUTPUTS, 'symbols out of range');
    must(total < MAX_TOTAL, 'a total that is not below 2^63');
    this.inputs = inputs;
    this.outputs = Number(outputs);
    this.total = total;
    this.tellsInputs = true;
  }

  /** Return the symbol of an input. @param {number} x @param {Bytes} source @returns {number} */
  draw(x, source) {
    return this.select(x, below(source, this.total));
  }

  /** Return the weights of a symbol for every input. @param {unknown} symbol @returns {bigint[]} */
  column(symbol) {
    must(typeof symbol === 'number' && symbol < this.outputs, 'no symbol of the channel');
    return Array.from({ length: this.inputs }, (_, x) => this.weight(x, symbol));
  }

  /** Return whether a survey of one attribute may have these categories. @param {number[]} _categories */
  fits(_categories) {
    return true;
  }

  /** @returns {Distance} */
  distance() {
    return constant(this.inputs, unitsUp(...this.ratio()));
  }

  /** Return the largest ratio of a symbol's weights: e^epsilon. @returns {Ratio} */
  ratio() {
    throw new Error('every kind has its own');
  }

  /** Return the symbol that a number below the total means. @param {number} _x @param {bigint} _d @returns {number} */
  select(_x, _d) {
    throw new Error('every kind has its own');
  }

  /** @param {number} _x @param {number} _y @returns {bigint} */
  weight(_x, _y) {
    throw new Error('every kind has its own');
  }
}

/** Return the symbol if it is one of so many, else the own one. @param {bigint} symbol @param {number} count @param {number} own */
export function or(symbol, count, own) {
  return symbol < BigInt(count) ? Number(symbol) : own;
}

/** Randomised response: the truth by t, any other by u. */
export class Grr extends Table {
  static keys = ['inputs', 't', 'u'];

  /** @param {Keys} keys */
  constructor(keys) {
    const [inputs, t, u] = [keys.count('inputs'), keys.int('t'), keys.int('u')];
    must(u < t, 't must be above u');
    super(inputs, inputs, t + BigInt(inputs - 1) * u);
    this.t = t;
    this.u = u;
  }

  /** @returns {Ratio} */
  ratio() {
    return [this.t, this.u];
  }

  /** @param {number} x @param {bigint} d */
  select(x, d) {
    return or(d / this.u, this.inputs, x);
  }

  /** @param {number} x @param {number} y */
  weight(x, y) {
    return x === y ? this.t : this.u;
  }
}

/** PB-GRR: the truth by t, its category by u, any other by o, of the symbol's category. */
export class PbGrr extends Table {
  static keys = ['sizes', 't', 'u', 'o'];

  /** @param {Keys} keys */
  constructor(keys) {
    const sizes = keys.sizes('sizes');
    const [t, u, o] = [keys.ints('t'), keys.ints('u'), keys.ints('o')];
    const m = sizes.length;
    must(m >= 2 && t.length === m && u.length === m && o.length === m, 'one weight per category');
    const base = sum(sizes.map((size, c) => BigInt(size) * o[c]));
    const totals = sizes.map((size, c) => base + BigInt(size) * (u[c] - o[c]) + t[c] - u[c]);
    const ordered = sizes.every((size, c) => o[c] <= u[c] && u[c] < t[c] && (size > 1 || u[c] === o[c]));
    must(ordered, 't > u >= o');
    must(totals.every((total) => total === totals[0]), 'rows of one total');
    const inputs = sizes.reduce((a, b) => a + b);
    super(inputs, inputs, totals[0]);
    this.sizes = sizes;
    this.t = t;
    this.u = u;
    this.o = o;
    this.of = labels(sizes);
  }

  /** @returns {Ratio} */
  ratio() {
    return largest(this.t.map((t, c) => [t, this.o[c]]));
  }

  /** @param {number} x @param {bigint} d */
  select(x, d) {
    const { sizes, u, o } = this;
    const own = this.of[x];
    let first = 0;
    let begin = 0;
    for (let c = 0; c < sizes.length; c++) {
      const width = BigInt(sizes[c]) * o[c];
      if (d < width) return first + Number(d / o[c]);
      d -= width;
      if (c === own) begin = first;
      first += sizes[c];
    }
    const extra = u[own] - o[own];
    return d < BigInt(sizes[own]) * extra ? begin + Number(d / extra) : x;
  }

  /** @param {number} x @param {number} y */
  weight(x, y) {
    const c = this.of[y];
    if (x === y) return this.t[c];
    return this.of[x] === c ? this.u[c] : this.o[c];
  }

  /** @param {number[]} categories */
  fits(categories) {
    return same(this.of, categories);
  }

  /** @returns {Distance} */
  distance() {
    const m = this.sizes.length;
    if (m > MAX_BLOCKS) return super.distance();
    const within = this.t.map((t, c) => unitsUp(t, this.u[c]));
    const across = this.t.map((t, c) => new Array(m).fill(unitsUp(t, this.o[c])));
    return { block: this.of, within, across };
  }
}

/** Randomised response of categories. */
export class CategoryGrr extends Table {
  static keys = ['sizes', 't', 'o'];

  /** @param {Keys} keys */
  constructor(keys) {
    const sizes = keys.sizes('sizes');
    const [t, o] = [keys.int('t'), keys.int('o')];
    const m = sizes.length;
    must(m >= 2 && o < t, 'two categories, t > o');
    super(sizes.reduce((a, b) => a + b), m, t + BigInt(m - 1) * o);
    this.t = t;
    this.o = o;
    this.of = labels(sizes);
    this.tellsInputs = false;
  }

  /** @returns {Ratio} */
  ratio() {
    return [this.t, this.o];
  }

  /** @param {number} x @param {bigint} d */
  select(x, d) {
    return or(d / this.o, this.outputs, this.of[x]);
  }

  /** @param {number} x @param {number} y */
  weight(x, y) {
    return this.of[x] === y ? this.t : this.o;
  }

  /** @param {number[]} categories */
  fits(categories) {
    return same(this.of, categories);
  }

  /** @returns {Distance} */
  distance() {
    const m = this.outputs;
    if (m > MAX_BLOCKS) return super.distance();
    const units = unitsUp(this.t, this.o);
    const across = Array.from({ length: m }, () => new Array(m).fill(units));
    return { block: this.of, within: new Array(m).fill(0), across };
  }
}

/** Return the exact sum of weights. @param {Uint32Array | BigUint64Array} weights */
function added(weights) {
  let found = 0n;
  let part = 0;
  for (const w of weights) {
    if (typeof w === 'bigint') found += w;
    else if ((part += w) > 2 ** 52) {
      found += BigInt(part);
      part = 0;
    }
  }
  return found + BigInt(part);
}

/** Any rows of integers; of points in order, it is a curve. */
export class Dense extends Table {
  static keys = ['inputs', 'outputs', 'total', 'weights'];

  /** @param {Keys} keys */
  constructor(keys) {
    const [inputs, outputs, total] = [keys.int('inputs'), keys.int('outputs'), keys.int('total')];
    const bytes = keys.binary('weights');
    const width = total <= WORD ? 4 : 8;
    const entries = inputs * outputs;
    must(entries <= BigInt(MAX_OUTPUTS), 'at most 2^24 weights');
    must(entries * BigInt(width) === BigInt(bytes.length), 'weights of K rows');
    super(Number(inputs), outputs, total);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = this.inputs * this.outputs;
    /** Row by row; a word of 64 bits is a BigInt. @type {Uint32Array | BigUint64Array} */
    this.weights = width === 4 ? new Uint32Array(count) : new BigUint64Array(count);
    for (let i = 0; i < count; i++) {
      this.weights[i] = width === 4 ? view.getUint32(4 * i, true) : view.getBigUint64(8 * i, true);
      must(this.weights[i] >= 1 && this.weights[i] < MAX_TOTAL, 'weights of 1 and more');
    }
    for (let x = 0; x < this.inputs; x++) must(added(this.row(x)) === total, 'rows of the total');
  }

  /** @param {number} x */
  row(x) {
    return this.weights.subarray(x * this.outputs, (x + 1) * this.outputs);
  }

  /** @returns {Ratio} */
  ratio() {
    const most = this.row(0).slice();
    const least = this.row(0).slice();
    this.weights.forEach((w, i) => {
      const y = i % this.outputs;
      if (w > most[y]) most[y] = w;
      if (w < least[y]) least[y] = w;
    });
    return largest([...most].map((w, y) => [BigInt(w), BigInt(least[y])]));
  }

  /** @param {number} x @param {bigint} d */
  select(x, d) {
    const row = this.row(x);
    let y = 0;
    for (; d >= row[y]; y++) d -= BigInt(row[y]);
    return y;
  }

  /** @param {number} x @param {number} y */
  weight(x, y) {
    return BigInt(this.weights[x * this.outputs + y]);
  }

  /** The largest difference of two rows' logarithms, and a unit; equal rows are one block. @returns {Distance} */
  distance() {
    /** @type {Map<string, number>} */
    const known = new Map();
    /** @type {number[][]} */
    const logs = [];
    const block = Array.from({ length: this.inputs }, (_, x) => {
      const name = this.row(x).join();
      if (!known.has(name)) {
        known.set(name, logs.length);
        logs.push([...this.row(x)].map((w) => unitsDown(BigInt(w))));
      }
      return /** @type {number} */ (known.get(name));
    });
    if (logs.length > MAX_BLOCKS) {
      const columns = logs[0].map((_, y) => logs.map((row) => row[y]));
      const spread = columns.map((column) => column.reduce((a, b) => Math.max(a, b)) - column.reduce((a, b) => Math.min(a, b)));
      return constant(this.inputs, Math.max(...spread) + 1);
    }
    const across = logs.map((a) =>
      logs.map((b) => a.reduce((most, units, y) => Math.max(most, units - b[y]), -Infinity) + 1),
    );
    return { block, within: new Array(logs.length).fill(0), across };
  }
}

/** A dense table, with how common each input is: numbers for estimates, which no device reads. */
export class Weighted extends Dense {
  static keys = [...Dense.keys, 'common'];

  /** @param {Keys} keys */
  constructor(keys) {
    super(keys);
    const common = keys.ints('common', 1n, 2n ** 31n - 1n);
    must(common.length === this.inputs, 'an integer of common per input');
  }
}
