/**
 * Surveys: canonical bytes, every rule of them, and which input a value is.
 *
 * @module
 */

import { readChannel } from './channel.js';
import { SetSelection } from './channels/items.js';
import { SampledParts } from './channels/parts.js';
import { NestedLevels } from './channels/sets.js';
import { Grr, LevelsTable, TreeNode } from './channels/tables.js';
import { exactSum, expBelow, expOfMinus, lnAbove, parts, place } from './exact.js';
import { labels } from './levels.js';
import { Pairs, Refused, array, arrayOf, equal, float, integer, must, read, text, whole, write } from './msgpack.js';
import { printable } from './printable.js';
import { below, coin } from './random.js';
import { coinToss } from './rotation.js';

/** @typedef {import('./msgpack.js').Value} Value */
/** @typedef {import('./channel.js').Channel} Channel */
/** @typedef {import('./random.js').Bytes} Bytes */

export const MAX_BYTES = 2 ** 24;
const MAX_ELEMENTS = 10 * 2 ** 17;
const LONG_BYTES = 2 ** 16;
const MAX_SIZE = 2 ** 17 - 1;
const MAX_COMBINATIONS = 2 ** 17;
const MAX_CELLS = 2 ** 18;
const EXACT = 2 ** 53 - 1;
const DAY_S = 86_400;
const MAX_DEVICES = 10 ** 11;
export const MAX_ROTATION = 100_000;
const MAX_TERM = 1e150;
const SCORE_TOTAL = 2n ** 62n;

/** Return the first 16 bytes of SHA-256. @param {Uint8Array} data */
export async function digestOf(data) {
  const whole = await crypto.subtle.digest('SHA-256', /** @type {BufferSource} */ (data));
  return new Uint8Array(whole, 0, 16);
}

/** @param {string} value */
function characters(value) {
  let n = 0;
  for (const _ of value) n += 1;
  return n;
}

/** @param {Value} value @param {number} most */
function short(value, most) {
  const found = text(value);
  must(characters(found) <= most, 'text too long');
  return found;
}

/** @param {Value} value */
function title(value) {
  const found = short(value, 200);
  must(found !== '' && printable(found), 'text must be printable');
  return found;
}

/** @param {Value} value */
function identifier(value) {
  const found = text(value);
  must(/^[a-z0-9][a-z0-9._-]{0,63}$/.test(found) && !found.includes('\n'), 'an id of a-z 0-9 . - _');
  return found;
}

/** @param {unknown[]} items */
function allDiffer(items) {
  return new Set(items).size === items.length;
}

/**
 * An attribute: its id, and the values that it may have.
 *
 * @typedef {{type: 'label', labels: string[]} | {type: 'set', labels: string[]}
 *   | {type: 'integer' | 'number', low: number, high: number}} Domain
 */
export class Attribute {
  /** @param {Value} value */
  constructor(value) {
    const [id, kind, type, domain] = arrayOf(value, 4);
    this.id = identifier(id);
    this.kind = short(kind, 64);
    must(this.kind === 'static' || this.kind === 'evolving', 'static or evolving');
    /** @type {Domain} */
    this.domain = readDomain(short(type, 64), domain);
  }

  /** Return how many values a domain that is no interval has. */
  size() {
    must(this.domain.type !== 'number' && this.domain.type !== 'set', 'what has no places');
    return this.domain.type === 'label' ? this.domain.labels.length : this.domain.high - this.domain.low + 1;
  }

