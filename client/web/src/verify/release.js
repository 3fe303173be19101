/**
 * A release held beside its survey and its public counts: right, different, or not to be said.
 *
 * @module
 */

import { parts } from '../exact.js';
import { asked } from './asked.js';
import { binsOf, hex, membersOf, readCounts, sum, supportsAgree } from './counts.js';
import { SLACK, clipped, errorOf, isNearest, isWrong, quantileOf } from './ends.js';
import { Hashed } from './hashed.js';
import { Spec, added, families, plus, quotient, times } from './scores.js';

/** @typedef {import('../survey.js').Survey} Survey */
/** @typedef {import('./asked.js').Asked} Asked */
/** @typedef {import('./counts.js').Counts} Counts */
/** @typedef {import('./scores.js').Cell} Cell */
/** @typedef {import('./scores.js').Exact} Exact */

/** The methods of releases whose rules these are. */
export const METHODS = [10];
const LEVEL = 0.95;
const KINDS = /** @type {const} */ (['values', 'categories']);
/** The last place of the floats is 2^-LEAST. */
const LEAST = 1074;
const TABLES = ['dense', 'curve', 'weighted'];

/** One place at which a release does not say what its counts say. @typedef {{path: string, said: unknown, found: unknown}} Difference */

/** A part of JSON. @typedef {Record<string, any>} Part */

/** The outcome of a check. */
export class Checked {
  constructor() {
    /** Facts that are the same. */
    this.exact = 0;
    /** Numbers that agree to 2^-40, or whose ends have their certificate. */
    this.within = 0;
    /** @type {Difference[]} */
    this.differences = [];
    /** The parts that were held beside something, as "values.low". @type {Set<string>} */
    this.covered = new Set();
    /** The parts that were not. @type {string[]} */
    this.unchecked = [];
  }

  /** @param {string} path @param {unknown} said @param {unknown} found */
  fact(path, said, found) {
    const same = JSON.stringify(said) === JSON.stringify(found);
    if (same) this.exact += 1;
    else this.differences.push({ path, said, found });
    this.covered.add(path);
    return same;
  }

  /** @param {string} path @param {unknown} said @param {number | null} found */
  number(path, said, found) {
    if (near(said, found)) this.within += 1;
    else this.differences.push({ path, said, found });
    this.covered.add(path.replace(/\[\d+\]/g, ''));
  }
}

/** @param {unknown} said @param {number | null} found */
function near(said, found) {
  if (found === null || said === null) return found === said;
  return typeof said === 'number' && Math.abs(said - found) <= SLACK * Math.max(1, Math.abs(found));
}

/** Return a part of a document that must be there. @param {Part} part @param {string} key */
function get(part, key) {
  if (part === null || typeof part !== 'object' || !Object.hasOwn(part, key)) throw new TypeError(`no ${key}`);
  return part[key];
}

/** Return a column of cells, NaN for null. @param {Part[]} cells @param {string} key @returns {number[]} */
function columnOf(cells, key) {
  return cells.map((cell) => {
    const found = get(cell, key);
    if (found !== null && typeof found !== 'number') throw new TypeError(`${key} must be numbers`);
    return found ?? NaN;
  });
}

/**
 * Return what is right and wrong of a release.
 *
 * @param {Survey} survey the survey that it should be of
 * @param {Part} document the sealed release
 * @param {Uint8Array | null} data the bytes of its public counts; null of a round with too few devices
 */
export async function checkRelease(survey, document, data) {
  const checked = new Checked();
  const bytes = /** @type {BufferSource} */ (data ?? new Uint8Array());
  const sha256 = hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
  try {
    facts(checked, survey, document);
    if (data === null) {
      checked.fact('suppressed', document.suppressed, true);
      for (const kind of KINDS) checked.fact(kind, get(document, kind), []);
      checked.fact('mean', get(document, 'mean'), null);
      return checked;
    }
    const about = asked(survey);
    const spec = new Spec(survey.canonical);
    const counts = countsOf(checked, survey, spec, about, document, data, sha256);
    if (counts !== null) estimates(checked, spec, about, document, counts);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    checked.differences.push({ path: 'the release', said: error.message, found: 'a sealed release' });
  }
  checked.unchecked.push(...uncovered(document, checked.covered));
  return checked;
}

