/**
 * Surveys: canonical bytes, every rule of them, and which input a value is.
 *
 * @module
 */

import { Attribute, allDiffer, identifier, loadFor, title } from './attribute.js';
import { readChannel } from './channel.js';
import { lnAbove } from './exact.js';
import { Pairs, array, equal, float, must, read, text, whole, write } from './msgpack.js';

/** @typedef {import('./msgpack.js').Value} Value */
/** @typedef {import('./channel.js').Channel} Channel */
/** @typedef {import('./random.js').Bytes} Bytes */

/**
 * How a survey asks: from values to an input of its channel.
 *
 * @typedef {object} Form
 * @property {number} [reads] values of an answer, where it is not one per attribute
 * @property {number} [lag] rounds between a transition's two values
 * @property {number[] | null} [mapping] of one attribute, where it is listed
 * @property {(values: Value[], source: Bytes, part?: number) => number | number[]} input
 * @property {() => {inputs: number[], shape: number[]}} cells the input of every cell that a filter tells apart, and how
 *   many values each coordinate has
 * @property {(symbol: unknown) => {column: bigint[], many: number, cells: {inputs: number[], shape: number[]} | null}} [moved]
 *   of a bundle: how an answer reads the values of its part, over whole domains; cells is null of too many
 * @property {(seed: Uint8Array, round: number) => number} [part] of a bundle
 */

/** What a form is made for. @typedef {{attributes: Attribute[], channel: Channel, epsilon: number, rounds: number}} Asked */

export const MAX_BYTES = 2 ** 24;
const MAX_ELEMENTS = 10 * 2 ** 17;
const LONG_BYTES = 2 ** 16;
const EXACT = 2 ** 53 - 1;
const DAY_S = 86_400;
const MAX_DEVICES = 10 ** 11;
/** The forms in which a number may be absent. */
const TELL_ABSENT = ['table', 'transition', 'bundle', 'key_value'];
export const MAX_ROTATION = 100_000;

/** Forms by name; a page loads those that it meets. @type {Record<string, () => Promise<{new (survey: Asked, fields: Value[]): Form}>>} */
const FORMS = {
  single: async () => (await import('./forms/single.js')).Single,
  table: async () => (await import('./forms/table.js')).Table,
  tree: async () => (await import('./forms/tree.js')).LabelTree,
  transition: async () => (await import('./forms/transition.js')).Transition,
  set: async () => (await import('./forms/set.js')).ItemSet,
  bundle: async () => (await import('./forms/bundle.js')).Bundle,
  key_value: async () => (await import('./forms/key_value.js')).KeyValue,
  score: async () => (await import('./forms/score.js')).Score,
};

