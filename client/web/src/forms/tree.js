/**
 * Trees of labels, and heat maps of two integers.
 *
 * @module
 */

import { MAX_SIZE, allDiffer, title } from '../attribute.js';
import { labels, same } from '../channels/keys.js';
import { array, arrayOf, must, text, whole } from '../msgpack.js';
import { MAX_COMBINATIONS, readMapping } from './readings.js';

/** @typedef {import('../attribute.js').Attribute} Attribute */
/** @typedef {import('../channel.js').Channel} Channel */
/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */

/** A tree of labels, or a heat map of two integers: the input of every index, or of two. */
export class LabelTree {
  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel }, form) {
    this.attributes = attributes;
    must(channel.kind === 'nested_levels' || channel.kind === 'levels', "another channel than a tree's");
    const { mapping, side, sizes } = form.length === 2 ? squares(attributes, form[1]) : branches(attributes, form);
    this.mapping = mapping;
    this.side = side;
    const { of } = /** @type {Channel & {levels: import('../channels/levels.js').Levels}} */ (channel).levels;
    must(of.length === sizes.length + 1 && channel.inputs === (this.mapping.at(-1) ?? 0) + 1, 'another tree');
    must(sizes.every((level, l) => same(labels([...level, 1]), of[l])), "other levels than the channel's");
  }

  /** @param {Value[]} values */
  input(values) {
    const [first, second] = this.attributes.map((attribute, i) => attribute.index(values[i]));
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