/** Return the parts that nothing was held beside: whole where no part of them was. @param {Part} document @param {Set<string>} covered */
function uncovered(document, covered) {
  const touched = new Set([...covered].map((path) => path.split('.')[0]));
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {unknown} value @param {string} path */
  const look = (value, path) => {
    if (covered.has(path)) return;
    if (Array.isArray(value) && value.length) value.forEach((each) => look(each, path));
    else if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      for (const [key, each] of Object.entries(value)) look(each, path ? `${path}.${key}` : key);
    } else if (!Array.isArray(value)) found.add(touched.has(path.split('.')[0]) ? path : path.split('.')[0]);
  };
  look(document, '');
  return [...found].sort();
}

/** @param {Checked} checked @param {Survey} survey @param {Part} document */
function facts(checked, survey, document) {
  const number = get(document, 'round');
  const about = get(document, 'survey');
  checked.fact('survey.id', get(about, 'id'), survey.id);
  checked.fact('survey.version', get(about, 'version'), survey.version);
  checked.fact('survey.digest', get(about, 'digest'), hex(survey.digest));
  checked.fact('survey.title', get(about, 'title'), survey.title);
  const inSchedule = Number.isInteger(number) && number >= 1 && number <= survey.rounds;
  if (checked.fact('round is in the schedule', inSchedule, true)) {
    // Releases number rounds from 1; surveys and counts from 0.
    const start = survey.start_s + (number - 1) * survey.round_s;
    checked.fact('start', get(document, 'start'), timestamp(start));
    checked.fact('end', get(document, 'end'), timestamp(start + survey.round_s));
  }
  checked.fact('sealed', get(document, 'sealed'), true);
  checked.fact('level', get(document, 'level'), LEVEL);
  checked.fact('epsilon.declared', get(get(document, 'epsilon'), 'declared'), survey.epsilon);
  checked.fact('epsilon.certified', get(get(document, 'epsilon'), 'certified'), survey.certified);
  const { attempts, ...verdicts } = get(document, 'accounting');
  checked.fact('accounting.attempts', attempts, sum(Object.values(verdicts)));
  checked.fact('devices', get(document, 'devices'), get(verdicts, 'accepted'));
  checked.fact('suppressed', get(document, 'suppressed'), document.devices < Math.max(survey.minimumCohort, 1));
  checked.fact('method', METHODS.includes(get(document, 'method')) ? 'known' : document.method, 'known');
  for (const path of ['round', 'accounting.accepted']) checked.covered.add(path);
}

/** @param {number} seconds */
function timestamp(seconds) {
  return `${new Date(seconds * 1000).toISOString().slice(0, -5)}Z`;
}

/** Return the public counts if they are those that the release states. @param {Checked} checked @param {Survey} survey @param {Spec} spec @param {Asked} about @param {Part} document @param {Uint8Array} data @param {string} sha256 */
function countsOf(checked, survey, spec, about, document, data, sha256) {
  const stated = get(document, 'counts');
  if (!checked.fact('counts.sha256', get(stated, 'sha256'), sha256)) return null;
  /** @type {Counts} */
  let counts;
  try {
    counts = readCounts(data);
  } catch (error) {
    checked.differences.push({ path: 'counts', said: 'bytes', found: String(error) });
    return null;
  }
  const fine = [
    checked.fact('counts.kind', get(stated, 'kind'), counts.kind),
    checked.fact('counts.cells', get(stated, 'cells'), counts.cells.length),
    checked.fact("counts' digest", hex(counts.digest), hex(survey.digest)),
    checked.fact("counts' round", counts.round, document.round - 1),
    checked.fact('devices', document.devices, counts.n),
  ];
  const can = 'counts can be those of n reports';
  if (counts.kind === 'bins') {
    const { bins, agree } = binsOf(survey, counts);
    fine.push(checked.fact(can, agree, true), checked.fact('counts.cells', counts.cells.length, bins));
  } else {
    const hashed = new Hashed(spec);
    if (hashed.isSmall) fine.push(checked.fact(can, supportsAgree(hashed, about.rows, counts), true));
    else checked.unchecked.push(can);
  }
  return fine.every(Boolean) ? counts : null;
}

