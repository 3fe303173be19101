/**
 * One attribute: categories of all its values, or a grid of points.
 *
 * @module
 */

import { MAX_INPUTS, labels } from '../channels/keys.js';
import { array, arrayOf, must, whole } from '../msgpack.js';
import { names, readMapping, rounded, shares } from './readings.js';

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */
/** @typedef {import('../random.js').Bytes} Bytes */

/** One attribute: the input of every index, or a grid of points. */
export class Single {
  /** @param {Asked} survey @param {Value[]} fields */
  constructor({ attributes: [attribute], channel }, [map, categories]) {
    this.attribute = attribute;
    const { inputs } = channel;
    const pairs = array(categories).map((pair) => arrayOf(pair, 2));
    const sizes = pairs.map((pair) => whole(pair[1], 1, inputs));
    must(sizes.reduce((a, b) => a + b, 0) === inputs, 'categories of all inputs');
    must(inputs >= 3 && sizes.length >= 2 && sizes.at(-1) === 1, 'missing last and alone');
    names(pairs.map((pair) => pair[0]), true);
    this.inputs = inputs;
    /** The input of every index, where it is not the index: there may be a million. @type {number[] | null} */
    this.mapping = null;
    const { domain } = attribute;
    if (domain.type === 'number') {
      must(map === null, 'a map of numbers');
      mustRise(domain.low, domain.high, inputs - 1);
    } else if (map !== null || !channel.alone || attribute.size() !== inputs - 1) {
      must(attribute.size() < MAX_INPUTS, 'too many values');
      this.mapping = readMapping(map, attribute.size(), inputs - 1);
    } else return; // hashes fit any categories
    const of = labels(sizes);
    must(channel.fits(of), "other categories than the channel's");
    const values = this.mapping && shares(this.mapping, inputs);
    must(!values || values.every((n, x) => n === 1 || sizes[of[x]] === 1), 'values that share an input share a category');
  }

  /** @param {Value[]} values @param {Bytes} source */
  input([value], source) {
    const { attribute } = this;
    if (this.mapping !== null) return this.mapping[attribute.index(value)];
    if (attribute.domain.type !== 'number') return attribute.index(value);
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
export function mustRise(low, high, points) {
  const step = (high - low) / (points - 1);
  let before = -Infinity;
  for (let i = 0; i < points; i++) {
    const along = step === 0 ? (i / (points - 1)) * (high - low) : i * step;
    const point = i === points - 1 ? high : along + low;
    must(before < point, 'points must differ');
    before = point;
  }
}