  /** Return the place of a value, that after the last for whatever is not in the domain. @param {Value} value */
  index(value) {
    const { domain } = this;
    const size = this.size();
    if (domain.type === 'label') {
      const found = placeOf(value, domain.labels);
      return found < 0 ? size : found;
    }
    const inside = domain.type !== 'set' &&
      (typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))) &&
      value >= domain.low && value <= domain.high;
    return inside ? Number(value) - domain.low : size;
  }

  /** Return the places of the items that a list has, rising, other things left out; null for what is none. @param {Value} value */
  items(value) {
    must(this.domain.type === 'set', 'no items');
    const { labels: own } = this.domain;
    const held = value instanceof Pairs ? value.items.map(([key]) => key) : value;
    if (!Array.isArray(held)) return null;
    const places = new Set(held.map((each) => placeOf(each, own)));
    return own.map((_, i) => i).filter((i) => places.has(i));
  }

  /** @returns {[number, number]} */
  ends() {
    must(this.domain.type !== 'label' && this.domain.type !== 'set', 'labels in a score');
    return [this.domain.low, this.domain.high];
  }

  /**
   * Return a number of the domain as mantissa and exponent, and as a float; null for anything else.
   *
   * @param {Value} value
   * @returns {[[bigint, number], number] | null}
   */
  number(value) {
    const [low, high] = this.ends();
    // A bigint and a number are compared as the exact numbers that they are.
    if (typeof value === 'bigint') return value >= low && value <= high ? [[value, 0], Number(value)] : null;
    if (typeof value !== 'number' || !(low <= value && value <= high)) return null;
    return this.domain.type === 'number' || Number.isInteger(value) ? [parts(value), value] : null;
  }
}

/** Return the place of a text among labels, -1 if it is none. @param {Value} value @param {string[]} listed */
function placeOf(value, listed) {
  if (typeof value !== 'string') return -1;
  const found = listed.indexOf(value);
  if (found >= 0) return found;
  const composed = value.normalize('NFC'); // one text has several spellings in Unicode
  return listed.findIndex((label) => label.normalize('NFC') === composed);
}

/** @param {string} type @param {Value} domain @returns {Domain} */
function readDomain(type, domain) {
  if (type === 'label' || type === 'set') {
    const found = array(domain).map((label) => short(label, 200));
    must(found.length >= 2 && found.length <= MAX_SIZE, 'two labels and more');
    must(!found.includes(''), 'an empty label');
    must(allDiffer(found), 'labels must differ');
    return { type, labels: found };
  }
  must(type === 'integer' || type === 'number', 'an unknown type');
  const ends = arrayOf(domain, 2);
  const [low, high] = ends.map((end) => (type === 'integer' ? whole(end, -EXACT, EXACT) : float(end)));
  if (type === 'integer') must(low < high && high - low < MAX_SIZE, 'an integer domain out of range');
  else must(low < high && Number.isFinite(high - low), 'a domain of numbers out of range');
  return { type, low, high };
}

/**
 * Return how many elements a value has, nested ones counted, and both sides of a map.
 *
 * @param {Value} value
 * @returns {number}
 */
function elements(value) {
  let n = 1;
  if (Array.isArray(value)) for (const each of value) n += elements(each);
  if (value instanceof Pairs) for (const [key, each] of value.items) n += elements(key) + elements(each);
  return n;
}

/** @param {number[]} mapping */
function rises(mapping) {
  return mapping.every((x, i) => x === i);
}

/**
 * Return an array of indices, or every index by itself where it is nil; nil wherever it may be.
 *
 * @param {Value} value
 * @param {number} size
 * @param {number} most
 */
function readMapping(value, size, most) {
  if (value === null) return Array.from({ length: size + 1 }, (_, i) => i);
  const found = array(value).map((n) => whole(n, 0, most));
  must(!rises(found), 'nil must be used where it may be');
  must(found.length === size + 1, 'a reading of every index');
  return found;
}

/** Names that differ, the last "missing" and no other. @param {Value[]} listed @param {boolean} withMissing */
function names(listed, withMissing) {
  const found = listed.map(title);
  const last = found.length - 1;
  must(found.every((name, i) => (name === 'missing') === (withMissing && i === last)), 'missing last');
  must(allDiffer(found), 'names must differ');
}

/** Which values share an input: how many of each. @param {number[]} mapping @param {number} inputs */
function shares(mapping, inputs) {
  const found = new Array(inputs).fill(0);
  for (const x of mapping) {
    must(x < inputs, 'an input that is none');
    found[x] += 1;
  }
  must(found.every((n) => n >= 1) && found[inputs - 1] === 1, 'a value for every input, missing alone');
  must(mapping.at(-1) === inputs - 1, 'only missing is the last input');
  return found;
}

