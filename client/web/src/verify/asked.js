/**
 * What a survey asks, as a release names it: values, categories, and the numbers that values stand for.
 *
 * @module
 */

import { ABSENT } from '../attribute.js';
import { labels } from '../channels/keys.js';
import { array, arrayOf, must, read, text } from '../msgpack.js';

/** @typedef {import('../survey.js').Survey} Survey */
/** @typedef {import('../attribute.js').Attribute} Attribute */
/** @typedef {import('../msgpack.js').Value} Value */

/**
 * @typedef {object} Asked
 * @property {string[]} values names of the inputs
 * @property {string[]} categories names of all categories
 * @property {number[][]} rows the category of every input, from 0, one row per margin or level
 * @property {(string | null)[]} of the category of every value by name, null where it is in several
 * @property {[number, string | null][] | null} levels of a tree: level and parent of every category and value
 * @property {(number | null)[] | null} points the number of every value, null for missing
 * @property {[number, number] | null} score the ends of a score, which tells no values
 * @property {string[][] | null} parts the attributes of every part of a bundle
 */

const MISSING = 'missing';

/** Return what a survey asks. @param {Survey} survey @returns {Asked} */
export function asked(survey) {
  const fields = array(read(survey.canonical));
  if (fields.length === 16) return single(survey, fields);
  const form = array(fields[8]);
  const name = text(form[0]);
  if (name === 'table') return table(survey, form);
  if (name === 'tree') return tree(survey, form);
  if (name === 'transition') return transition(survey, form);
  if (name === 'key_value') return keyValue(survey, form);
  const more = form.length > 2 ? [`more than ${form[1]}`] : [];
  if (name === 'set') return ungrouped([...labelsOf(survey.attributes[0]), ...more, MISSING], [], null);
  if (name === 'bundle') return bundle(survey, form);
  must(name === 'score', 'a form that this checker does not know');
  const [low, high] = arrayOf(form[4], 2).map(Number);
  return { values: [], categories: [], rows: [], of: [], levels: null, points: null, score: [low, high], parts: null };
}

/** @param {Attribute} attribute @param {number} index */
function labelOf({ domain }, index) {
  if ('labels' in domain) return domain.labels[index];
  if (domain.type === 'dictionary') return `#${index + 1}`;
  return domain.low + index <= domain.high ? String(domain.low + index) : ABSENT;
}

/** @param {Attribute} attribute */
function labelsOf(attribute) {
  const { domain } = attribute;
  return 'labels' in domain ? domain.labels : Array.from({ length: attribute.size() }, (_, i) => labelOf(attribute, i));
}

/** What asks for values that no grouping sorts. @param {string[]} values @param {string[]} categories @param {string[][] | null} parts @returns {Asked} */
function ungrouped(values, categories, parts) {
  const of = values.map(() => null);
  return { values, categories, rows: [], of, levels: null, points: null, score: null, parts };
}

/** The names of a reading's values, missing included. @param {Attribute} attribute @param {Value} named */
function readingOf(attribute, named) {
  return [...(named === null ? labelsOf(attribute) : array(named).map(text)), MISSING];
}

/** @param {Survey} survey @param {Value[]} form @returns {Asked} */
function transition({ attributes: [attribute] }, form) {
  const asks = text(form[4]);
  const names = readingOf(attribute, form[2]);
  const r = names.length - 1;
  let values = ['up', 'same', 'down'];
  if (asks === 'pairs') values = names.flatMap((then) => names.map((now) => `${then} > ${now}`)).slice(0, -1);
  else if (asks === 'changed') {
    const known = names.slice(0, r);
    const moved = known.flatMap((then) => known.filter((now) => now !== then).map((now) => `${then} > ${now}`));
    values = [...known.map((name) => `${name} > ${name}`), ...moved];
  }
  const sizes = asks === 'changed' ? [r, r * (r - 1), 1] : [values.length, 1];
  const categories = asks === 'changed' ? ['same', 'changed', MISSING] : ['answered', MISSING];
  const row = labels(sizes);
  const of = row.map((c) => categories[c]);
  return { values: [...values, MISSING], categories, rows: [row], of, levels: null, points: null, score: null, parts: null };
}

