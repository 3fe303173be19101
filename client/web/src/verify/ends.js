/**
 * Certificates of interval ends: an end is accepted by the rule of intervals, and nothing beyond it is.
 *
 * Nothing here searches for an end. The rule (docs/intervals.md) is asked at the end that a release states, moved
 * inward by SLACK, and where it has to refuse, moved outward.
 *
 * @module
 */

export const SLACK = 2 ** -40;
/** The distance from an end at which the rule must refuse: ends are halved down to it. */
const WIDTH = 2 ** -26;
/** An exact tail's logarithm is off its limit by at most this; ends lie outward by a part of a tail. */
const TAIL_SLACK = 3e-5;
const GIVEN_AWAY = 1e-5;
/** The skewness below which a sum is read as having none. */
const SYMMETRIC = 1e-6;
/** Points of a half circle in a tail. */
const POINTS = 96;

/** Variance and third central moment of one report's score. @typedef {[number, number]} Moments */

/**
 * The law of the scores of one cell.
 *
 * @typedef {object} Law
 * @property {Moments} own of a device in the cell
 * @property {Moments} far of a device elsewhere
 * @property {Moments | null} near of a device of the cell's category but not in the cell
 * @property {number} around the estimated share of the cell's category, with `near`
 * @property {number} step what one report more moves the sum by where it lies on a lattice, else 0
 * @property {[number, number] | null} odds how often a device in the cell counts for it, and any other
 * @property {number} observed the mean squared score of the reports; -Infinity where it is not asked
 */

/** Return variances and third moments of the kinds of devices at a share. @param {Law} law @param {number} n @param {number} share */
function parts(law, n, share) {
  /** @type {[number, Moments][]} */
  let kinds = [[share, law.own], [1 - share, law.far]];
  if (law.near !== null) {
    const beside = Math.min(Math.max(law.around, share), 1) - share;
    kinds = [[share, law.own], [beside, law.near], [1 - share - beside, law.far]];
  }
  const variances = kinds.map(([held, [v]]) => n * held * v);
  const thirds = kinds.map(([held, [, k]]) => n * held * k);
  const more = n * (law.observed - share) - total(variances);
  if (more > 0) variances[variances.length - 1] += more;
  return { variances, thirds };
}

/** The same, and what the draw of the devices counted adds. @param {Law} law @param {number} n @param {number} share @param {number} drawn */
function ofCrowd(law, n, share, drawn) {
  const { variances, thirds } = parts(law, n, share);
  const luck = drawn * n * share * (1 - share);
  const tilt = share * (n * law.own[0] - total(variances));
  thirds.push(luck * (1 - 2 * share) * (2 * drawn - 1) + 3 * drawn * tilt);
  variances.push(luck);
  return { variances, thirds };
}