/** One attribute: the input of every index, or a grid of points. */
class Single {
  /** @param {Attribute} attribute @param {Channel} channel @param {Value} map @param {Value} categories */
  constructor(attribute, channel, map, categories) {
    const { inputs } = channel;
    const pairs = array(categories).map((pair) => arrayOf(pair, 2));
    const sizes = pairs.map((pair) => whole(pair[1], 1, inputs));
    must(sizes.reduce((a, b) => a + b, 0) === inputs, 'categories of all inputs');
    must(inputs >= 3 && sizes.length >= 2 && sizes.at(-1) === 1, 'missing last and alone');
    names(pairs.map((pair) => pair[0]), true);
    const of = labels(sizes);
    must(channel.fits(of), "other categories than the channel's");
    this.inputs = inputs;
    /** @type {number[] | null} */
    this.mapping = null;
    if (attribute.domain.type === 'number') {
      must(map === null, 'a map of numbers');
      mustRise(attribute.domain.low, attribute.domain.high, inputs - 1);
      return;
    }
    this.mapping = readMapping(map, attribute.size(), inputs - 1);
    const values = shares(this.mapping, inputs);
    must(values.every((n, x) => n === 1 || sizes[of[x]] === 1), 'values that share an input share a category');
  }

  /** @param {Attribute[]} attributes @param {Value[]} values @param {Bytes} source */
  input([attribute], [value], source) {
    if (this.mapping !== null) return this.mapping[attribute.index(value)];
    const found = attribute.number(value);
    if (found === null) return this.inputs - 1;
    const [low, high] = attribute.ends();
    return rounded(found[0], low, high, this.inputs - 1, source);
  }

  /** Return the input of every cell that a filter tells apart, and how many each attribute has. */
  cells() {
    const inputs = this.mapping ?? Array.from({ length: this.inputs }, (_, x) => x);
    return { inputs, shape: [inputs.length] };
  }
}

/** Refuse a grid whose points do not rise in floats. @param {number} low @param {number} high @param {number} points */
function mustRise(low, high, points) {
  const step = (high - low) / (points - 1);
  let before = -Infinity;
  for (let i = 0; i < points; i++) {
    const along = step === 0 ? (i / (points - 1)) * (high - low) : i * step;
    const point = i === points - 1 ? high : along + low;
    must(before < point, 'points must differ');
    before = point;
  }
}

/**
 * Return the point of a grid that a number is rounded to: the upper one by its share of the way, exactly.
 *
 * @param {[bigint, number]} x
 * @param {number} low
 * @param {number} high
 * @param {number} points
 * @param {Bytes} source
 */
function rounded(x, low, high, points, source) {
  const [index, part, all] = place(x, low, high, points);
  return part === 0n ? index : index + (coin(source, part, all) ? 1 : 0);
}

/** A table of several attributes: the reading of every index of each. */
class Table {
  /** @param {Attribute[]} attributes @param {Channel} channel @param {Value[]} form */
  constructor(attributes, channel, form) {
    must(form.length === 2 && attributes.length >= 2 && attributes.length <= 10, 'two to ten attributes');
    const items = arrayOf(form[1], attributes.length);
    let inputs = 1;
    let cells = 1;
    this.readings = attributes.map((attribute, j) => {
      const reading = readReading(attribute, arrayOf(items[j], 2));
      inputs *= count(reading);
      cells *= reading.length;
      return reading;
    });
    must(inputs <= MAX_COMBINATIONS && cells <= MAX_CELLS, 'too many combinations');
    must(channel.inputs === inputs && channel.tellsInputs, "another channel than the table's");
  }

  /** @param {Attribute[]} attributes @param {Value[]} values */
  input(attributes, values) {
    return this.readings.reduce((input, reading, j) => input * count(reading) + reading[attributes[j].index(values[j])], 0);
  }