/** @param {Survey} survey @param {Value[]} form @returns {Asked} */
function keyValue({ attributes: [attribute] }, form) {
  const points = grid(...attribute.ends(), Number(form[1]));
  const categories = ['present', ABSENT, MISSING];
  const row = labels([points.length, 1, 1]);
  const rest = { rows: [row], of: row.map((c) => categories[c]), levels: null, score: null, parts: null };
  return { values: [...numberNames(points), ABSENT, MISSING], categories, points: [...points, null, null], ...rest };
}

/** @param {Survey} survey @param {Value[]} form @returns {Asked} */
function bundle({ attributes, channel }, form) {
  const named = arrayOf(form[1], attributes.length).map((item, j) =>
    readingOf(attributes[j], arrayOf(item, 2)[1]).map((name) => `${attributes[j].id}: ${name}`),
  );
  const values = array(form[2]).flatMap((table) => {
    const [first, ...rest] = array(table).map((member) => named[Number(member)]);
    return rest.reduce((cells, own) => cells.flatMap((cell) => own.map((name) => `${cell} / ${name}`)), first);
  });
  const { members } = /** @type {import('../channels/parts.js').SampledParts} */ (/** @type {unknown} */ (channel));
  return ungrouped(values, named.flat(), members.map((own) => own.map((member) => attributes[member].id)));
}

/** @param {Survey} survey @param {Value[]} fields @returns {Asked} */
function single({ attributes: [attribute], channel }, fields) {
  const pairs = array(fields[9]).map((pair) => arrayOf(pair, 2));
  const categories = pairs.map(([name]) => text(name));
  const row = labels(pairs.map(([, size]) => Number(size)));
  const of = row.map((category) => categories[category]);
  const rest = { categories, rows: [row], of, levels: null, score: null, parts: null };
  const last = channel.inputs - 1;
  const { domain } = attribute;
  if (domain.type === 'number') {
    const points = grid(domain.low, domain.high, last);
    return { values: [...numberNames(points), MISSING], points: [...points, null], ...rest };
  }
  const size = attribute.size();
  const mapping = fields[8] === null ? null : array(fields[8]).map(Number);
  /** @type {number[][]} */
  const indices = Array.from({ length: last }, () => []);
  for (let index = 0; index < size; index++) indices[mapping === null ? index : mapping[index]].push(index);
  const values = indices.map(([first, ...more], x) => (more.length ? of[x] : labelOf(attribute, first)));
  const plain = domain.type === 'integer' && indices.every((each) => each.length === 1);
  const points = plain ? [...indices.map(([index]) => domain.low + index), null] : null;
  return { values: [...values, MISSING], points, ...rest };
}

/** @param {Survey} survey @param {Value[]} form @returns {Asked} */
function table({ attributes, channel }, form) {
  const names = arrayOf(form[1], attributes.length).map((item, j) => {
    return readingOf(attributes[j], arrayOf(item, 2)[1]);
  });
  let values = [''];
  names.forEach((own, j) => (values = values.flatMap((left) => own.map((name) => (j ? `${left} / ${name}` : name)))));
  let repeat = channel.inputs;
  const rows = names.map(({ length }) => {
    repeat /= length;
    const each = repeat;
    return values.map((_, x) => Math.floor(x / each) % length);
  });
  const categories = names.flatMap((own, j) => own.map((name) => `${attributes[j].id}: ${name}`));
  return { values, categories, rows, of: values.map(() => null), levels: null, points: null, score: null, parts: null };
}

/** @param {Survey} survey @param {Value[]} form @returns {Asked} */
function tree({ attributes, channel }, form) {
  const { named, sizes, values } = form.length === 2 ? squares(attributes) : branches(attributes[0], form);
  const rows = sizes.map((level) => labels([...level, 1]));
  const names = named.map((level) => [...level, MISSING]);
  /** @type {[number, string | null][]} */
  const levels = names.flatMap((level, l) =>
    level.map((_, c) => {
      const above = l ? names[l - 1][rows[l - 1][rows[l].indexOf(c)]] : null;
      return /** @type {[number, string | null]} */ ([l + 1, above]);
    }),
  );
  const last = rows.length - 1;
  for (let x = 0; x < channel.inputs; x++) levels.push([rows.length + 1, names[last][rows[last][x]]]);
  const categories = names.flat();
  return { values: [...values, MISSING], categories, rows, of: [], levels, points: null, score: null, parts: null };
}