/** Return the first 16 bytes of SHA-256. @param {Uint8Array} data */
export async function digestOf(data) {
  const whole = await crypto.subtle.digest('SHA-256', /** @type {BufferSource} */ (data));
  return new Uint8Array(whole, 0, 16);
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

/** Return the ledgers that are named, in their order: the durable alone is meant without a name. @param {Value} value */
function readLedgers(value) {
  const named = array(value).map(text);
  const site = named.length - 1;
  must(site >= 0 && site <= 1 && named[site] === 'site-data' && (site === 0 || named[0] === 'durable'), 'ledgers in their order');
  return named;
}

/** A survey, certified: epsilon follows from the integers that are drawn. */
export class Survey {
  /**
   * @param {Uint8Array} canonical
   * @param {Uint8Array} digest
   * @param {Value[]} fields without their ledgers
   * @param {string[]} ledgers
   * @param {string} asks
   * @param {[Channel, {new (survey: Asked, fields: Value[]): Form}, import('./rotation.js')?]} made
   */
  constructor(canonical, digest, fields, ledgers, asks, [channel, Form, own]) {
    this.canonical = canonical;
    this.digest = digest;
    /** Where a device that answers may keep its account; a browser's is "site-data". */
    this.ledgers = ledgers;
    /** The name of what it asks for, such as "table"; "single" of one attribute. */
    this.asks = asks;
    this.channel = channel;
    this.id = identifier(fields[2]);
    this.version = whole(fields[3], 1, 2 ** 31 - 1);
    this.title = title(fields[4]);
    /** As declared; `certified` is at most this. */
    this.epsilon = float(fields[6]);
    must(this.epsilon >= 1e-6 && this.epsilon <= 40, 'epsilon out of range');
    const [schedule, lateness, skew, cohort, devices, quota] = fields.slice(-6);
    const [start, round, rounds, ...rotation] = array(schedule);
    must(round !== undefined && rounds !== undefined && rotation.length <= 1, 'a schedule of three or four');
    this.start_s = whole(start, 0, 2 ** 32 - 1);
    this.round_s = whole(round, 1, 366 * DAY_S);
    this.rounds = whole(rounds, 1, 100_000);
    /** Rounds of a cycle, in which a device answers one; 1 where it answers every round. */
    this.rotation = rotation.length ? whole(rotation[0], 2, MAX_ROTATION) : 1;
    this.slotInCycle = own?.slotInCycle;
    this.lateness_s = whole(lateness, 0, 90 * DAY_S);
    this.skew_s = whole(skew, 0, DAY_S);
    this.minimumCohort = whole(cohort, 1, MAX_DEVICES);
    this.plannedDevices = whole(devices, 1, MAX_DEVICES);
    this.quota = quota === null ? null : whole(quota, 1, EXACT);
    const alone = asks === 'single';
    this.attributes = (alone ? [fields[5]] : array(fields[5])).map((each) => new Attribute(each));
    must(allDiffer(this.attributes.map((each) => each.id)), 'attributes must differ');
    const evolves = this.attributes.some((each) => each.kind === 'evolving');
    must(evolves || this.rotation === 1, 'a rotation of one answer');
    must(TELL_ABSENT.includes(asks) || !this.attributes.some((each) => each.tellsAbsent()), 'a number that may be absent');
    this.form = new Form(this, alone ? fields.slice(8, 10) : array(fields[8]));
    const [n, d] = channel.ratio();
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
    must(canonical.length <= MAX_BYTES, 'too long');
    const value = read(canonical);
    must(canonical.length <= LONG_BYTES || elements(value) <= MAX_ELEMENTS, 'too many elements');
    must(equal(write(value), canonical), 'another encoding');
    const fields = array(value);
    must(fields.length >= 2 && text(fields[0]) === 'hubbub-survey', 'no survey');
    const layout = whole(fields[1], 1, 4);
    must(fields.length === 15 + (layout % 2) + (layout > 2 ? 1 : 0), 'another number of fields');
    const ledgers = layout > 2 ? readLedgers(/** @type {Value} */ (fields.pop())) : ['durable'];
    const asks = layout % 2 ? 'single' : text(array(fields[8])[0] ?? null);
    must(Object.hasOwn(FORMS, asks) && (layout % 2 === 1) === (asks === 'single'), 'an unknown form');
    await loadFor(value);
    const rotates = array(fields.at(-6) ?? null).length > 3;
    const [digest, ...made] = await Promise.all([
      digestOf(canonical), readChannel(fields[7]), FORMS[asks](), rotates ? import('./rotation.js') : undefined,
    ]);
    return new Survey(canonical, digest, fields, ledgers, asks, made);
  }

  /**
   * Return the input of one value per attribute, of a transition of the value then and the one now: a number, of sets
   * the items, of a bundle part and cell. What random bytes decide is to be kept: drawing anew shows.
   *
   * @param {Value[]} values
   * @param {Bytes} source
   * @param {number} [part] of a bundle: see its form's `part`
   */
  input(values, source, part) {
    must(values.length === (this.form.reads ?? this.attributes.length), 'a value per attribute');
    return this.form.input(values, source, part);
  }
}
