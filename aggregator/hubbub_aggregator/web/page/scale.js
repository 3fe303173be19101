// Axes: a domain that always holds zero, ticks at round numbers, and no nervous rescaling between updates.

// The smallest of 1, 2, 5 x 10^k that cuts the span into at most `most` steps.
export function step(span, most) {
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// {low, high, base, ticks, places}: covers every [low, high] of the rows and zero, in quarters of a tick, so that a
// slightly negative estimate costs little room. A previous domain is kept while the rows fit and fill more than half
// of it: the axis stands still while estimates settle. Where zero says nothing (a mean over time) it may be left out;
// `base`, where bars begin, is then the low end. `places` are decimals of a tick times the scale.
export function domain(rows, previous, { most = 6, zero = true, scale = 100 } = {}) {
  let low = zero || !rows.length ? 0 : Infinity;
  let high = zero || !rows.length ? 0 : -Infinity;
  for (const row of rows) {
    low = Math.min(low, row.estimate, row.plain ? Infinity : row.low);
    high = Math.max(high, row.estimate, row.plain ? -Infinity : row.high);
    if (Number.isFinite(row.trend)) [low, high] = [Math.min(low, row.trend), Math.max(high, row.trend)];
  }
  if (!(high > low)) high = low + (zero ? 0.01 : Math.abs(low) / 10 || 1);
  if (previous && low >= previous.low && high <= previous.high
      && high - low > 0.5 * (previous.high - previous.low)) return previous;
  const size = step(high - low, most);
  const first = Math.floor((4 * low) / size + 1e-9) / 4;
  const last = Math.ceil((4 * high) / size - 1e-9) / 4;
  const ticks = [];
  for (let i = Math.ceil(first); i <= last; i += 1) ticks.push(i * size);
  const places = Math.max(0, -Math.floor(Math.log10(scale * size) + 1e-9));
  const ends = { low: first * size, high: last * size };
  return { ...ends, base: Math.min(Math.max(0, ends.low), ends.high), ticks, places };
}

// Where a value lies in a domain: 0 at its low end, 1 at its high end.
export function position(value, { low, high }) {
  return (value - low) / (high - low);
}
