// Axes: a domain that always holds zero, ticks at round numbers, and no nervous rescaling between updates.

// The smallest of 1, 2, 5 x 10^k that cuts the span into at most `most` steps.
export function step(span, most) {
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// {low, high, ticks, places}: covers every [low, high] of the rows and zero, in quarters of a tick, so that a slightly
// negative estimate costs little room. A previous domain is kept while the rows fit and fill more than half of it:
// the axis stands still while estimates settle.
export function domain(rows, previous, most = 6) {
  let low = 0;
  let high = 0;
  for (const row of rows) {
    low = Math.min(low, row.low, row.estimate);
    high = Math.max(high, row.high, row.estimate);
  }
  if (!(high > low)) high = 0.01;
  if (previous && low >= previous.low && high <= previous.high
      && high - low > 0.5 * (previous.high - previous.low)) return previous;
  const size = step(high - low, most);
  const first = Math.floor((4 * low) / size + 1e-9) / 4;
  const last = Math.ceil((4 * high) / size - 1e-9) / 4;
  const ticks = [];
  for (let i = Math.ceil(first); i <= last; i += 1) ticks.push(i * size);
  const places = Math.max(0, -Math.floor(Math.log10(100 * size) + 1e-9));
  return { low: first * size, high: last * size, ticks, places };
}

// Where a value lies in a domain: 0 at its low end, 1 at its high end.
export function position(value, { low, high }) {
  return (value - low) / (high - low);
}
