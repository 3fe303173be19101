/**
 * Orbits: sets that hold given numbers of values of the categories, in any order of categories of one size.
 *
 * @module
 */

import { bits, gcd, unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { below } from '../random.js';
import { MAX_BLOCKS, constant, packed, unpacked } from './distance.js';
import { MAX_INPUTS, labels, larger, largest, sum } from './keys.js';

/** @typedef {import('./keys.js').Keys} Keys */
/** @typedef {import('./keys.js').Ratio} Ratio */
/** @typedef {import('./distance.js').Distance} Distance */
/** @typedef {import('../random.js').Bytes} Bytes */

/**
 * @typedef {object} Orbit
 * @property {number[][]} counts per class, one number per category, falling
 * @property {boolean} missing whether its sets hold the missing input
 * @property {bigint[]} inside weight of a value in the set, per class
 * @property {bigint[]} outside weight of a value that is not
 * @property {bigint} absent weight of the missing input
 */

const MAX_ORBITS = 64;
const MAX_UNIT = 1000n;
const MAX_COUNT = 2n ** 62n;
const TOTAL_BITS = 62;

/** @param {number[]} numbers */
function add(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

/** @param {bigint[]} weights @returns {Ratio} the most and the least */
function ends(weights) {
  return [weights.reduce((a, b) => (a > b ? a : b)), weights.reduce((a, b) => (a < b ? a : b))];
}

/** A uniform integer below a count. @param {Bytes} source @param {number} n */
function index(source, n) {
  return Number(below(source, BigInt(n)));
}

export class Orbits {
  static keys = ['sizes', 'unit', 'counts', 'missing', 'inside', 'outside', 'absent'];
  tellsInputs = false;

  /** @param {Keys} keys */
  constructor(keys) {
    this.sizes = keys.sizes('sizes');
    this.values = labels(this.sizes);
    must(this.values.length >= 2 && this.values.length <= MAX_INPUTS, 'values out of range');
    this.starts = this.sizes.map((_, c) => add(this.sizes.slice(0, c)));
    /** Sizes of the classes, the largest first. */
    this.classes = [...new Set(this.sizes)].sort((a, b) => b - a);
    this.classOf = this.sizes.map((size) => this.classes.indexOf(size));
    const many = this.classes.map((size) => this.sizes.filter((each) => each === size).length);
    const counts = keys.ints('counts', 0n, MAX_COUNT);
    const missing = keys.ints('missing', 0n, MAX_COUNT);
    const absent = keys.ints('absent', 0n, MAX_COUNT);
    const [inside, outside] = [keys.ints('inside'), keys.ints('outside')];
    const [n, k] = [missing.length, this.classes.length];
    must(n <= MAX_ORBITS && absent.length === n, '1 to 64 orbits');
    must(inside.length === n * k && outside.length === n * k, 'two weights per class and orbit');
    must(counts.length === n * this.sizes.length, 'a count per category and orbit');
    must(missing.every((flag) => flag <= 1n), 'missing is 0 or 1');
    const unit = keys.int('unit');
    must(unit <= MAX_UNIT, 'a unit of at most 1000');
    const total = unit << BigInt(TOTAL_BITS - bits(BigInt(this.values.length) * unit));
    this.hasMissing = absent.some((weight) => weight > 0n);
    const held = this.classes.map((size, g) => size * many[g]);
    const most = total * BigInt(Math.max(...held));
    /** @type {Orbit[]} */
    this.orbits = missing.map((flag, t) => {
      let at = t * this.sizes.length;
      const own = many.map((m) => counts.slice(at, (at += m)));
      own.forEach((part, g) => {
        const falls = part.every((each, i) => i === 0 || part[i - 1] >= each);
        must(falls && part[0] <= BigInt(this.classes[g]), 'counts must fall');
      });
      const orbit = {
        counts: own.map((part) => part.map(Number)),
        missing: flag === 1n,
        inside: inside.slice(t * k, (t + 1) * k),
        outside: outside.slice(t * k, (t + 1) * k),
        absent: absent[t],
      };
      const weights = [...orbit.inside, ...orbit.outside, this.hasMissing ? orbit.absent : 1n];
      must(weights.every((w) => w >= 1n && w <= most), 'weights within 1 to the total');
      must(!orbit.missing || this.hasMissing, 'missing where there is none');
      return orbit;
    });
    const names = this.orbits.map((orbit) => JSON.stringify([orbit.counts, orbit.missing]));
    must(new Set(names).size === names.length, 'an orbit twice');
    held.forEach((values, g) => {
      const rows = this.orbits.map((orbit) => {
        const inIt = BigInt(add(orbit.counts[g]));
        return inIt * orbit.inside[g] + (BigInt(values) - inIt) * orbit.outside[g];
      });
      must(sum(rows) === BigInt(values) * total, 'rows must sum to the total');
    });
    must(!this.hasMissing || sum(absent) === total, 'missing must sum to the total');
    this.inputs = this.values.length + (this.hasMissing ? 1 : 0);
    must(this.inputs >= 2 && this.inputs <= MAX_INPUTS, 'inputs out of range');
  }

  /** Return the weights that some set of an orbit gives, per class, and last of missing. @param {Orbit} orbit */
  used(orbit) {
    const found = orbit.counts.map((part, g) => {
      const held = add(part);
      const weights = held > 0 ? [orbit.inside[g]] : [];
      return held < this.classes[g] * part.length ? [...weights, orbit.outside[g]] : weights;
    });
    return this.hasMissing ? [...found, [orbit.absent]] : found;
  }

  /** @returns {Ratio} */
  ratio() {
    return largest(this.orbits.map((orbit) => ends(this.used(orbit).flat())));
  }

  /** Return the class of every category, that of missing last. */
  classesOf() {
    return this.hasMissing ? [...this.classOf, this.classes.length] : this.classOf;
  }

  /** Return the category of every input, missing last. */
  categories() {
    return this.hasMissing ? [...this.values, this.sizes.length] : this.values;
  }

  /** @param {number[]} categories */
  fits(categories) {
    const own = this.categories();
    return own.length === categories.length && own.every((c, x) => c === categories[x]);
  }

  /** @returns {Distance} */
  distance() {
    const classes = this.classesOf();
    if (classes.length > MAX_BLOCKS) return constant(this.inputs, unitsUp(...this.ratio()));
    const k = this.classes.length + (this.hasMissing ? 1 : 0);
    /** @type {Ratio[]} */
    const near = new Array(k).fill([1n, 1n]);
    /** @type {Ratio[][]} */
    const far = Array.from({ length: k }, () => new Array(k).fill([1n, 1n]));
    for (const orbit of this.orbits) {
      const span = this.used(orbit).map(ends);
      for (let g = 0; g < k; g++) {
        const size = this.classes[g] ?? 1;
        const some = (orbit.counts[g] ?? []).some((count) => count > 0 && count < size);
        if (some) near[g] = larger(near[g], span[g]);
        for (let h = 0; h < k; h++) far[g][h] = larger(far[g][h], [span[g][0], span[h][1]]);
      }
    }
    return {
      block: this.categories(),
      within: classes.map((g) => unitsUp(...near[g])),
      across: classes.map((g) => classes.map((h) => unitsUp(...far[g][h]))),
    };
  }

  /** Return orbit and set, by a weighted pick, shuffles, and subsets one by one. @param {number} x @param {Bytes} source */
  pick(x, source) {
    const own = this.values[x];
    /** @type {[number, boolean, number, bigint][]} orbit, in or out, count of the input's category, weight */
    const row =
      own === undefined
        ? this.orbits.map((orbit, t) => [t, false, 0, orbit.absent])
        : this.orbits.flatMap((orbit, t) => this.outcomes(orbit, t, this.classOf[own]));
    let d = below(source, sum(row.map(([, , , weight]) => weight)));
    let at = 0;
    for (; d >= row[at][3]; at++) d -= row[at][3];
    const [t, isIn, n] = row[at];
    /** @type {boolean[]} */
    const held = new Array(this.inputs).fill(false);
    this.classes.forEach((_, g) => {
      const counts = this.orbits[t].counts[g].slice();
      const home = own !== undefined && this.classOf[own] === g ? own : null;
      if (home !== null) counts.splice(counts.indexOf(n), 1);
      for (let last = counts.length - 1; last > 0; last--) {
        const other = index(source, last + 1);
        [counts[last], counts[other]] = [counts[other], counts[last]];
      }
      this.sizes.forEach((size, c) => {
        if (this.classOf[c] !== g || c === home) return;
        const cells = Array.from({ length: size }, (__, i) => this.starts[c] + i);
        choose(cells, /** @type {number} */ (counts.pop()), held, source);
      });
      if (home !== null) {
        const others = [];
        for (let i = 0; i < this.sizes[home]; i++) {
          if (this.starts[home] + i !== x) others.push(this.starts[home] + i);
        }
        choose(others, n - (isIn ? 1 : 0), held, source);
        held[x] = isIn;
      }
    });
    if (this.hasMissing) held[this.inputs - 1] = this.orbits[t].missing;
    return { t, held };
  }

  /** @param {Orbit} orbit @param {number} t @param {number} g @returns {[number, boolean, number, bigint][]} */
  outcomes(orbit, t, g) {
    const size = this.classes[g];
    return orbit.counts[g].flatMap((n) => [
      [t, true, n, BigInt(n) * orbit.inside[g]],
      [t, false, n, BigInt(size - n) * orbit.outside[g]],
    ]);
  }

  /** @param {number} x @param {Bytes} source */
  draw(x, source) {
    return packed(this.pick(x, source).held);
  }

  /** @param {unknown} symbol */
  column(symbol) {
    const held = unpacked(symbol, this.inputs);
    const flag = this.hasMissing && held[this.inputs - 1];
    return this.weights(this.orbitOf(held, flag), held);
  }

  /** Return the orbit that has a set. @param {boolean[]} held @param {boolean} flag */
  orbitOf(held, flag) {
    /** @type {number[][]} */
    const counts = this.classes.map(() => []);
    this.sizes.forEach((size, c) => {
      const cells = held.slice(this.starts[c], this.starts[c] + size);
      counts[this.classOf[c]].push(cells.filter(Boolean).length);
    });
    const name = JSON.stringify([counts.map((part) => part.sort((a, b) => b - a)), flag]);
    const found = this.orbits.findIndex((orbit) => JSON.stringify([orbit.counts, orbit.missing]) === name);
    must(found >= 0, 'a set of no orbit');
    return found;
  }

  /** @param {number} t @param {boolean[]} held */
  weights(t, held) {
    const orbit = this.orbits[t];
    const divisor = this.used(orbit).flat().reduce(gcd, 0n);
    const found = this.values.map((c, i) => {
      const g = this.classOf[c];
      return (held[i] ? orbit.inside[g] : orbit.outside[g]) / divisor;
    });
    return this.hasMissing ? [...found, orbit.absent / divisor] : found;
  }
}

/** Orbits whose sets have values of one category: orbit, category and a bit for each of its values. */
export class ShortOrbits extends Orbits {
  /** @param {Keys} keys */
  constructor(keys) {
    super(keys);
    let largest = 0;
    for (const { counts } of this.orbits) {
      const some = counts.map((part) => part.filter((n) => n > 0).length);
      must(add(some) === 1, 'values of one category');
      largest = Math.max(largest, this.classes[some.indexOf(1)]);
    }
    this.name = this.sizes.length <= 256 ? 1 : 2;
    this.width = 1 + this.name + Math.ceil(largest / 8);
  }

  /** @param {number} x @param {Bytes} source */
  draw(x, source) {
    const { t, held } = this.pick(x, source);
    const c = this.values[held.indexOf(true)];
    const found = new Uint8Array(this.width);
    found[0] = t;
    found[1] = c & 0xff;
    if (this.name === 2) found[2] = c >> 8;
    found.set(packed(held.slice(this.starts[c], this.starts[c] + this.sizes[c])), 1 + this.name);
    return found;
  }

  /** @param {unknown} symbol */
  column(symbol) {
    must(symbol instanceof Uint8Array && symbol.length === this.width, 'a symbol of another length');
    const t = symbol[0];
    const c = symbol[1] + (this.name === 2 ? symbol[2] << 8 : 0);
    must(c < this.sizes.length && t < this.orbits.length, 'no orbit');
    const bytes = symbol.subarray(1 + this.name);
    /** @type {boolean[]} */
    const held = new Array(this.values.length).fill(false);
    for (let i = 0; i < 8 * bytes.length; i++) {
      const isIn = ((bytes[i >> 3] >> (i & 7)) & 1) === 1;
      must(!isIn || i < this.sizes[c], 'a value of no category');
      if (isIn) held[this.starts[c] + i] = true;
    }
    must(this.orbitOf(held, this.orbits[t].missing) === t, 'a set of another orbit');
    return this.weights(t, held);
  }
}

/** Hold so many of the cells, all sets of them equally likely. @param {number[]} cells @param {number} many @param {boolean[]} held @param {Bytes} source */
function choose(cells, many, held, source) {
  for (let i = 0; i < many; i++) {
    const at = index(source, cells.length);
    held[cells[at]] = true;
    cells[at] = cells[cells.length - 1];
    cells.pop();
  }
}
