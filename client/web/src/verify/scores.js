/**
 * The estimates of a round as exact quotients of its public counts, and the laws of the scores behind them.
 *
 * Read from the integers of the survey's channel; docs/mechanisms.md has the formulas. What has no closed form is left
 * out.
 *
 * @module
 */

import { choose } from '../channels/items.js';
import { Pairs, array, binary, integer, read, text } from '../msgpack.js';
import { membersOf, sum } from './counts.js';
import { Hashed } from './hashed.js';
import { plausible } from './ends.js';

/** @typedef {import('./counts.js').Counts} Counts */
/** @typedef {import('./ends.js').Law} Law */
/** @typedef {import('./ends.js').Moments} Moments */

/**
 * @typedef {object} Cell
 * @property {Exact} exact
 * @property {number | null} estimate the float nearest to it; null where the channel hides it
 * @property {Law | null} law null where none is known here
 * @property {number} least the least that a report adds to the cell, with `law`
 * @property {number} most
 */

/** A rational number: top and bottom > 0. @typedef {[bigint, bigint]} Exact */

/** Values and categories; null where nothing is recomputed. @typedef {[Cell[] | null, Cell[] | null]} Families */

const MOST = 2 ** 63;
/** The difference of two variances, as a part of them, below which rounding may decide which is larger. */
const ALIKE = 2 ** -30;

/** Return a quotient as the nearest float. @param {bigint} top @param {bigint} bottom > 0 */
export function quotient(top, bottom) {
  if (top === 0n) return 0;
  const size = top < 0n ? -top : top;
  // 65 bits and more of the quotient, and one for whether anything follows: the float is rounded once.
  const shift = Math.max(0, 66 + bottom.toString(16).length * 4 - size.toString(16).length * 4);
  const whole = (size << BigInt(shift)) / bottom;
  const rest = whole * bottom !== size << BigInt(shift);
  const found = Number((whole << 1n) | (rest ? 1n : 0n)) * 2 ** -(shift + 1);
  return top < 0n ? -found : found;
}

/** @param {Exact} a @param {Exact} b @returns {Exact} */
export function plus([a, b], [c, d]) {
  return b === d ? [a + c, b] : [a * d + c * b, b * d];
}

/** @param {Exact} a @param {Exact} b @returns {Exact} */
export function times([a, b], [c, d]) {
  return [a * c, b * d];
}

/** The map of a survey's channel: its kind, whole numbers, lists of them, and packed weights. */
export class Spec {
  /** @param {Uint8Array} canonical */
  constructor(canonical) {
    const map = array(read(canonical))[7];
    this.items = new Map(map instanceof Pairs ? map.items : []);
    this.kind = text(this.items.get('kind') ?? null);
  }

  /** @param {string} key */
  int(key) {
    return integer(this.items.get(key) ?? null, 0n, BigInt(MOST));
  }

  /** @param {string} key */
  ints(key) {
    return array(this.items.get(key) ?? null).map((each) => integer(each, 0n, BigInt(MOST)));
  }

  /** @param {string} key */
  has(key) {
    return this.items.has(key);
  }

  /** @param {string} key */
  bytes(key) {
    return binary(this.items.get(key) ?? null);
  }
}

/**
 * Return the families of a round.
 *
 * @param {Spec} spec
 * @param {number[][]} rows the category of every input, per margin
 * @param {Counts} counts
 * @returns {Families}
 */