  cells() {
    return product(this.readings);
  }
}

/** A transition: an evolving attribute some rounds ago and now. */
class Transition {
  /** @param {Attribute[]} attributes @param {Channel} channel @param {Value[]} form @param {number} rounds */
  constructor(attributes, channel, form, rounds) {
    must(form.length === 5 && attributes.length === 1 && attributes[0].kind === 'evolving', 'one that evolves');
    this.reading = readReading(attributes[0], form.slice(1, 3));
    this.values = count(this.reading) - 1;
    must((this.values + 1) ** 2 <= MAX_COMBINATIONS && this.reading.length ** 2 <= MAX_CELLS, 'too many pairs');
    /** Rounds between the two values. */
    this.lag = whole(form[3], 1, rounds - 1);
    this.asks = text(form[4]);
    const r = this.values;
    /** @type {Record<string, number[]>} */
    const asked = { pairs: [(r + 1) ** 2 - 1, 1], changed: [r, r * (r - 1), 1], direction: [3, 1] };
    must(Object.hasOwn(asked, this.asks) && (this.asks !== 'direction' || r === 2), 'an unknown question');
    const of = labels(asked[this.asks]);
    must(channel.inputs === of.length && channel.fits(of), "another channel than the transition's");
    this.inputs = of.length;
  }

  /** @param {Attribute[]} attributes @param {Value[]} values then and now */
  input([attribute], values) {
    const [a, b] = values.map((value) => this.reading[attribute.index(value)]);
    const r = this.values;
    if (this.asks === 'pairs') return a * (r + 1) + b;
    if (a === r || b === r) return this.inputs - 1;
    if (this.asks === 'direction') return 1 + a - b;
    return a === b ? a : r + a * (r - 1) + b - (b > a ? 1 : 0);
  }

  cells() {
    return { inputs: Array.from({ length: this.inputs }, (_, x) => x), shape: [this.inputs] };
  }
}

/** Two readings that stand for all values of a coordinate which no other survey reads. */
const ALONE = { inputs: [0, 1], shape: [2] };

/** Sets of items. */
class ItemSet {
  /** @param {Attribute[]} attributes @param {Channel} channel @param {Value[]} form */
  constructor(attributes, channel, form) {
    must(form.length === 2 && attributes.length === 1 && attributes[0].domain.type === 'set', 'one attribute of sets');
    must(channel instanceof SetSelection && BigInt(channel.most) === form[1], 'another channel than that of sets');
    must(channel.inputs === attributes[0].domain.labels.length + 1, 'another number of items');
    this.most = channel.most;
    this.missing = channel.inputs - 1;
  }

  /** Return the items that are sent, rising: of more than count, so many drawn. @param {Attribute[]} attributes @param {Value[]} values @param {Bytes} source */
  input([attribute], [value], source) {
    const held = attribute.items(value) ?? [this.missing];
    for (let i = held.length; i > this.most; i--) held.splice(Number(below(source, BigInt(i))), 1);
    return held;
  }

  cells() {
    return ALONE;
  }
}

/** A bundle: tables of many attributes, of which a device answers one part. */
export class Bundle {
  /** @param {Attribute[]} attributes @param {Channel} channel @param {Value[]} form */
  constructor(attributes, channel, form) {
    must(form.length === 3 && channel instanceof SampledParts, "another channel than the bundle's");
    const items = arrayOf(form[1], attributes.length);
    this.channel = channel;
    this.readings = attributes.map((attribute, j) => readReading(attribute, arrayOf(items[j], 2)));
    must(same(this.readings.map(count), channel.readings), 'other readings');
    const tables = array(form[2]).map((table) => array(table).map((n) => whole(n, 0, attributes.length - 1)));
    must(tables.length >= 1 && tables.length <= 4096 && allDiffer(tables.map(String)), 'tables that differ');
    must(tables.every((own) => own.every((n, i) => i === 0 || own[i - 1] < n)), 'attributes that rise');
    must(tables.every((own) => own.length >= 1 && own.length <= 4), 'tables of one to four');
    must(new Set(tables.flat()).size === attributes.length, 'every attribute in a table');
    const within = (/** @type {number[]} */ own) => channel.members.some((part) => own.every((n) => part.includes(n)));
    must(tables.every(within), 'a table within a part');
  }

