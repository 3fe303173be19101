/**
 * The privacy filter over finite domains, in whole units of 2^-40 nats.
 *
 * A cell is a value of every attribute that queries have joined. What recorded answers say of a cell is an interval of
 * log-likelihoods; what pending queries may add is D of the two cells' inputs. Committed is the most that any two cells
 * can come to be apart. Budgets are at most 4,096 nats, so that what fits stays below 2^53: sums beyond it are rounded,
 * and refused all the same.
 *
 * @module
 */

import { parts, unitsDown } from './exact.js';
import { Refused, must } from './msgpack.js';

/** @typedef {import('./survey.js').Survey} Survey */
/** @typedef {import('./channels/distance.js').Distance} Distance */

export const UNIT = 2 ** -40;
const MAX_BUDGET = 4096;

/**
 * @typedef {object} Pending
 * @property {number} ticket
 * @property {number[]} keys coordinates, one per value that the survey reads
 * @property {Survey} survey
 */

/**
 * Coordinates that queries have joined.
 *
 * @typedef {object} Component
 * @property {number[]} keys
 * @property {number[]} shape how many values each coordinate has, missing included
 * @property {number[]} upper of every cell, the log-likelihood of what was recorded, at most
 * @property {number[]} lower at least
 * @property {Pending[]} pending
 */

/** @param {Distance} distance @param {number} x @param {number} y */
export function between({ block, within, across }, x, y) {
  if (x === y) return 0;
  return block[x] === block[y] ? within[block[x]] : across[block[x]][block[y]];
}

/** Return, of every cell of a component, the cell of some of its coordinates that it lies in. @param {Component} component @param {number[]} keys @param {number[]} shape */
function places(component, keys, shape) {
  const axes = keys.map((key) => component.keys.indexOf(key));
  return component.upper.map((_, cell) => {
    const at = new Array(component.keys.length);
    for (let i = at.length - 1; i >= 0; i--) {
      at[i] = cell % component.shape[i];
      cell = Math.floor(cell / component.shape[i]);
    }
    return axes.reduce((found, axis, i) => found * shape[i] + at[axis], 0);
  });
}

/** Return two components as one. @param {Component} a @param {Component} b @returns {Component} */
function joined(a, b) {
  /** @param {number[]} x @param {number[]} y */
  const both = (x, y) => x.flatMap((one) => y.map((other) => one + other));
  return {
    keys: [...a.keys, ...b.keys],
    shape: [...a.shape, ...b.shape],
    upper: both(a.upper, b.upper),
    lower: both(a.lower, b.lower),
    pending: [...a.pending, ...b.pending],
  };
}

/** Return a component without a coordinate that nothing pending asks about. @param {Component} component @param {number} key @returns {Component} */
function without(component, key) {
  const axis = component.keys.indexOf(key);
  const size = component.shape[axis];
  const inner = component.shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  /** @param {number[]} from @param {(a: number, b: number) => number} pick */
  const fold = (from, pick) =>
    Array.from({ length: from.length / size }, (_, i) => {
      const first = Math.floor(i / inner) * inner * size + (i % inner);
      return Array.from({ length: size }, (__, j) => from[first + j * inner]).reduce((a, b) => pick(a, b));
    });
  return {
    keys: component.keys.filter((each) => each !== key),
    shape: component.shape.filter((_, i) => i !== axis),
    upper: fold(component.upper, Math.max),
    lower: fold(component.lower, Math.min),
    pending: component.pending,
  };
}

/** Note the sizes of coordinates, which must keep theirs. @param {Map<number, number>} sizes @param {number[]} keys @param {number[]} shape */
export function sized(sizes, keys, shape) {
  must(keys.length === shape.length, 'a coordinate per attribute');
  must(new Set(keys).size === keys.length, 'coordinates must differ');
  keys.forEach((key, i) => {
    must((sizes.get(key) ?? shape[i]) === shape[i], 'a domain must keep its size');
    sizes.set(key, shape[i]);
  });
}