export function families(spec, rows, counts) {
  switch (spec.kind) {
    case 'grr': {
      const [size, t, u] = [spec.int('inputs'), spec.int('t'), spec.int('u')];
      return ofBlocks([new Block(Number(size), t, u, u, t + (size - 1n) * u, t - u)], rows, counts);
    }
    case 'pbgrr': {
      const sizes = spec.ints('sizes');
      const [t, u, o] = [spec.ints('t'), spec.ints('u'), spec.ints('o')];
      const others = sizes.reduce((held, size, c) => held + size * o[c], 0n);
      const total = others - sizes[0] * o[0] + t[0] + (sizes[0] - 1n) * u[0];
      const blocks = sizes.map((size, c) => new Block(Number(size), t[c], u[c], o[c], total, total - others));
      return ofBlocks(blocks, rows, counts);
    }
    case 'category_grr': return ofCategories(spec, rows, counts);
    case 'unary': return ofSupports([spec.int('held'), 2n ** 31n], [spec.int('other'), 2n ** 31n], spec, rows, counts);
    case 'subset': {
      const [k, size, held, word] = [spec.int('inputs'), spec.int('size'), spec.int('held'), 2n ** 32n];
      const q = /** @type {Exact} */ ([held * (size - 1n) + (word - held) * size, word * (k - 1n)]);
      return ofSupports([held, word], q, spec, rows, counts);
    }
    case 'set': {
      const [inputs, most, size] = [spec.int('inputs'), spec.int('most'), spec.int('size')].map(Number);
      const [hit, all] = [spec.int('held'), 2n ** 63n];
      const missing = choose(inputs, size);
      const meeting = choose(inputs + most, size) - missing;
      const [other, every] = [choose(inputs - 1, size - 1), choose(inputs + most - 1, size - 1)];
      const q = plus([hit * (every - other), meeting * all], [(all - hit) * other, missing * all]);
      return [supports([hit * every, meeting * all], q, counts, inputs), null];
    }
    case 'local_hashing': return ofHashing(spec, rows, counts);
    default: return [null, null];
  }
}

/** One block of a channel, inputs that are alike: its size, its weights, T, and T less the sum of s o over blocks. */
class Block {
  /** @param {number} size @param {bigint} t @param {bigint} u @param {bigint} o @param {bigint} total @param {bigint} scale */
  constructor(size, t, u, o, total, scale) {
    this.size = size;
    this.t = t;
    this.u = size > 1 ? u : o;
    this.o = o;
    this.total = total;
    this.scale = scale;
    this.step = t - this.u;
  }

  /** The scores of a report of the value itself, of another value of the block, of any other. */
  scores() {
    const { t, u, o, total, scale, step } = this;
    const rest = -(u - o) * total - o * step;
    const far = quotient(-o, scale);
    if (this.size === 1) return [quotient(total - o, scale), far, far];
    return [quotient(total * scale + rest, scale * step), quotient(rest, scale * step), far];
  }

  /** The law of a value, less the share around it. @param {number} blocks @param {number} around */
  law(blocks, around) {
    const { size, t, u, o, total } = this;
    const scores = this.scores();
    const others = BigInt(size - 1);
    const reports = [[t, others * u], [u, t + (others - 1n) * u], [o, others * o]];
    const [own, near, far] = reports.map(([hit, beside], i) => {
      if (i === 1 && size === 1) return /** @type {Moments} */ ([0, 0]);
      return central(scores, [hit, beside, total - hit - beside].map((w) => quotient(w, total)));
    });
    const plain = size === 1 || u === o || blocks === 1;
    /** @type {Law} */
    const law = {
      own,
      near,
      far,
      around: size === 1 ? 0 : around,
      step: quotient(total, this.step),
      odds: plain ? twoOdds(quotient(t, total), quotient(o, total)) : null,
      observed: -Infinity,
    };
    const seen = [scores[0], ...(size > 1 ? [scores[1]] : []), ...(blocks > 1 ? [scores[2]] : [])];
    return { law, least: Math.min(...seen), most: Math.max(...seen) };
  }
}

/** @param {number} own @param {number} other @returns {[number, number] | null} */
function twoOdds(own, other) {
  return own > 0 && own < 1 && other > 0 && other < 1 ? [own, other] : null;
}

/** Return variance and third central moment. @param {number[]} scores @param {number[]} odds @returns {Moments} */
function central(scores, odds) {
  const mean = sum(scores.map((b, i) => b * odds[i]));
  /** @param {number} power */
  const moment = (power) => sum(scores.map((b, i) => odds[i] * (b - mean) ** power));
  return [moment(2), moment(3)];
}