/** @param {Checked} checked @param {Spec} spec @param {Asked} about @param {Part} document @param {Counts} counts */
function estimates(checked, spec, about, document, counts) {
  const found = about.score === null && about.parts === null ? families(spec, about.rows, counts) : /** @type {const} */ ([null, null]);
  KINDS.forEach((kind, which) => {
    const cells = get(document, kind);
    checked.fact(`${kind}: how many`, cells.length, about[kind].length);
    checked.fact(`${kind}: labels`, cells.map((/** @type {Part} */ cell) => get(cell, 'label')), about[kind]);
    checked.covered.add(`${kind}.label`);
    const family = found[which];
    if (family !== null) familyOf(checked, document, kind, family, counts.n);
  });
  places(checked, about, document);
  if (about.parts !== null) {
    partsOf(checked, about.parts, spec, document, counts);
    return;
  }
  if (found[0] === null && found[1] === null) normalEquations(checked, spec, about, document, counts);
  mean(checked, spec, about, document, counts, found[0]);
  if (about.score === null) consistent(checked, about, document);
}

/** The parts of a bundle: their attributes, reports, and how many the coin would give. @param {Checked} checked @param {string[][]} parts @param {Spec} spec @param {Part} document @param {Counts} counts */
function partsOf(checked, parts, spec, document, { cells, n }) {
  /** @type {Part[]} */
  const lines = get(document, 'parts');
  checked.fact('parts: reports', lines.map((line) => get(line, 'reports')), cells.slice(0, parts.length));
  checked.fact('parts: attributes', lines.map((line) => get(line, 'attributes')), parts);
  spec.ints('shares').forEach((share, i) => {
    checked.number(`parts[${i}].expected`, lines[i]?.expected, quotient(BigInt(n) * share, 2n ** 32n));
  });
  if (spec.has('classes')) {
    const due = spec.ints('classes').map((g) => (g > 1n ? 'interaction' : null));
    checked.fact('parts: tells', lines.map(({ tells }) => tells ?? null), due);
  }
  for (const key of ['reports', 'attributes', 'tells']) checked.covered.add(`parts.${key}`);
}

/** The categories that values are in, and the levels of a tree. @param {Checked} checked @param {Asked} about @param {Part} document */
function places(checked, about, document) {
  const { values, categories } = /** @type {Record<string, Part[]>} */ (document);
  checked.covered.add('values.category');
  if (about.levels === null) {
    checked.fact('values: categories', values.map((cell) => get(cell, 'category')), about.of);
    return;
  }
  const stated = [...categories, ...values].map((cell) => [get(cell, 'tree_level'), get(cell, 'category')]);
  checked.fact('levels and categories of a tree', stated, about.levels);
  for (const path of ['categories.category', 'categories.tree_level', 'values.tree_level']) checked.covered.add(path);
}

/** @param {Checked} checked @param {Part} document @param {'values' | 'categories'} kind @param {Cell[]} family @param {number} n */
function familyOf(checked, document, kind, family, n) {
  /** @type {Part[]} */
  const cells = document[kind];
  if (family.length !== cells.length) return;
  /** @param {string} key @param {(number | null)[]} due */
  const column = (key, due) => {
    const said = columnOf(cells, key);
    due.forEach((found, i) => checked.number(`${kind}[${i}].${key}`, Number.isNaN(said[i]) ? null : said[i], found));
  };
  column('estimate', family.map(({ estimate }) => estimate));
  if (family.some(({ law }) => law === null)) return;
  const told = family.map(({ estimate, law, least, most }) =>
    estimate === null || law === null ? null : { estimate, law, least, most },
  );
  const asked = document.enrolment?.asked ?? null;
  const drawn = asked === null || asked < n ? 1 : 1 - n / asked;
  column('error', told.map((cell) => cell && errorOf(cell.law, n, clipped(cell.estimate), null)));
  column('crowd_error', told.map((cell) => cell && errorOf(cell.law, n, clipped(cell.estimate), drawn)));
  const tails = [1, Math.max(cells.length, 1)].map((many) => (1 - LEVEL) / (2 * many));
  const zs = tails.map(quantileOf);
  for (const before of ['', 'simultaneous_', 'crowd_', 'crowd_simultaneous_']) {
    const all = before.includes('simultaneous') ? 1 : 0;
    const rule = { z: zs[all], tail: tails[all], drawn: before.startsWith('crowd') ? drawn : null };
    const [low, high] = ['low', 'high'].map((end) => columnOf(cells, before + end));
    told.forEach((cell, i) => {
      const wrong = cell === null
        ? !(Number.isNaN(low[i]) && Number.isNaN(high[i]))
        : isWrong(cell.estimate, low[i], high[i], cell.law, n, rule);
      if (!wrong) checked.within += 2;
      else {
        const path = `${kind}[${i}].${before}low to high`;
        checked.differences.push({ path, said: [low[i], high[i]], found: 'the ends that the rule accepts last' });
      }
    });
    checked.covered.add(`${kind}.${before}low`).add(`${kind}.${before}high`);
  }
  margins(checked, document, kind, told, n, zs[0]);
}

