/**
 * A transition: how an attribute changed.
 *
 * @module
 */

import { labels } from '../channels/keys.js';
import { must, text, whole } from '../msgpack.js';
import { MAX_CELLS, MAX_COMBINATIONS, count, readReading } from './readings.js';

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */

/** A transition: an evolving attribute some rounds ago and now. */
export class Transition {
  /** Values that an answer reads: then and now. */
  reads = 2;

  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel, rounds }, form) {
    this.attribute = attributes[0];
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

  /** @param {Value[]} values then and now */
  input(values) {
    const [a, b] = values.map((value) => this.reading[this.attribute.index(value)]);
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