/** @param {number[]} numbers */
function total(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

/** @param {number} x */
export function clipped(x) {
  return Math.min(Math.max(x, 0), 1);
}

/** Return the standard error of a cell; of everybody with `drawn`. @param {Law} law @param {number} n @param {number} share @param {number | null} drawn */
export function errorOf(law, n, share, drawn) {
  const { variances } = drawn === null ? parts(law, n, share) : ofCrowd(law, n, share, drawn);
  return Math.sqrt(Math.max(total(variances), 0)) / n;
}

/**
 * Return the normal quantile that a tail of probability p is above, p < 0.05: Newton's steps for the logarithm of
 * the tail, which is the density by Laplace's continued fraction.
 *
 * @param {number} p
 */
export function quantileOf(p) {
  let z = Math.sqrt(-2 * Math.log(p));
  for (let turn = 0; turn < 60; turn++) {
    let fraction = z;
    for (let i = 400; i >= 1; i--) fraction = z + i / fraction;
    // The tail is density / fraction, so that the slope of its logarithm is -fraction.
    const tail = -z * z / 2 - Math.log(2 * Math.PI) / 2 - Math.log(fraction);
    const step = (tail - Math.log(p)) / fraction;
    z += step;
    if (Math.abs(step) < 1e-16 * z) break;
  }
  return z;
}

/**
 * Return whether an interval is not that of the rule.
 *
 * @param {number} estimate
 * @param {number} low
 * @param {number} high
 * @param {Law} law
 * @param {number} n
 * @param {{z: number, tail: number, drawn: number | null}} asked the quantile, the tail's probability; `drawn` is
 *   null for the devices counted, and for everybody the part of the draw left to chance
 * @returns {boolean}
 */
export function isWrong(estimate, low, high, law, n, { z, tail, drawn }) {
  const within = clipped(estimate);
  if (!(low >= 0 && low <= within + SLACK && within <= high + SLACK && high <= 1)) return true;
  if (drawn !== null || law.odds === null) {
    return wrongByMoments(within, low, law, n, z, 1, drawn) || wrongByMoments(within, high, law, n, z, -1, drawn);
  }
  const [p, q] = law.odds;
  const limit = Math.log(tail) - GIVEN_AWAY;
  const count = Math.min(Math.max(Math.round(n * (q + (p - q) * estimate)), 0), n);
  return (
    wrongCount(count, p, q, low, within, n, limit) || wrongCount(n - count, 1 - q, 1 - p, 1 - high, 1 - within, n, limit)
  );
}

/** @param {number} within @param {number} end @param {Law} law @param {number} n @param {number} z @param {number} side @param {number | null} drawn */
function wrongByMoments(within, end, law, n, z, side, drawn) {
  const bound = side > 0 ? 0 : 1;
  /** @param {number} share */
  const accepts = (share) => {
    const { variances, thirds } = drawn === null ? parts(law, n, share) : ofCrowd(law, n, share, drawn);
    const jumps = thirds.map((k, i) => (variances[i] > 0 ? Math.abs(k) / variances[i] : 0));
    const spare = (law.step > 0 ? law.step : Math.max(...jumps)) / 2;
    return side * n * (within - share) <= reach(variances, thirds, z, side) + spare;
  };
  let inward = clipped(end + side * SLACK);
  inward = side > 0 ? Math.min(inward, within) : Math.max(inward, within);
  const outward = clipped(end - side * (WIDTH + SLACK));
  const refused = Math.abs(within - end) > SLACK && !accepts(inward);
  const more = Math.abs(end - bound) > WIDTH + SLACK && accepts(outward);
  return refused || more || (end !== bound && accepts(bound));
}

/** How far above its mean, or below it, a sum of kinds of devices reaches. @param {number[]} variances @param {number[]} thirds @param {number} z @param {number} side */
function reach(variances, thirds, z, side) {
  const whole = skewed(total(variances), side * total(thirds), z);
  // Beyond rounding: a kind of skewness 0 is of neither sign.
  const signs = thirds.map((k, i) => (Math.abs(k) > SYMMETRIC * Math.max(variances[i], 0) ** 1.5 ? Math.sign(k) : 0));
  if (!(signs.includes(1) && signs.includes(-1))) return whole;
  return Math.max(Math.hypot(...variances.map((v, i) => skewed(v, side * thirds[i], z))), whole);
}

/** The upper quantile at z of a sum about its mean: a gamma law's, by Wilson and Hilferty. @param {number} variance @param {number} third @param {number} z */
function skewed(variance, third, z) {
  const root = Math.sqrt(Math.max(variance, 0));
  const skew = root > 0 ? third / (Math.max(variance, 0) * root) : 0;
  const size = Math.min(Math.abs(skew), 3 * z);
  if (size < SYMMETRIC) return root * z;
  const g = skew < 0 ? -size : size;
  const base = Math.max(1 + (g * z) / 6 - (g * g) / 36, 0);
  return root * ((2 / g) * (base ** 3 - 1));
}

/** Tails that were asked for: values of one count share them. @type {Map<string, number>} */
const KNOWN = new Map();

/** Return whether a lower end is not where a tail's logarithm crosses its limit. @param {number} count @param {number} p @param {number} q @param {number} end @param {number} estimate @param {number} n @param {number} limit */
function wrongCount(count, p, q, end, estimate, n, limit) {
  let devices = end * n;
  // Ends and counts are floats: a whole number of devices is read as such.
  if (Math.abs(devices - Math.round(devices)) <= SLACK * n) devices = Math.round(devices);
  const below = Math.min(Math.floor(devices), n - 1);
  const at = knownTail(count, below, n, p, q);
  // Where all devices are in the cell everything is accepted.
  const next = below + 1 >= n ? 0 : knownTail(count, below + 1, n, p, q);
  const found = at + (devices - below) * (next - at);
  if (Math.abs(found - limit) <= TAIL_SLACK) return false;
  if (devices === 0 && at >= limit - TAIL_SLACK) return false;
  // The estimate is inside always; and one beyond 0 has no end below it.
  return !(Math.abs(end - estimate) <= SLACK && found <= limit + TAIL_SLACK);
}

/** @param {number} count @param {number} held @param {number} n @param {number} p @param {number} q */
function knownTail(count, held, n, p, q) {
  const key = `${count} ${held} ${n} ${p} ${q}`;
  let found = KNOWN.get(key);
  if (found === undefined) {
    if (KNOWN.size > 2 ** 16) KNOWN.clear();
    found = logTail(count, held, n, p, q);
    KNOWN.set(key, found);
  }
  return found;
}

/**
 * Return log P(Bin(held, p) + Bin(n - held, q) >= count); 0 up to half a report above the mean.
 *
 * With g(x) = (1 - p + p x)^held (1 - q + q x)^other, the generating function, it is the integral of
 * g(x) x^-count / (1 - 1/x) over a circle of radius u > 1, by the trapezoid rule on half of it. u is near the saddle
 * point, where the tilted law p u / (1 - p + p u) has a mean of count - 1/2, but off the pole at 1.
 *
 * @param {number} count
 * @param {number} held
 * @param {number} n
 * @param {number} p
 * @param {number} q
 */
export function logTail(count, held, n, p, q) {
  const other = n - held;
  const mean = held * p + other * q;
  if (count - 0.5 <= mean) return 0;
  const spread = Math.sqrt(held * p * (1 - p) + other * q * (1 - q));
  const aim = Math.min(Math.max(count - 0.5, mean + 0.75 * spread), n - 0.25);
  let [low, high] = [0, 800];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    const falling = Math.exp(-middle);
    const tilted = (held * p) / (p + (1 - p) * falling) + (other * q) / (q + (1 - q) * falling);
    if (tilted < aim) low = middle;
    else high = middle;
  }
  const logarithm = (low + high) / 2;
  const falling = Math.exp(-logarithm);
  const kinds = [[held, p / (p + (1 - p) * falling)], [other, q / (q + (1 - q) * falling)]];
  const width = Math.sqrt(total(kinds.map(([devices, share]) => devices * share * (1 - share))));
  const step = Math.min(Math.PI, 12 / width) / POINTS;
  let sum = 0;
  for (let i = 0; i <= POINTS; i++) {
    const angle = i * step;
    const back = -2 * Math.sin(angle / 2) ** 2;
    let [size, turn] = [0, -count * angle];
    for (const [devices, share] of kinds) {
      // log(1 + share (e^(i angle) - 1))
      const [re, im] = [share * back, share * Math.sin(angle)];
      size += (devices * Math.log1p(2 * re + re * re + im * im)) / 2;
      turn += devices * Math.atan2(im, 1 + re);
    }
    // 1 - e^(-i angle) / u, and the real part of the quotient
    const [re, im] = [1 - Math.cos(angle) * falling, Math.sin(angle) * falling];
    const term = (Math.exp(size) * (Math.cos(turn) * re + Math.sin(turn) * im)) / (re * re + im * im);
    sum += i === 0 || i === POINTS ? term / 2 : term;
  }
  const u = Math.expm1(logarithm);
  const peak = held * Math.log1p(p * u) + other * Math.log1p(q * u);
  return peak - count * logarithm + Math.log((step / Math.PI) * sum);
}

