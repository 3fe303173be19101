//! Certificates of interval ends: the rule of docs/intervals.md accepts an end, and nothing beyond it.

use std::f64::consts::PI;

pub const SLACK: f64 = 1.0 / (1u64 << 40) as f64;
const WIDTH: f64 = 1.0 / (1u64 << 26) as f64;
const TAIL_SLACK: f64 = 3e-5;
const GIVEN_AWAY: f64 = 1e-5;
/// The skewness below which a sum is read as having none.
const SYMMETRIC: f64 = 1e-6;
const POINTS: i32 = 96;

/// Variance and third central moment of one report's score.
pub type Moments = (f64, f64);

#[derive(Clone)]
pub struct Law {
    /// Of a device in the cell, and of one elsewhere.
    pub own: Moments,
    pub far: Moments,
    /// Of a device of the category but not in the cell, and the category's share.
    pub near: Option<(Moments, f64)>,
    pub step: f64,
    /// How often a device in the cell counts for it, and any other, where a count is all.
    pub odds: Option<(f64, f64)>,
    pub observed: f64,
}

/// The quantile, its tail's probability, and of everybody the part of the draw left to chance.
pub struct Rule {
    pub z: f64,
    pub tail: f64,
    pub drawn: Option<f64>,
}

impl Law {
    /// Variances and third moments of the kinds of devices at a share.
    fn parts(&self, n: f64, share: f64, drawn: Option<f64>) -> Vec<Moments> {
        let mut kinds = vec![(share, self.own), (1.0 - share, self.far)];
        if let Some((near, around)) = self.near {
            let beside = around.max(share).min(1.0) - share;
            kinds = vec![(share, self.own), (beside, near), (1.0 - share - beside, self.far)];
        }
        let mut found: Vec<Moments> = kinds.iter().map(|&(h, (v, k))| (n * h * v, n * h * k)).collect();
        let more = n * (self.observed - share) - total(&found).0;
        if more > 0.0 {
            found.last_mut().unwrap().0 += more;
        }
        if let Some(drawn) = drawn {
            let luck = drawn * n * share * (1.0 - share);
            let tilt = share * (n * self.own.0 - total(&found).0);
            found.push((luck, luck * (1.0 - 2.0 * share) * (2.0 * drawn - 1.0) + 3.0 * drawn * tilt));
        }
        found
    }

    pub fn error(&self, n: f64, share: f64, drawn: Option<f64>) -> f64 {
        total(&self.parts(n, share, drawn)).0.max(0.0).sqrt() / n
    }

    pub fn is_wrong(&self, estimate: f64, low: f64, high: f64, n: f64, rule: &Rule) -> bool {
        let within = estimate.clamp(0.0, 1.0);
        if !(low >= 0.0 && low <= within + SLACK && within <= high + SLACK && high <= 1.0) {
            return true;
        }
        let (Some((p, q)), None) = (self.odds, rule.drawn) else {
            let wrong = |end: f64, side: f64| self.wrong_by_moments(within, end, n, rule, side);
            return wrong(low, 1.0) || wrong(high, -1.0);
        };
        let limit = rule.tail.ln() - GIVEN_AWAY;
        let count = (n * (q + (p - q) * estimate)).round().clamp(0.0, n);
        wrong_count(count, (p, q), low, within, n, limit)
            || wrong_count(n - count, (1.0 - q, 1.0 - p), 1.0 - high, 1.0 - within, n, limit)
    }

    fn wrong_by_moments(&self, within: f64, end: f64, n: f64, rule: &Rule, side: f64) -> bool {
        let bound = if side > 0.0 { 0.0 } else { 1.0 };
        let accepts = |share: f64| {
            let parts = self.parts(n, share, rule.drawn);
            let jumps = parts.iter().map(|&(v, k)| if v > 0.0 { k.abs() / v } else { 0.0 });
            let spare = if self.step > 0.0 { self.step } else { jumps.fold(0.0, f64::max) } / 2.0;
            side * n * (within - share) <= reach(&parts, rule.z, side) + spare
        };
        let inward = (end + side * SLACK).clamp(0.0, 1.0);
        let inward = if side > 0.0 { inward.min(within) } else { inward.max(within) };
        let outward = (end - side * (WIDTH + SLACK)).clamp(0.0, 1.0);
        let refused = (within - end).abs() > SLACK && !accepts(inward);
        let more = (end - bound).abs() > WIDTH + SLACK && accepts(outward);
        refused || more || (end != bound && accepts(bound))
    }
}

fn total(parts: &[Moments]) -> Moments {
    parts.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1))
}

/// How far above its mean, or below it, a sum of kinds of devices reaches.
fn reach(parts: &[Moments], z: f64, side: f64) -> f64 {
    let (variance, third) = total(parts);
    let whole = skewed(variance, side * third, z);
    let is = |sign: f64| parts.iter().any(|&(v, k)| sign * k > SYMMETRIC * v.max(0.0).powf(1.5));
    if !(is(1.0) && is(-1.0)) {
        return whole;
    }
    let apart = parts.iter().map(|&(v, k)| skewed(v, side * k, z).powi(2)).sum::<f64>().sqrt();
    apart.max(whole)
}

/// The upper quantile at z of a sum about its mean: a gamma law's, by Wilson and Hilferty.
fn skewed(variance: f64, third: f64, z: f64) -> f64 {
    let root = variance.max(0.0).sqrt();
    let skew = if root > 0.0 { third / (variance * root) } else { 0.0 };
    let size = skew.abs().min(3.0 * z);
    if size < SYMMETRIC {
        return root * z;
    }
    let g = if skew < 0.0 { -size } else { size };
    root * (2.0 / g * ((1.0 + g * z / 6.0 - g * g / 36.0).max(0.0).powi(3) - 1.0))
}

