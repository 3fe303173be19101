// Numbers and times as text: as many digits as their uncertainty supports, and no more.

const MINUS = "\u2212"; // the true minus sign
const NARROW = "\u202f"; // a narrow space that does not break

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC",
});
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const hour = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// Decimals at which a half width keeps two significant digits: 3.41 -> 1, 0.0341 -> 3, 34.1 -> 0.
export function decimals(half) {
  if (!(half > 0) || !Number.isFinite(half)) return 2;
  const places = 1 - Math.floor(Math.log10(half));
  // 0.0996 rounds up to 0.10: one decimal less says the same.
  const rounded = Number(half.toFixed(Math.min(Math.max(places, 0), 12)));
  const digits = 1 - Math.floor(Math.log10(rounded > 0 ? rounded : half));
  return Math.min(Math.max(digits, 0), 8);
}

// A number with fixed decimals, a true minus sign, grouped thousands and never "−0.0".
export function fixed(value, places) {
  if (!Number.isFinite(value)) return "–";
  const text = Math.abs(value).toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

export function count(value) {
  return Number.isFinite(value) ? whole.format(value) : "–";
}

// Whether a row has an estimate: what the reports cannot tell apart is null. A row that is `plain` has no interval.
export function isKnown(row) {
  return row.estimate !== null && (Boolean(row.plain) || (row.low !== null && row.high !== null));
}

// Why a row has no estimate.
export function unknown(row) {
  return row.why ?? "not identifiable";
}

export function halfWidth(row) {
  return row.plain ? row.half ?? 0 : (row.high - row.low) / 2;
}

// Units: what a number is multiplied by before it is written, what follows it, and what it is a number of.
// `cut` says what is said of intervals that stay within what is possible.
export const PERCENT = { scale: 100, sign: `${NARROW}%`, of: "% of devices", cut: "Intervals are cut to 0 to 100 %; estimates are not." };
export const POINTS = { scale: 100, sign: " points", of: "percentage points" };
export const PLAIN = { scale: 1, sign: "", of: "" };

// A number with its interval: {estimate, half, text: "12.3 ± 0.8 %", interval: "11.5 to 13.1 %"}. An interval that is
// not symmetric about its estimate, cut to what is possible for one, is written out: "0.4 (0.0 to 1.9) %".
export function spelled(row, { scale, sign }) {
  const half = scale * halfWidth(row);
  const places = decimals(half);
  const estimate = fixed(scale * row.estimate, places);
  if (row.plain) return { estimate, half: "–", text: `${estimate}${sign}`, interval: "–" };
  const [low, high] = [fixed(scale * row.low, places), fixed(scale * row.high, places)];
  const even = Math.abs((row.low + row.high) / 2 - row.estimate) <= 0.05 * halfWidth(row);
  return {
    estimate,
    half: fixed(half, places),
    text: even ? `${estimate} ± ${fixed(half, places)}${sign}` : `${estimate} (${low} to ${high})${sign}`,
    interval: `${low} to ${high}${sign}`,
  };
}

// A row's smoothed level, with the digits that its raw estimate has.
export function smooth(row, { scale, sign }) {
  return `${fixed(scale * row.trend, decimals(scale * halfWidth(row)))}${sign}`;
}

export function share(row) {
  return spelled(row, PERCENT);
}

export function quantity(row) {
  return spelled(row, PLAIN);
}

// Numbers as text, filled up with spaces as wide as what they lack, so that their decimal points stand in a column.
export function aligned(texts) {
  const places = texts.map((text) => /\.(\d+)/.exec(text)?.[1].length ?? 0);
  const most = Math.max(0, ...places);
  return texts.map((text, i) => (places[i] === most ? text : text + (places[i] ? "" : "\u2008") + "\u2007".repeat(most - places[i])));
}

// Epsilon, rounded up at six decimals: what is shown is never below the truth.
export function epsilon(value) {
  if (!Number.isFinite(value)) return "–";
  const nearest = Math.round(value * 1e6) / 1e6;
  const up = nearest >= value ? nearest : Math.ceil(value * 1e6) / 1e6;
  return String(up);
}

// Seconds since 1970 or an ISO text -> "1 Jan 2026, 00:00".
export function when(value) {
  const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return Number.isNaN(date.getTime()) ? "–" : moment.format(date);
}

// When a round begins, in seconds since 1970, as short as its length allows: "5 Jan 2026", or "5 Jan, 14:00".
export function began(start, length) {
  return (length < 86_400 ? hour : day).format(new Date(1000 * start));
}

export function timeOfDay(date) {
  return clock.format(date);
}

export function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many}`;
}