/** Return the nearest vector that is not negative and of a sum. @param {number[]} estimates @param {number} sum */
export function onSimplex(estimates, sum) {
  const sorted = [...estimates].sort((a, b) => b - a);
  let [held, shift] = [0, 0];
  for (let i = 0; i < sorted.length; i++) {
    held += sorted[i];
    const next = (held - sum) / (i + 1);
    if (next >= sorted[i]) break;
    shift = next;
  }
  return estimates.map((each) => Math.max(each - shift, 0));
}

/** The two populations to take the worst of. @param {number[]} estimates */
export function plausible(estimates) {
  const view = onSimplex(estimates, 1);
  return [0.5, 0.9].map((trust) => view.map((share) => trust * share + (1 - trust) / view.length));
}

/**
 * Return whether cells are raw estimates less one constant, cut at zero, and of a total: the conditions of Karush,
 * Kuhn and Tucker for the nearest such vector.
 *
 * @param {number[]} estimates
 * @param {number[]} cells
 * @param {number} sum
 */
export function isNearest(estimates, cells, sum) {
  const slack = SLACK * Math.max(1, ...estimates.map(Math.abs));
  if (cells.some((each) => each < 0) || Math.abs(total(cells) - sum) > cells.length * slack) return false;
  let [least, most, beyond] = [Infinity, -Infinity, -Infinity];
  cells.forEach((cell, i) => {
    if (cell > 0) {
      least = Math.min(least, estimates[i] - cell);
      most = Math.max(most, estimates[i] - cell);
    } else beyond = Math.max(beyond, estimates[i]);
  });
  return most === -Infinity || (most - least <= slack && beyond <= most + slack);
}