/**
 * Check the forged reports that move an estimate by its margin of error.
 *
 * @param {Checked} checked
 * @param {Part} document
 * @param {'values' | 'categories'} kind
 * @param {({estimate: number, law: import('./ends.js').Law, least: number, most: number} | null)[]} told
 * @param {number} n
 * @param {number} z
 */
function margins(checked, document, kind, told, n, z) {
  const stated = (document.poison_margin ?? {})[kind] ?? [];
  if (!checked.fact(`poison_margin.${kind}: how many`, stated.length, told.length)) return;
  checked.covered.add(`poison_margin.${kind}`);
  told.forEach((cell, i) => {
    const path = `poison_margin.${kind}[${i}]`;
    const half = cell && z * errorOf(cell.law, n, clipped(cell.estimate), null);
    const pull = cell && Math.max(cell.most - cell.estimate, cell.estimate - cell.least) - Number(half);
    if (cell === null || half === null || pull === null || pull <= 1e-12 * Math.max(1, cell.most, -cell.least)) {
      checked.fact(path, stated[i], null);
      return;
    }
    // A quotient beside a whole number may be rounded up to either.
    const due = [-1, 1].map((side) => Math.max(Math.ceil(((half * n) / pull) * (1 + side * SLACK)), 1));
    if (due.includes(stated[i])) checked.within += 1;
    else checked.differences.push({ path, said: stated[i], found: due[1] });
  });
}

/**
 * Check the raw values of a table of probabilities: with rows P, the mean row d and counts C, the values f have
 * P diag(1/d) (P^T f - C/n) = 0. Nothing is inverted.
 *
 * @param {Checked} checked
 * @param {Spec} spec
 * @param {Asked} about
 * @param {Part} document
 * @param {Counts} counts
 */
function normalEquations(checked, spec, about, document, { cells, n }) {
  if (!TABLES.includes(spec.kind)) return;
  const values = columnOf(document.values, 'estimate');
  if (values.some(Number.isNaN)) return;
  const rows = weights(spec);
  const common = spec.has('common') ? spec.ints('common').map(Number) : rows.map(() => 1);
  const all = sum(common);
  const left = cells.map((count, y) => {
    const [expected, mean] = rows.reduce(([e, m], row, x) => [e + values[x] * row[y], m + (common[x] / all) * row[y]], [0, 0]);
    return (expected - count / n) / mean;
  });
  const slack = SLACK * Math.max(1, ...values.map(Math.abs));
  rows.forEach((row, x) => {
    const off = row.reduce((held, p, y) => held + p * left[y], 0);
    if (Math.abs(off) <= slack) checked.within += 1;
    else checked.differences.push({ path: `values[${x}].estimate`, said: values[x], found: `a solution, off by ${off}` });
  });
  membersOf(about.rows[0]).forEach((members, c) => {
    const total = sum(members.map((x) => values[x]));
    checked.number(`categories[${c}].estimate`, get(document.categories[c], 'estimate'), total);
  });
  checked.covered.add('values.estimate').add('categories.estimate');
}

/** The rows of a table as probabilities. @param {Spec} spec */
function weights(spec) {
  const [inputs, total, bytes] = [Number(spec.int('inputs')), spec.int('total'), spec.bytes('weights')];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const width = total <= 2n ** 32n ? 4 : 8;
  const outputs = bytes.length / width / inputs;
  return Array.from({ length: inputs }, (_, x) => Array.from({ length: outputs }, (__, y) => {
    const at = (x * outputs + y) * width;
    return Number(width === 4 ? view.getUint32(at, true) : view.getBigUint64(at, true)) / Number(total);
  }));
}

/** A float as a rational number. @param {number} x @returns {Exact} */
function exactly(x) {
  const [mantissa, exponent] = parts(x);
  return exponent < 0 ? [mantissa, 1n << BigInt(-exponent)] : [mantissa << BigInt(exponent), 1n];
}

