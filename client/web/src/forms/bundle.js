/**
 * Bundles: tables of many attributes, of which a device answers one part.
 *
 * @module
 */

import { MAX_SIZE, allDiffer } from '../attribute.js';
import { same } from '../channels/keys.js';
import { SampledParts } from '../channels/parts.js';
import { array, arrayOf, must, whole } from '../msgpack.js';
import { coinToss } from '../rotation.js';
import { ALONE, MAX_CELLS, count, product, readReading } from './readings.js';

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */
/** @typedef {import('../random.js').Bytes} Bytes */

/** A bundle: tables of many attributes, of which a device answers one part. */
export class Bundle {
  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel }, form) {
    must(form.length === 3 && channel instanceof SampledParts, "another channel than the bundle's");
    const items = arrayOf(form[1], attributes.length);
    this.attributes = attributes;
    this.channel = channel;
    this.readings = attributes.map((attribute, j) => readReading(attribute, arrayOf(items[j], 2)));
    must(same(this.readings.map(count), channel.readings), 'other readings');
    const tables = array(form[2]).map((table) => array(table).map((n) => whole(n, 0, attributes.length - 1)));
    must(tables.length >= 1 && tables.length <= 4096 && allDiffer(tables.map(String)), 'tables that differ');
    must(tables.every((own) => own.every((n, i) => i === 0 || own[i - 1] < n)), 'attributes that rise');
    must(tables.every((own) => own.length >= 1 && own.length <= 4), 'tables of one to four');
    must(new Set(tables.flat()).size === attributes.length, 'every attribute in a table');
    must(channel.tell(tables), 'tables that parts tell');
  }

  /**
   * Return the part that a device answers.
   *
   * @param {Uint8Array} seed the secret of the device's enrolment
   * @param {number} round
   */
  part(seed, round) {
    const evolves = this.attributes.some(({ kind }) => kind === 'evolving');
    return this.channel.part(coinToss(seed, evolves ? round + 1 : 0));
  }

  /**
   * Return the part and the cell of its table.
   *
   * @param {Value[]} values only those of the part are looked at
   * @param {Bytes} _
   * @param {number} [part] that the coin picked
   */
  input(values, _, part) {
    must(part !== undefined, 'a part that the coin picked');
    const cell = this.channel.members[part].reduce((found, member) => {
      const reading = this.readings[member];
      return found * count(reading) + reading[this.attributes[member].index(values[member])];
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
