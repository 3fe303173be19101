/**
 * A number that not everybody has.
 *
 * @module
 */

import { ABSENT } from '../attribute.js';
import { labels } from '../channels/keys.js';
import { float, must, whole } from '../msgpack.js';
import { MAX_COMBINATIONS, rounded } from './readings.js';
import { mustRise } from './single.js';

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */
/** @typedef {import('../random.js').Bytes} Bytes */

/** A number that may be absent: the points of a grid, absent, missing. */
export class KeyValue {
  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel }, form) {
    must(form.length === 3 && attributes.length === 1 && attributes[0].tellsAbsent(), 'a number that may be absent');
    this.attribute = attributes[0];
    this.points = whole(form[1], 2, MAX_COMBINATIONS - 2);
    const share = float(form[2]);
    must(share > 0 && share < 1, 'a share between 0 and 1');
    const of = labels([this.points, 1, 1]);
    must(channel.inputs === of.length && channel.fits(of), "another channel than the number's");
    mustRise(...this.attribute.ends(), this.points);
  }

  /** @param {Value[]} values @param {Bytes} source */
  input([value], source) {
    if (value === ABSENT) return this.points;
    const found = this.attribute.number(value);
    return found === null ? this.points + 1 : rounded(found[0], ...this.attribute.ends(), this.points, source);
  }

  cells() {
    return { inputs: Array.from({ length: this.points + 2 }, (_, x) => x), shape: [this.points + 2] };
  }
}
