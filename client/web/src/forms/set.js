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
    /** Whether having more items than count is an item, the last but missing. */
    this.more = form.length === 3 && form[2] === 'more';
    const alone = (form.length === 2 || this.more) && attributes.length === 1;
    must(alone && attributes[0].domain.type === 'set', 'one attribute of sets');
    must(channel instanceof SetSelection && BigInt(channel.most) === form[1], 'another channel than that of sets');
    const { labels } = attributes[0].domain;
    must(channel.inputs === labels.length + 1 + Number(this.more), 'another number of items');
    must(!this.more || (channel.most >= 2 && !labels.includes(`more than ${channel.most}`)), 'an item of that name');
    this.most = channel.most;
    this.missing = channel.inputs - 1;
  }

  /** Return the items that are sent, rising: of more than count, so many drawn. @param {Value[]} values @param {Bytes} source */
  input([value], source) {
    const held = this.attribute.items(value) ?? [this.missing];
    if (held.length <= this.most) return held;
    const kept = this.most - Number(this.more);
    for (let i = held.length; i > kept; i--) held.splice(Number(below(source, BigInt(i))), 1);
    return this.more ? [...held, this.missing - 1] : held;
  }

  cells() {
    return ALONE;
  }
}