/** @param {Block[]} blocks @param {number[][]} rows @param {Counts} counts @returns {Families} */
function ofBlocks(blocks, rows, { cells, n }) {
  const reports = BigInt(n);
  /** @type {Cell[]} */
  const values = [];
  let at = 0;
  for (const block of blocks) {
    const { size, u, o, total, scale, step } = block;
    const held = cells.slice(at, (at += size));
    // Devices of the block are crowd / scale.
    const crowd = total * BigInt(sum(held)) - BigInt(size) * o * reports;
    const ends = block.law(blocks.length, quotient(crowd, scale * reports));
    const constant = -scale * reports * o - (u - o) * crowd;
    for (const count of held) {
      const top = size === 1 ? crowd * step : scale * total * BigInt(count) + constant;
      values.push(cellOf([top, scale * step * reports], ends));
    }
  }
  const laws = rows.flatMap((row) => groupLaws(blocks, row, cells, n, values));
  return [values, rows.flatMap((row) => sums(values, row)).map((exact, c) => cellOf(exact, laws[c]))];
}

/** @param {Exact} exact @param {{law: Law | null, least: number, most: number}} ends @returns {Cell} */
function cellOf(exact, ends) {
  return { ...ends, exact, estimate: quotient(...exact) };
}

/** Return the sum of rational numbers, of few different denominators. @param {Exact[]} numbers @returns {Exact} */
export function added(numbers) {
  /** @type {Map<bigint, bigint>} */
  const tops = new Map();
  for (const [top, bottom] of numbers) tops.set(bottom, (tops.get(bottom) ?? 0n) + top);
  return [...tops].reduce((found, [bottom, top]) => plus(found, [top, bottom]), /** @type {Exact} */ ([0n, 1n]));
}

/** Return categories as exact sums of their values. @param {Cell[]} values @param {number[]} row */
function sums(values, row) {
  return membersOf(row).map((members) => added(members.map((x) => values[x].exact)));
}

/**
 * Return the laws of the categories of one grouping, and the least and most that a report adds to each.
 *
 * A category's score of a report is the sum of its inputs' scores. With s the size of a block, h how many of its inputs
 * are the category's, delta = T / (t - u), rho = T / scale and beta = -(u - o) rho / (t - u), a report that says an
 * input of the block adds base + delta + beta h where that is the category's (`mine`), base + beta h where it is
 * another's (`rest`), and base + rho either way where the category has the whole block; in blocks that it has nothing
 * of, base = -sum of h o / scale.
 *
 * @param {Block[]} blocks
 * @param {number[]} row
 * @param {number[]} cells
 * @param {number} n
 * @param {Cell[]} values
 */
function groupLaws(blocks, row, cells, n, values) {
  const groups = membersOf(row);
  const blockOf = blocks.flatMap(({ size }, b) => new Array(size).fill(b));
  const weights = blocks.map(({ size, t, u, o, total, scale, step }) => {
    const [own, extra] = [quotient(o, total), quotient(u - o, total)];
    const rho = quotient(total, scale);
    const beta = size === 1 ? 0 : -quotient((u - o) * total, scale * step);
    return { size, own, extra, hit: quotient(t - u, total), rho, beta, delta: quotient(total, step), o: quotient(o, scale) };
  });
  const populations = plausible(values.map(({ estimate }) => estimate ?? 0));
  /** Sums over the inputs of every block. @param {number[]} shares */
  const byBlock = (shares) => {
    const found = new Array(blocks.length).fill(0);
    shares.forEach((share, x) => (found[blockOf[x]] += share));
    return found;
  };
  const crowds = populations.map(byBlock);
  const reports = byBlock(cells);
  return groups.map((members) => {
    /** The blocks that it has inputs of. @type {Map<number, number[]>} */
    const own = new Map();
    for (const x of members) {
      const held = own.get(blockOf[x]);
      if (held === undefined) own.set(blockOf[x], [x]);
      else held.push(x);
    }
    const parts = [...own].map(([b, inputs]) => ({ b, inputs, h: inputs.length, ...weights[b] }));
    const base = -sum(parts.map(({ h, o }) => h * o));
    const scores = parts.map(({ h, size, rho, delta, beta }) =>
      h === size ? [base + rho, base + rho] : [base + delta + beta * h, base + beta * h],
    );
    const all = own.size === blocks.length;
    const ends = [...scores.flat(), ...(all ? [] : [base])];
    const found = { least: Math.min(...ends), most: Math.max(...ends) };
    const isCount = parts.every(({ h, size }) => h === size);
    if (isCount) {
      const gap = all ? 0 : weights[0].rho;
      const odds = gap > 0 ? [(1 - base) / gap, -base / gap] : [0, 0];
      const [mine, far] = odds.map((share) => {
        const spread = share * (1 - share);
        return /** @type {Moments} */ ([gap ** 2 * spread, gap ** 3 * spread * (1 - 2 * share)]);
      });
      return { ...found, law: counted(mine, far, gap, odds) };
    }
    /** Mean powers of the score, of the shares of reports per part: the category's, and the whole block's. */
    const mean = (/** @type {[number, number][]} */ said, /** @type {number} */ power) => {
      let [inside, outside] = [0, 1];
      said.forEach(([mine, block], i) => {
        inside += mine * scores[i][0] ** power + (block - mine) * scores[i][1] ** power;
        outside -= block;
      });
      return inside + outside * base ** power;
    };
    /** What devices of these shares send. @param {(b: number, inputs: number[]) => [number, number]} shares */
    const sent = (shares) => parts.map(({ b, inputs, h, size, own: o, extra, hit }) => {
      const [mine, block] = shares(b, inputs);
      const each = o + extra * block;
      return /** @type {[number, number]} */ ([h * each + hit * mine, size * each + hit * block]);
    });
    const many = members.length;
    const alike = sent((_, inputs) => [inputs.length / many, inputs.length / many]);
    const [v, k] = aboutOne(mean(alike, 2), mean(alike, 3));
    const told = populations.map((population, i) => {
      const law = sent((b, inputs) => [sum(inputs.map((x) => population[x])), crowds[i][b]]);
      return /** @type {const} */ ([sum(members.map((x) => population[x])), mean(law, 2), mean(law, 3)]);
    });
    const seen = parts.map(({ b, inputs }) =>
      /** @type {[number, number]} */ ([sum(inputs.map((x) => cells[x])) / n, reports[b] / n]),
    );
    return { ...found, law: mixed([v, k], elsewhere(v, k, told), mean(seen, 2)) };
  });
}

