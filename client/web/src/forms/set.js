/**
 * Sets of items.
 *
 * @module
 */

import { SetSelection } from '../channels/items.js';
import { must } from '../msgpack.js';
import { below } from '../random.js';
import { ALONE } from './readings.js';

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */
/** @typedef {import('../random.js').Bytes} Bytes */

/** Sets of items. */
export class ItemSet {
  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel }, form) {
    this.attribute = attributes[0];
    must(form.length === 2 && attributes.length === 1 && attributes[0].domain.type === 'set', 'one attribute of sets');
    must(channel instanceof SetSelection && BigInt(channel.most) === form[1], 'another channel than that of sets');
    must(channel.inputs === attributes[0].domain.labels.length + 1, 'another number of items');
    this.most = channel.most;
    this.missing = channel.inputs - 1;
  }

  /** Return the items that are sent, rising: of more than count, so many drawn. @param {Value[]} values @param {Bytes} source */
  input([value], source) {
    const held = this.attribute.items(value) ?? [this.missing];
    for (let i = held.length; i > this.most; i--) held.splice(Number(below(source, BigInt(i))), 1);
    return held;
  }

  cells() {
    return ALONE;
  }
}