  /**
   * Return the part and the cell of its table.
   *
   * @param {Attribute[]} attributes
   * @param {Value[]} values only those of the part are looked at
   * @param {Bytes} _
   * @param {number} [part] as `Survey.part` gives it
   */
  input(attributes, values, _, part) {
    must(part !== undefined, 'a part that the coin picked');
    const cell = this.channel.members[part].reduce((found, member) => {
      const reading = this.readings[member];
      return found * count(reading) + reading[attributes[member].index(values[member])];
    }, 0);
    return [part, cell];
  }

  /** Return how an answer reads the values of its part, over whole domains; cells is null of too many. @param {unknown} symbol */
  moved(symbol) {
    const { part, column } = this.channel.told(symbol);
    const own = this.channel.members[part].map((member) => this.readings[member]);
    const small = own.reduce((n, reading) => n * reading.length, 1) <= MAX_CELLS;
    return { column, many: own.length, cells: small ? product(own) : null };
  }

  cells() {
    return ALONE;
  }
}

/** Return the combination of readings of every combination of values, and how many values each has. @param {number[][]} readings */
function product(readings) {
  let inputs = [0];
  for (const reading of readings) inputs = inputs.flatMap((x) => reading.map((r) => x * count(reading) + r));
  return { inputs, shape: readings.map((reading) => reading.length) };
}

/** Return how many readings there are, missing included. @param {number[]} reading */
function count(reading) {
  return /** @type {number} */ (reading.at(-1)) + 1;
}

/** Return the reading of every index of an attribute. @param {Attribute} attribute @param {Value[]} pair map and names */
function readReading(attribute, [map, named]) {
  const reading = readMapping(map, attribute.size(), MAX_SIZE);
  const missing = count(reading) - 1;
  must(missing >= 2, 'two readings, and missing');
  shares(reading, missing + 1);
  if (named === null) must(rises(reading), 'names where values share a reading');
  else names(arrayOf(named, missing), false);
  return reading;
}

/** A tree of labels, or a heat map of two integers: the input of every index, or of two. */
class LabelTree {
  /** @param {Attribute[]} attributes @param {Channel} channel @param {Value[]} form */
  constructor(attributes, channel, form) {
    const ownKind = channel instanceof NestedLevels || (channel instanceof LevelsTable && !(channel instanceof TreeNode));
    must(ownKind, "another channel than a tree's");
    const { mapping, side, sizes } = form.length === 2 ? squares(attributes, form[1]) : branches(attributes, form);
    this.mapping = mapping;
    this.side = side;
    const { of } = /** @type {NestedLevels | LevelsTable} */ (channel).levels;
    must(of.length === sizes.length + 1 && channel.inputs === (this.mapping.at(-1) ?? 0) + 1, 'another tree');
    must(sizes.every((level, l) => same(labels([...level, 1]), of[l])), "other levels than the channel's");
  }

  /** @param {Attribute[]} attributes @param {Value[]} values */
  input(attributes, values) {
    const [first, second] = attributes.map((attribute, i) => attribute.index(values[i]));
    return this.mapping[second === undefined ? first : first * this.side + second];
  }

  cells() {
    return { inputs: this.mapping, shape: this.side ? [this.side, this.side] : [this.mapping.length] };
  }
}

/**
 * Return the cells of a heat map in Morton order, and its levels.
 *
 * @param {Attribute[]} attributes
 * @param {Value} name
 */