/** @param {Checked} checked @param {Spec} spec @param {Asked} about @param {Part} document @param {Counts} counts @param {Cell[] | null} values */
function mean(checked, spec, about, document, { cells, n }, values) {
  const said = get(document, 'mean');
  if (about.score !== null) {
    const [low, high] = about.score.map(exactly);
    const [t, u] = [spec.int('t'), spec.int('u')];
    const width = plus(high, [-low[0], low[1]]);
    // The share at the upper end: (share of "yes" - u/T) T/(t - u).
    const place = /** @type {Exact} */ ([BigInt(cells[1]) * (t + u) - u * BigInt(n), BigInt(n) * (t - u)]);
    checked.number('mean.estimate', get(said, 'estimate'), quotient(...plus(low, times(width, place))));
    const least = quotient(u, t + u);
    const spread = Math.min(Math.max(cells[1] / n, least), 1 - least);
    const wide = quotient(...times(width, [t + u, t - u]));
    checked.number('mean.error', get(said, 'error'), wide * Math.sqrt((spread * (1 - spread)) / n));
    return;
  }
  if (about.points === null) {
    checked.fact('mean', said, null);
    return;
  }
  if (values === null || said === null || values.some(({ estimate }) => estimate === null)) return;
  const shares = about.points.flatMap((point, x) => (point === null ? [] : [{ point, share: values[x].exact }]));
  const answered = added(shares.map(({ share }) => share));
  const [top, bottom] = added(shares.map(({ point, share }) => {
    const [mantissa, exponent] = parts(point);
    return [(mantissa << BigInt(exponent + LEAST)) * share[0], share[1]];
  }));
  if (answered[0] > 0n) {
    const found = quotient(top * answered[1], (bottom * answered[0]) << BigInt(LEAST));
    checked.number('mean.estimate', get(said, 'estimate'), found);
  }
}

/** Check that the consistent view is the nearest one to the raw estimates that are stated. @param {Checked} checked @param {Asked} about @param {Part} document */
function consistent(checked, about, document) {
  const raw = KINDS.map((kind) => columnOf(document[kind], 'estimate'));
  const view = get(document, 'consistent');
  const shown = KINDS.map((kind) => columnOf(get(view, kind).map((/** @type {unknown} */ x) => ({ x })), 'x'));
  checked.covered.add('consistent.values').add('consistent.categories');
  if (shown.some((cells, i) => cells.length !== raw[i].length)) {
    checked.differences.push({ path: 'consistent: how many', said: shown.map((each) => each.length), found: 'all cells' });
    return;
  }
  /** @param {string} path @param {number[]} estimates @param {number[]} cells @param {number} total */
  const group = (path, estimates, cells, total) => {
    // A cell that the channel hides has no view, nor has any value beside it.
    if (estimates.some(Number.isNaN) || Number.isNaN(total)) checked.fact(path, cells.every(Number.isNaN), true);
    else if (cells.some(Number.isNaN) || !isNearest(estimates, cells, total)) {
      checked.differences.push({ path, said: 'a view', found: 'the nearest one to the raw estimates' });
    } else checked.within += cells.length;
  };
  /** @param {number[]} places @param {number[]} column */
  const picked = (places, column) => places.map((x) => column[x]);
  const { rows, levels } = about;
  if (!rows.length) {
    // Items of sets, each by itself.
    raw[0].forEach((x, i) => checked.number(`consistent.values[${i}].share`, nanToNull(shown[0][i]), nanToNull(clipped(x))));
    return;
  }
  if (levels === null && rows.length > 1) {
    rows.flatMap(membersOf).forEach((members, c) => {
      const total = sum(picked(members, shown[0]));
      checked.number(`consistent.categories[${c}]`, nanToNull(shown[1][c]), nanToNull(total));
    });
    group('consistent.values', raw[0], shown[0], 1);
    return;
  }
  // Of one grouping, and of every level of a tree, from the coarsest: what lies in each category of the one before.
  let [within, totals] = [rows[0].map(() => 0), [1]];
  let first = 0;
  rows.forEach((row, l) => {
    const many = (row.at(-1) ?? 0) + 1;
    const parent = Array.from({ length: many }, () => 0);
    row.forEach((category, x) => (parent[category] = within[x]));
    membersOf(parent).forEach((members, place) => {
      const cells = members.map((c) => first + c);
      const path = levels === null ? 'consistent.categories' : `consistent.categories of level ${l + 1}, group ${place}`;
      group(path, picked(cells, raw[1]), picked(cells, shown[1]), totals[place]);
    });
    totals = shown[1].slice(first, first + many);
    within = row;
    first += many;
  });
  membersOf(within).forEach((members, c) => {
    group(`consistent.values of category ${c}`, picked(members, raw[0]), picked(members, shown[0]), totals[c]);
  });
}

/** @param {number} x */
function nanToNull(x) {
  return Number.isNaN(x) ? null : x;
}
