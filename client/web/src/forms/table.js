/**
 * A table of several attributes.
 *
 * @module
 */

import { arrayOf, must } from '../msgpack.js';
import { MAX_CELLS, MAX_COMBINATIONS, count, product, readReading } from './readings.js';

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */

/** A table of several attributes: the reading of every index of each. */
export class Table {
  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel }, form) {
    this.attributes = attributes;
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

  /** @param {Value[]} values */
  input(values) {
    return this.readings.reduce((input, reading, j) => input * count(reading) + reading[this.attributes[j].index(values[j])], 0);
  }

  cells() {
    return product(this.readings);
  }
}