function squares(attributes, name) {
  must(text(name) === 'quadtree' && attributes.length === 2, 'a heat map of two');
  must(attributes.every(({ domain }) => domain.type === 'integer'), 'a heat map of integers');
  const [across, up] = attributes.map((attribute) => attribute.size());
  const depth = Math.log2(across);
  must(across === up && Number.isInteger(depth) && depth >= 2 && depth <= 8, '2^k values, k from 2 to 8');
  const mapping = [];
  for (let x = 0; x <= across; x++) {
    for (let y = 0; y <= up; y++) {
      mapping.push(x === across || y === up ? across * up : spread(x) + 2 * spread(y));
    }
  }
  const sizes = Array.from({ length: depth - 1 }, (_, l) => new Array(4 ** (l + 1)).fill(4 ** (depth - l - 1)));
  return { mapping, side: across + 1, sizes };
}

/**
 * Return the input of every index, and the levels of categories.
 *
 * @param {Attribute[]} attributes
 * @param {Value[]} form
 */
function branches(attributes, form) {
  must(form.length === 3 && attributes.length === 1, 'one attribute in a tree');
  const size = attributes[0].size();
  const mapping = readMapping(form[1], size, MAX_SIZE);
  must(allDiffer(mapping) && mapping.every((x) => x <= size), 'an input for every value');
  must(mapping.at(-1) === size, 'missing last');
  const listed = array(form[2]);
  must(listed.length >= 1 && listed.length <= 8, '1 to 8 levels');
  /** @type {{start: number, end: number, name: string, joined: string}[]} */
  let above = [];
  const sizes = listed.map((level) => {
    let end = 0;
    let at = 0;
    const found = array(level).map((pair) => {
      const [named, many] = arrayOf(pair, 2);
      const [name, start] = [title(named), end];
      end += whole(many, 1, MAX_COMBINATIONS);
      must(end <= size, 'more values than there are');
      while (at < above.length && above[at].end <= start) at += 1;
      const parent = above[at];
      const unsplit = parent !== undefined && parent.start === start && parent.end === end;
      must(!unsplit || parent.name === name, 'an unsplit category keeps its name');
      const joined = parent === undefined ? name : unsplit ? parent.joined : `${parent.joined} / ${name}`;
      return { start, end, name, joined };
    });
    must(end === size, 'all values at every level');
    must(allDiffer([...found.map(({ joined }) => joined), 'missing']), 'names must differ');
    above = found;
    return found.map(({ start, end: stop }) => stop - start);
  });
  return { mapping, side: 0, sizes };
}

/** Return a number below 2^8 with a zero bit above each of its own. @param {number} n */
function spread(n) {
  let found = 0;
  for (let bit = 0; bit < 8; bit++) found |= ((n >> bit) & 1) << (2 * bit);
  return found;
}

/** @param {number[]} one @param {number[]} other */
function same(one, other) {
  return one.length === other.length && one.every((each, i) => each === other[i]);
}