/** The law of a score of many values. @param {Moments} own @param {Moments} far @param {number} observed @returns {Law} */
function mixed(own, far, observed) {
  return { own, far, near: null, around: 0, step: 0, odds: null, observed };
}

/** The law of a score of two values, as the count that it is. @param {Moments} own @param {Moments} far @param {number} step @param {number[]} odds @returns {Law} */
function counted(own, far, step, [p, q]) {
  return { own, far, near: null, around: 0, step, odds: twoOdds(p, q), observed: -Infinity };
}

/** Variance and third central moment of a score of mean 1, from its raw moments. @param {number} second @param {number} third @returns {Moments} */
function aboutOne(second, third) {
  const v = second - 1;
  return [v, third - 3 * v - 1];
}

/**
 * Moments of devices elsewhere: of the population in which they vary more, and of the first where both vary alike up to
 * rounding, as by pairwise independent hashes.
 *
 * @param {number} v
 * @param {number} k
 * @param {(readonly [number, number, number])[]} told share, second and third raw moment
 * @returns {Moments}
 */
function elsewhere(v, k, told) {
  const [one, other] = told.map(([share, second, third]) => {
    const rest = 1 - share;
    if (rest < 1e-9) return /** @type {Moments} */ ([0, 0]);
    const variance = (second - share * (v + 1)) / rest;
    return /** @type {Moments} */ ([Math.max(variance, 0), (third - share * (k + 3 * v + 1)) / rest]);
  });
  return other[0] > one[0] * (1 + ALIKE) ? other : one;
}

/** Randomised response of categories: a value is told where it is alone in its own. @param {Spec} spec @param {number[][]} rows @param {Counts} counts @returns {Families} */
function ofCategories(spec, rows, counts) {
  const sizes = spec.ints('sizes').map(Number);
  const [t, o] = [spec.int('t'), spec.int('o')];
  const many = BigInt(sizes.length);
  const blocks = sizes.map(() => new Block(1, t, t, o, t + (many - 1n) * o, t - o));
  const own = sizes.flatMap((size, c) => new Array(size).fill(c));
  if (rows.length !== 1 || rows[0].some((c, x) => c !== own[x])) return [null, null];
  const [values, categories] = ofBlocks(blocks, [sizes.map((_, c) => c)], counts);
  if (values === null) return [null, null];
  const shown = own.map((c) => (sizes[c] > 1 ? { ...values[c], estimate: null } : values[c]));
  return [shown, categories];
}

