/**
 * Attributes: ids, and the values that each may have.
 *
 * @module
 */

import { parts } from './exact.js';
import { Pairs, array, arrayOf, binary, float, must, text, whole } from './msgpack.js';

/** @typedef {import('./msgpack.js').Value} Value */

export const MAX_SIZE = 2 ** 20 - 1;
const EXACT = 2 ** 53 - 1;
/** The value of who is known to have no number; not the missing one, of whom nothing is known. */
export const ABSENT = 'absent';
const ASCII = /^[ -~]*$/;
/** Which other characters are printable: loaded with the first survey that has any. @type {(text: string) => boolean} */
let printable = () => false;

/** Return whether any text within a value has other characters than ASCII. @param {Value} value @returns {boolean} */
function isForeign(value) {
  if (typeof value === 'string') return !ASCII.test(value);
  return Array.isArray(value) && value.some(isForeign);
}

/** Load what it takes to read the titles of a survey. @param {Value} fields */
export async function loadFor(fields) {
  if (isForeign(fields)) ({ printable } = await import('./printable.js'));
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
export function title(value) {
  const found = short(value, 200);
  must(found !== '' && (ASCII.test(found) || printable(found)), 'text must be printable');
  return found;
}

/** @param {Value} value */
export function identifier(value) {
  const found = text(value);
  must(/^[a-z0-9][a-z0-9._-]{0,63}$/.test(found) && !found.includes('\n'), 'an id of a-z 0-9 . - _');
  return found;
}

/** @param {unknown[]} items */
export function allDiffer(items) {
  return new Set(items).size === items.length;
}

/**
 * An attribute: its id, and the values that it may have.
 *
 * @typedef {{type: 'label', labels: string[]} | {type: 'set', labels: string[]}
 *   | {type: 'dictionary', low: 0, high: number, absent: boolean, digest: Uint8Array}
 *   | {type: 'integer' | 'number', low: number, high: number, absent: boolean}} Domain
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
    if (this.domain.type === 'label') return this.domain.labels.length;
    return this.domain.high - this.domain.low + 1 + Number(this.domain.absent);
  }

  /** Return whether a number may be absent. */
  tellsAbsent() {
    return 'absent' in this.domain && this.domain.absent;
  }

  /**
   * Return the place of a value, that after the last for whatever is not in the domain. A value of a dictionary is the
   * place of its text: `agent/dictionary.js` looks it up.
   *
   * @param {Value} value
   */
  index(value) {
    const { domain } = this;
    const size = this.size();
    must(domain.type !== 'dictionary' || typeof value !== 'string', 'a text, no place');
    if (domain.type === 'label') {
      const found = placeOf(value, domain.labels);
      return found < 0 ? size : found;
    }
    const inside = domain.type !== 'set' &&
      (typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))) &&
      value >= domain.low && value <= domain.high;
    if (this.tellsAbsent() && value === ABSENT) return size - 1;
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
    must('low' in this.domain && this.domain.type !== 'dictionary', 'labels in a score');
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
    must(found.length >= 2 && found.length <= MAX_SIZE && !found.includes('') && allDiffer(found), 'two labels that differ');
    return { type, labels: found };
  }
  if (type === 'dictionary') {
    const [texts, name] = arrayOf(domain, 2);
    const digest = binary(name);
    must(digest.length === 32, 'a digest');
    return { type, low: 0, high: whole(texts, 2, MAX_SIZE) - 1, absent: false, digest };
  }
  must(type === 'integer' || type === 'number', 'an unknown type');
  const listed = array(domain);
  const absent = listed.length === 3 && listed[2] === ABSENT;
  const ends = arrayOf(absent ? listed.slice(0, 2) : domain, 2);
  const [low, high] = ends.map((end) => (type === 'integer' ? whole(end, -EXACT, EXACT) : float(end)));
  must(low < high && (type === 'integer' ? high - low + Number(absent) < MAX_SIZE : Number.isFinite(high - low)), 'a domain out of range');
  return { type, low, high, absent };
}