/** A score: the probability of "yes" is a place between two ends. */
class Score {
  /** @param {Attribute[]} attributes @param {Channel} channel @param {Value[]} form @param {number} epsilon */
  constructor(attributes, channel, form, epsilon) {
    must(form.length === 5 && attributes.length >= 1 && attributes.length <= 64, 'one to 64 attributes');
    must(attributes.every((each, i) => i === 0 || attributes[i - 1].id < each.id), 'attributes in order');
    this.kind = text(form[1]);
    must(['linear', 'truncated', 'logistic'].includes(this.kind), 'an unknown score');
    const pairs = arrayOf(form[2], attributes.length).map((pair) => arrayOf(pair, 2).map(float));
    this.coefficients = pairs.map(([coefficient]) => coefficient);
    this.defaults = pairs.map(([, other]) => other);
    this.intercept = float(form[3]);
    const [low, high] = arrayOf(form[4], 2).map(float);
    this.low = low;
    this.high = high;
    const logistic = this.kind === 'logistic';
    must(low < high && (!logistic || (low === 0 && high === 1)), 'ends of a score');
    const domains = attributes.map((attribute) => attribute.ends());
    must(this.defaults.every((d, i) => domains[i][0] <= d && d <= domains[i][1]), 'a default out of its domain');
    const sizes = this.coefficients.map((a, i) => Math.abs(a) * Math.max(...domains[i].map(Math.abs)));
    const largest = Math.max(...sizes, Math.abs(this.intercept), Math.abs(low), Math.abs(high));
    must(largest <= MAX_TERM, 'terms too large');
    const error = (sizes.length + 8) * 2 ** -52 * (Math.abs(this.intercept) + exactSum(sizes));
    if (this.kind === 'linear') {
      /** @param {(a: number, b: number) => number} end */
      const along = (end) =>
        exactSum([this.intercept, ...this.coefficients.map((a, i) => end(a * domains[i][0], a * domains[i][1]))]);
      const spare = error + 1e-12 * (high - low);
      must(along(Math.min) >= low - spare && along(Math.max) <= high + spare, 'a score beyond its ends');
    }
    const above = expBelow(epsilon - 2 ** -36) + (1n << 96n);
    const least = ((SCORE_TOTAL << 96n) + above - 1n) / above;
    const steep = logistic ? 0.25 : 1 / (high - low);
    let shift = steep * error + 2 ** -49;
    if (!logistic) shift += 2 ** -50 * steep * Math.max(Math.abs(low), Math.abs(high));
    const slack = (2 * shift * Number(SCORE_TOTAL - 2n * least)) / Number(least);
    must(slack <= 1e-6, 'coefficients too large');
    const own = channel instanceof Grr && channel.u === least && channel.t === SCORE_TOTAL - least;
    must(own && channel.inputs === 2, "another channel than the score's");
  }

  /** Return the place between the ends, 0 to 1. @param {number[]} numbers */
  place(numbers) {
    const sum = exactSum([this.intercept, ...this.coefficients.map((a, i) => a * numbers[i])]);
    if (this.kind === 'logistic') {
      const small = expOfMinus(Math.abs(sum));
      return sum >= 0 ? 1 / (1 + small) : small / (1 + small);
    }
    return Math.min(Math.max((sum - this.low) / (this.high - this.low), 0), 1);
  }

  /** @param {Attribute[]} attributes @param {Value[]} values @param {Bytes} source */
  input(attributes, values, source) {
    const numbers = attributes.map((attribute, i) => attribute.number(values[i])?.[1] ?? this.defaults[i]);
    return rounded(parts(this.place(numbers)), 0, 1, 2, source);
  }

  /** @returns {{inputs: number[], shape: number[]}} */
  cells() {
    throw new Refused('a score, whose bounds are of floats');
  }
}

/** Return the ledgers that are named, in their order: the durable alone is meant without a name. @param {Value} value */
function readLedgers(value) {
  const named = array(value).map(text);
  const site = named.length - 1;
  must(site >= 0 && site <= 1 && named[site] === 'site-data' && (site === 0 || named[0] === 'durable'), 'ledgers in their order');
  return named;
}