/** @param {Attribute} attribute @param {Value[]} form */
function branches(attribute, form) {
  const size = attribute.size();
  const order = Array.from({ length: size }, (_, i) => i);
  if (form[1] !== null) array(form[1]).slice(0, -1).forEach((x, index) => (order[Number(x)] = index));
  /** @type {{start: number, end: number, joined: string}[]} */
  let above = [];
  /** @type {number[][]} */
  const sizes = [];
  const named = array(form[2]).map((level) => {
    let [end, at] = [0, 0];
    const found = array(level).map((pair) => {
      const [name, many] = arrayOf(pair, 2);
      const start = end;
      end += Number(many);
      while (at < above.length && above[at].end <= start) at += 1;
      const parent = above[at];
      const unsplit = parent !== undefined && parent.start === start && parent.end === end;
      const joined = unsplit ? parent.joined : parent ? `${parent.joined} / ${text(name)}` : text(name);
      return { start, end, joined };
    });
    sizes.push(found.map((each) => each.end - each.start));
    above = found;
    return found.map(({ joined }) => joined);
  });
  return { named, sizes, values: order.map((index) => labelOf(attribute, index)) };
}

/** @param {Attribute[]} attributes */
function squares(attributes) {
  const depth = Math.log2(attributes[0].size());
  /** The names of squares of 2^doublings cells a side, in Morton order. @param {number} doublings */
  const cells = (doublings) => {
    const side = 2 ** doublings;
    const many = 2 ** (depth - doublings);
    return Array.from({ length: many * many }, (_, place) => {
      const at = [0, 0];
      for (let bit = 0; bit < 16; bit++) at[bit & 1] |= ((place >> bit) & 1) << (bit >> 1);
      const words = attributes.map((attribute, i) => {
        const low = Number(labelOf(attribute, 0)) + at[i] * side;
        return `${attribute.id} ${low}${side > 1 ? ` to ${low + side - 1}` : ''}`;
      });
      return words.join(', ');
    });
  };
  const inner = Array.from({ length: depth - 1 }, (_, l) => l + 1);
  const sizes = inner.map((l) => new Array(4 ** l).fill(4 ** (depth - l)));
  return { named: inner.map((l) => cells(depth - l)), sizes, values: cells(0) };
}

/** @param {number} low @param {number} high @param {number} points */
function grid(low, high, points) {
  const step = (high - low) / (points - 1);
  return Array.from({ length: points }, (_, i) => {
    if (i === points - 1) return high;
    return (step === 0 ? (i / (points - 1)) * (high - low) : i * step) + low;
  });
}

/** Names of different numbers, with six digits or as many as tell them apart. @param {number[]} numbers */
function numberNames(numbers) {
  let names = /** @type {string[]} */ ([]);
  for (let digits = 6; digits <= 17; digits++) {
    names = numbers.map((number) => general(number, digits));
    if (new Set(names).size === names.length) break;
  }
  return names;
}

/** Return a number as "%g" of C writes it, halves to even. @param {number} x @param {number} digits */
function general(x, digits) {
  if (x === 0) return Object.is(x, -0) ? '-0' : '0';
  // JavaScript rounds halves up; a half has nothing but zeros after its 5.
  let [mantissa, exponent] = Math.abs(x).toExponential(digits - 1).split('e');
  const exact = Math.abs(x).toExponential(60).replace('.', '');
  if (/^50*e/.test(exact.slice(digits)) && Number(exact[digits - 1]) % 2 === 0) {
    mantissa = `${exact[0]}.${exact.slice(1, digits)}`;
    exponent = exact.split('e')[1];
  }
  const e = Number(exponent);
  const all = mantissa.replace('.', '');
  /** @param {string} text */
  const trimmed = (text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  const sign = x < 0 ? '-' : '';
  if (e < -4 || e >= digits) {
    return `${sign}${trimmed(mantissa)}e${e < 0 ? '-' : '+'}${String(Math.abs(e)).padStart(2, '0')}`;
  }
  if (e < 0) return sign + trimmed(`0.${'0'.repeat(-e - 1)}${all}`);
  return sign + trimmed(`${all.slice(0, e + 1)}.${all.slice(e + 1)}`);
}