/** Cells that are in a share p of the reports of their own devices, and in q of all others': (C/n - q) / (p - q). @param {Exact} p @param {Exact} q @param {Counts} counts @param {number} inputs */
function supports([pTop, pBottom], [qTop, qBottom], { cells, n }, inputs) {
  const gap = /** @type {Exact} */ ([pTop * qBottom - qTop * pBottom, pBottom * qBottom]);
  const ends = [quotient((qBottom - qTop) * gap[1], qBottom * gap[0]), quotient(-qTop * gap[1], qBottom * gap[0])];
  const odds = [quotient(pTop, pBottom), quotient(qTop, qBottom)];
  const [own, far] = odds.map((share) => central(ends, [share, 1 - share]));
  const step = quotient(gap[1], gap[0]);
  const law = counted(own, far, step, odds);
  const bottom = qBottom * BigInt(n) * gap[0];
  return cells.slice(0, inputs).map((count) => {
    const top = (qBottom * BigInt(count) - qTop * BigInt(n)) * gap[1];
    return cellOf([top, bottom], { law, least: ends[1], most: ends[0] });
  });
}

/** @param {Exact} p @param {Exact} q @param {Spec} spec @param {number[][]} rows @param {Counts} counts @returns {Families} */
function ofSupports(p, q, spec, rows, counts) {
  const values = supports(p, q, counts, Number(spec.int('inputs')));
  const alone = rows.every((row) => new Set(row).size === row.length);
  const categories = rows.flatMap((row) => {
    if (alone) return membersOf(row).map(([x]) => values[x]);
    return sums(values, row).map((exact) => cellOf(exact, { law: null, least: 0, most: 0 }));
  });
  return [values, categories];
}

/** @param {Spec} spec @param {number[][]} rows @param {Counts} counts @returns {Families} */
function ofHashing(spec, rows, counts) {
  const [inputs, q, t, u] = [spec.int('inputs'), spec.int('buckets'), spec.int('t'), spec.int('u')];
  let points = q;
  while (points < inputs) points *= q;
  const seeds = (points - 1n) / (q - 1n);
  const together = (points / q - 1n) / (q - 1n);
  const total = seeds * (t + (q - 1n) * u);
  const low = u * seeds + (t - u) * together;
  const [values, summed] = ofSupports([low + (t - u) * (points / q), total], [low, total], spec, rows, counts);
  const hashed = new Hashed(spec);
  const groups = rows.flatMap(membersOf);
  if (values === null || summed === null || !hashed.tells(groups.length)) return [values, summed];
  return [values, hashedGroups(hashed, groups, counts, values).map((law, c) => cellOf(summed[c].exact, law))];
}

/** Return the laws of categories, and the least and most that a report adds: of several inputs by their histograms. @param {Hashed} hashed @param {number[][]} groups @param {Counts} counts @param {Cell[]} values */
function hashedGroups(hashed, groups, { cells, n }, values) {
  const every = values.map((_, x) => x);
  const populations = plausible(values.map(({ estimate }) => estimate ?? 0));
  const sent = populations.map((population) => hashed.sent(every, (x) => population[x]));
  let at = values.length;
  return groups.map((members) => {
    const first = values[members[0]];
    if (members.length === 1 || first.law === null) return first;
    const held = hashed.held(members);
    const [least, most] = held.reduce(([a, b], h) => [Math.min(a, h), Math.max(b, h)], [Infinity, 0]);
    /** @param {number} h */
    const score = (h) => Number(first.law?.step) * h + first.least * members.length;
    /** @param {Float64Array} law @param {number} power */
    const mean = (law, power) => law.reduce((found, share, y) => found + share * score(held[y]) ** power, 0);
    const own = hashed.sent(members, () => 1 / members.length);
    const [v, k] = aboutOne(mean(own, 2), mean(own, 3));
    const told = sent.map((law, i) =>
      /** @type {const} */ ([sum(members.map((x) => populations[i][x])), mean(law, 2), mean(law, 3)]),
    );
    const histogram = cells.slice(at, (at += most + 1));
    const observed = sum(histogram.map((count, h) => count * score(h) ** 2)) / n;
    return { law: mixed([v, k], elsewhere(v, k, told), observed), least: score(least), most: score(most) };
  });
}