/**
 * Return a component with an answer.
 *
 * @param {Component} component
 * @param {number[]} keys
 * @param {{inputs: number[], shape: number[]}} cells
 * @param {bigint[]} column
 * @param {Pending} [query] what it was pending as
 * @returns {Component}
 */
export function recorded(component, keys, { inputs, shape }, column, query) {
  const logs = column.map(unitsDown);
  const own = places(component, keys, shape).map((cell) => logs[inputs[cell]]);
  const upper = component.upper.map((units, cell) => units + own[cell]);
  const lower = component.lower.map((units, cell) => units + own[cell]);
  // Only differences count: kept near 0, they stay exact however many answers there are.
  const base = least(lower);
  return {
    ...component,
    upper: upper.map((units) => units - base),
    lower: lower.map((units) => units - base),
    pending: component.pending.filter((each) => each !== query),
  };
}

/** @param {number[]} numbers */
function most(numbers) {
  return numbers.reduce((a, b) => Math.max(a, b));
}

/** @param {number[]} numbers */
function least(numbers) {
  return numbers.reduce((a, b) => Math.min(a, b));
}

/** @param {Component} component */
export function lost(component) {
  return most(component.upper) - least(component.lower);
}

/** Return what is pending: the input of every cell, how often, and D. @param {Component} component @param {Map<Survey, Distance>} distances */
export function pendingOf(component, distances) {
  /** @type {Map<Survey, Map<string, {inputs: number[], times: number}>>} */
  const queries = new Map();
  for (const { survey, keys } of component.pending) {
    const own = queries.get(survey) ?? new Map();
    queries.set(survey, own);
    const name = keys.join();
    const known = own.get(name);
    if (known) known.times += 1;
    else {
      const cells = survey.form.cells();
      own.set(name, { inputs: places(component, keys, cells.shape).map((cell) => cells.inputs[cell]), times: 1 });
    }
  }
  return [...queries].flatMap(([survey, own]) =>
    [...own.values()].map((query) => ({ ...query, distance: /** @type {Distance} */ (distances.get(survey)) })),
  );
}

/**
 * Return the most that two cells can come to be apart, once everything pending was answered.
 *
 * Cells that every pending query reads as the same inputs are one: of them the highest and the lowest count.
 *
 * @param {Component} component
 * @param {Map<Survey, Distance>} distances
 */
function worst(component, distances) {
  const parts = pendingOf(component, distances);
  /** @type {Map<string, {upper: number, lower: number, inputs: number[]}>} */
  const groups = new Map();
  component.upper.forEach((upper, cell) => {
    const inputs = parts.map((query) => query.inputs[cell]);
    const name = inputs.join();
    const known = groups.get(name);
    const lower = component.lower[cell];
    if (known) {
      known.upper = Math.max(known.upper, upper);
      known.lower = Math.min(known.lower, lower);
    } else groups.set(name, { upper, lower, inputs });
  });
  const listed = [...groups.values()];
  let found = 0;
  for (const one of listed) {
    for (const other of listed) {
      let apart = one.upper - other.lower;
      for (let i = 0; i < parts.length; i++) {
        apart += parts[i].times * between(parts[i].distance, one.inputs[i], other.inputs[i]);
      }
      if (apart > found) found = apart;
    }
  }
  return found;
}

export class Filter {
  /** @type {Component[]} */
  components = [];
  /** @type {Set<number>} */
  closed = new Set();
  /** What closed components have lost and committed. */
  gone = { lost: 0, committed: 0 };
  tickets = 0;
  /** @type {Map<Survey, Distance>} */
  distances = new Map();

  /**
   * @param {number} budget nats, at most 4,096
   */
  constructor(budget) {
    must(budget > 0 && budget <= MAX_BUDGET, 'a budget out of range');
    const [mantissa, exponent] = parts(budget);
    const by = exponent + 40;
    this.limit = Number(by >= 0 ? mantissa << BigInt(by) : mantissa >> BigInt(-by));
  }

  /** Return the units that two cells can come to be apart. @param {Component} component */
  worst(component) {
    return worst(component, this.distances);
  }