/** A survey, certified: epsilon follows from the integers that are drawn. */
export class Survey {
  /** @param {Uint8Array} canonical @param {Uint8Array} digest */
  constructor(canonical, digest) {
    must(canonical.length <= MAX_BYTES, 'too long');
    const value = read(canonical);
    must(canonical.length <= LONG_BYTES || elements(value) <= MAX_ELEMENTS, 'too many elements');
    must(equal(write(value), canonical), 'another encoding');
    const fields = array(value);
    must(fields.length >= 2 && text(fields[0]) === 'hubbub-survey', 'no survey');
    const layout = whole(fields[1], 1, 4);
    const alone = layout % 2 === 1;
    must(fields.length === 15 + (alone ? 1 : 0) + (layout > 2 ? 1 : 0), 'another number of fields');
    /** Where a device that answers may keep its account; a browser's is "site-data". */
    this.ledgers = layout > 2 ? readLedgers(/** @type {Value} */ (fields.pop())) : ['durable'];
    this.canonical = canonical;
    this.digest = digest;
    this.id = identifier(fields[2]);
    this.version = whole(fields[3], 1, 2 ** 31 - 1);
    this.title = title(fields[4]);
    /** As declared; `certified` is at most this. */
    this.epsilon = float(fields[6]);
    must(this.epsilon >= 1e-6 && this.epsilon <= 40, 'epsilon out of range');
    this.channel = readChannel(fields[7]);
    const [schedule, lateness, skew, cohort, devices, quota] = fields.slice(-6);
    const [start, round, rounds, ...rotation] = array(schedule);
    must(round !== undefined && rounds !== undefined && rotation.length <= 1, 'a schedule of three or four');
    this.start_s = whole(start, 0, 2 ** 32 - 1);
    this.round_s = whole(round, 1, 366 * DAY_S);
    this.rounds = whole(rounds, 1, 100_000);
    /** Rounds of a cycle, in which a device answers one; 1 where it answers every round. */
    this.rotation = rotation.length ? whole(rotation[0], 2, MAX_ROTATION) : 1;
    this.lateness_s = whole(lateness, 0, 90 * DAY_S);
    this.skew_s = whole(skew, 0, DAY_S);
    this.minimumCohort = whole(cohort, 1, MAX_DEVICES);
    this.plannedDevices = whole(devices, 1, MAX_DEVICES);
    this.quota = quota === null ? null : whole(quota, 1, EXACT);
    this.attributes = (alone ? [fields[5]] : array(fields[5])).map((each) => new Attribute(each));
    must(allDiffer(this.attributes.map((each) => each.id)), 'attributes must differ');
    const evolves = this.attributes.some((each) => each.kind === 'evolving');
    must(evolves || this.rotation === 1, 'a rotation of one answer');
    this.form = this.#form(alone, fields);
    const [n, d] = this.channel.ratio();
    /** The least float that is not below the largest log-ratio. */
    this.certified = lnAbove(n, d);
    must(this.certified <= this.epsilon, 'epsilon exceeds what is declared');
  }

  /**
   * Return the survey of canonical bytes.
   *
   * @param {Uint8Array} canonical
   * @throws {import('./msgpack.js').Refused} They break a rule.
   */
  static async read(canonical) {
    return new Survey(canonical, await digestOf(canonical));
  }

  /** @param {boolean} alone @param {Value[]} fields @returns {Single | Table | LabelTree | Transition | ItemSet | Bundle | Score} */
  #form(alone, fields) {
    if (alone) return new Single(this.attributes[0], this.channel, fields[8], fields[9]);
    const form = array(fields[8]);
    must(form.length > 0, 'no form');
    const name = text(form[0]);
    if (name === 'table') return new Table(this.attributes, this.channel, form);
    if (name === 'tree') return new LabelTree(this.attributes, this.channel, form);
    if (name === 'transition') return new Transition(this.attributes, this.channel, form, this.rounds);
    if (name === 'set') return new ItemSet(this.attributes, this.channel, form);
    if (name === 'bundle') return new Bundle(this.attributes, this.channel, form);
    must(name === 'score', 'an unknown form');
    return new Score(this.attributes, this.channel, form, this.epsilon);
  }

  /**
   * Return the part of a bundle that a device answers.
   *
   * @param {Uint8Array} seed the secret of the device's enrolment
   * @param {number} round
   */
  part(seed, round) {
    must(this.form instanceof Bundle, 'no bundle');
    const evolves = this.attributes.some((each) => each.kind === 'evolving');
    return this.form.channel.part(coinToss(seed, evolves ? round + 1 : 0));
  }

  /**
   * Return the input of one value per attribute, of a transition of the value then and the one now: a number, of sets
   * the items, of a bundle part and cell. What random bytes decide is to be kept: drawing anew shows.
   *
   * @param {Value[]} values
   * @param {Bytes} source
   * @param {number} [part] of a bundle: see `part`
   * @returns {number | number[]}
   */
  input(values, source, part) {
    const reads = this.form instanceof Transition ? 2 : this.attributes.length;
    must(values.length === reads, 'a value per attribute');
    return this.form.input(this.attributes, values, source, part);
  }
}