/// The normal quantile of an upper tail, p < 0.05: Newton's steps for the logarithm of the tail.
pub fn quantile(p: f64) -> f64 {
    let mut z = (-2.0 * p.ln()).sqrt();
    for _ in 0..60 {
        // The tail is density / fraction: Laplace's continued fraction.
        let fraction = (1..=400).rev().fold(z, |held, i| z + f64::from(i) / held);
        let tail = -z * z / 2.0 - (2.0 * PI).ln() / 2.0 - fraction.ln();
        let step = (tail - p.ln()) / fraction;
        z += step;
        if step.abs() < 1e-16 * z {
            break;
        }
    }
    z
}

fn wrong_count(count: f64, odds: (f64, f64), end: f64, estimate: f64, n: f64, limit: f64) -> bool {
    let devices = end * n;
    // Ends and counts are floats: a whole number of devices is read as such.
    let is_whole = (devices - devices.round()).abs() <= SLACK * n;
    let devices = if is_whole { devices.round() } else { devices };
    let below = devices.floor().min(n - 1.0);
    let at = log_tail(count, below, n, odds);
    // Where all devices are in the cell everything is accepted.
    let next = if below + 1.0 >= n { 0.0 } else { log_tail(count, below + 1.0, n, odds) };
    let found = at + (devices - below) * (next - at);
    let off = (found - limit).abs() > TAIL_SLACK;
    let at_zero = devices == 0.0 && at >= limit - TAIL_SLACK;
    let at_estimate = (end - estimate).abs() <= SLACK && found <= limit + TAIL_SLACK;
    off && !at_zero && !at_estimate
}

/// log P(Bin(held, p) + Bin(n - held, q) >= count), 0 up to half a report above the mean: the integral of the
/// generating function over a circle of radius u > 1 through the saddle point, but off the pole at 1.
pub fn log_tail(count: f64, held: f64, n: f64, (p, q): (f64, f64)) -> f64 {
    let other = n - held;
    let mean = held * p + other * q;
    if count - 0.5 <= mean {
        return 0.0;
    }
    let spread = (held * p * (1.0 - p) + other * q * (1.0 - q)).sqrt();
    let aim = (count - 0.5).max(mean + 0.75 * spread).min(n - 0.25);
    let tilted = |odds: f64, falling: f64| odds / (odds + (1.0 - odds) * falling);
    let (mut low, mut high) = (0.0, 800.0);
    for _ in 0..60 {
        let middle: f64 = (low + high) / 2.0;
        let falling = (-middle).exp();
        if held * tilted(p, falling) + other * tilted(q, falling) < aim { low = middle } else { high = middle }
    }
    let logarithm: f64 = (low + high) / 2.0;
    let falling = (-logarithm).exp();
    let kinds = [(held, tilted(p, falling)), (other, tilted(q, falling))];
    let width = kinds.iter().map(|(devices, share)| devices * share * (1.0 - share)).sum::<f64>().sqrt();
    let step = PI.min(12.0 / width) / f64::from(POINTS);
    let mut sum = 0.0;
    for i in 0..=POINTS {
        let angle = f64::from(i) * step;
        let back = -2.0 * (angle / 2.0).sin().powi(2);
        let (mut size, mut turn) = (0.0, -count * angle);
        for (devices, share) in kinds {
            let (re, im) = (share * back, share * angle.sin());
            size += devices * (2.0 * re + re * re + im * im).ln_1p() / 2.0;
            turn += devices * im.atan2(1.0 + re);
        }
        let (re, im) = (1.0 - angle.cos() * falling, angle.sin() * falling);
        let term = size.exp() * (turn.cos() * re + turn.sin() * im) / (re * re + im * im);
        sum += if i == 0 || i == POINTS { term / 2.0 } else { term };
    }
    let u = logarithm.exp_m1();
    let peak = held * (p * u).ln_1p() + other * (q * u).ln_1p();
    peak - count * logarithm + (step / PI * sum).ln()
}

/// The two populations near the estimates to take the worst of.
pub fn plausible(estimates: &[f64]) -> [Vec<f64>; 2] {
    let mut sorted = estimates.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut held, mut shift) = (0.0, 0.0);
    for (i, each) in sorted.iter().enumerate() {
        held += each;
        let next = (held - 1.0) / (i + 1) as f64;
        if next >= *each {
            break;
        }
        shift = next;
    }
    let even = 1.0 / estimates.len() as f64;
    [0.5, 0.9].map(|trust| {
        let mixed = estimates.iter().map(|e| trust * (e - shift).max(0.0) + (1.0 - trust) * even);
        mixed.collect()
    })
}

/// Whether cells are raw estimates less one constant, cut at zero, and of a total: those of the nearest view.
pub fn is_nearest(estimates: &[f64], cells: &[f64], sum: f64) -> bool {
    let slack = SLACK * estimates.iter().fold(1.0, |most: f64, e| most.max(e.abs()));
    let off = (cells.iter().sum::<f64>() - sum).abs();
    if cells.iter().any(|&each| each < 0.0) || off > cells.len() as f64 * slack {
        return false;
    }
    let (mut least, mut most, mut beyond) = (f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (estimate, cell) in estimates.iter().zip(cells) {
        if *cell > 0.0 {
            (least, most) = (least.min(estimate - cell), most.max(estimate - cell));
        } else {
            beyond = beyond.max(*estimate);
        }
    }
    most == f64::NEG_INFINITY || (most - least <= slack && beyond <= most + slack)
}