  /** Units that are lost or promised. */
  get committed() {
    const open = this.components.reduce((n, each) => n + this.worst(each), 0);
    return open + this.gone.committed + this.tickets;
  }

  /** Units that recorded answers have lost. */
  get loss() {
    const pending = this.components.reduce((n, each) => n + each.pending.length, 0);
    const open = this.components.reduce((n, each) => n + lost(each), 0);
    return open + this.gone.lost + this.tickets - pending;
  }

  /**
   * Reserve a whole schedule, or nothing of it, and return whether it fits.
   *
   * @param {{keys: number[], survey: Survey}[]} queries their tickets count on from `tickets`
   */
  reserve(queries) {
    const sizes = this.sizes();
    for (const { keys, survey } of queries) {
      must(!keys.some((key) => this.closed.has(key)), 'a coordinate is closed');
      sized(sizes, keys, survey.form.cells().shape);
      if (!this.distances.has(survey)) this.distances.set(survey, survey.channel.distance());
    }
    const before = { components: this.components, tickets: this.tickets };
    for (const { keys, survey } of queries) this.#add(keys, survey, sizes);
    const fits = this.committed <= this.limit;
    if (!fits) Object.assign(this, before);
    return fits;
  }

  /** @param {number[]} keys @param {Survey} survey @param {Map<number, number>} sizes */
  #add(keys, survey, sizes) {
    const own = this.over(keys, sizes);
    const pending = [...own.pending, { ticket: this.tickets, keys, survey }];
    this.components = [...this.components, { ...own, pending }];
    this.tickets += 1;
  }

  /** @returns {Map<number, number>} */
  sizes() {
    return new Map(this.components.flatMap((c) => c.keys.map((key, i) => [key, c.shape[i]])));
  }

  /** Take out the components of some coordinates, and return them as one. @param {number[]} keys @param {Map<number, number>} sizes */
  over(keys, sizes) {
    /** @type {Component} */
    let own = { keys: [], shape: [], upper: [0], lower: [0], pending: [] };
    for (const key of keys) {
      if (own.keys.includes(key)) continue;
      const open = this.components.find((each) => each.keys.includes(key));
      const size = /** @type {number} */ (sizes.get(key));
      const zeros = new Array(size).fill(0);
      own = joined(own, open ?? { keys: [key], shape: [size], upper: zeros, lower: zeros, pending: [] });
      if (open) this.components = this.components.filter((each) => each !== open);
    }
    return own;
  }

  /** @param {number} ticket @returns {[Component, Pending]} */
  waiting(ticket) {
    for (const component of this.components) {
      const found = component.pending.find((each) => each.ticket === ticket);
      if (found) return [component, found];
    }
    throw new Refused('a ticket that waits for nothing');
  }

  /** @param {Component} from @param {Component} to */
  replace(from, to) {
    this.components = this.components.map((each) => (each === from ? to : each));
  }

  /** Record the answer to a query. @param {number} ticket @param {number | Uint8Array} symbol */
  record(ticket, symbol) {
    const [component, query] = this.waiting(ticket);
    const column = query.survey.channel.column(symbol);
    this.replace(component, recorded(component, query.keys, query.survey.form.cells(), column, query));
  }

  /** Take back a query that is never answered. @param {number} ticket */
  cancel(ticket) {
    const [component, query] = this.waiting(ticket);
    this.replace(component, { ...component, pending: component.pending.filter((each) => each !== query) });
  }

  /** Let no query ask about a coordinate any more. @param {number} key */
  close(key) {
    const open = this.components.find((each) => each.keys.includes(key));
    must(open !== undefined, 'not in use');
    if (open.keys.length > 1) {
      must(!open.pending.some((each) => each.keys.includes(key)), 'a joined coordinate with something pending');
      this.replace(open, without(open, key));
    } else {
      this.components = this.components.filter((each) => each !== open);
      this.gone.lost += lost(open);
      this.gone.committed += this.worst(open);
    }
    this.closed.add(key);
  }
}
