//! Whole numbers of any size, and logarithms and exponentials of them with stated errors.

use crate::pack::fit;
use std::cmp::Ordering;

/// A number of at least 0: words of 32 bits, the least first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Big(Vec<u32>);

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Big) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Big) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl Big {
    pub fn of(mut n: u128) -> Big {
        let mut words = vec![];
        while n > 0 {
            words.push(n as u32);
            n >>= 32;
        }
        Big(words)
    }

    fn trimmed(mut words: Vec<u32>) -> Big {
        while words.last() == Some(&0) {
            words.pop();
        }
        Big(words)
    }

    pub fn of_bytes(bytes: &[u8]) -> Big {
        let word = |part: &[u8]| part.iter().rev().fold(0, |n, &b| n << 8 | b as u32);
        Big::trimmed(bytes.chunks(4).map(word).collect())
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bits(&self) -> usize {
        self.0.last().map_or(0, |top| 32 * self.0.len() - fit(top.leading_zeros()))
    }

    pub fn small(&self) -> Option<u128> {
        let whole = self.0.iter().rev().fold(0u128, |n, &w| n << 32 | w as u128);
        (self.bits() <= 128).then_some(whole)
    }

    pub fn shl(&self, by: usize) -> Big {
        let mut words = vec![0; by / 32];
        let mut carry = 0u64;
        for &w in &self.0 {
            carry |= (w as u64) << (by % 32);
            words.push(carry as u32);
            carry >>= 32;
        }
        words.push(carry as u32);
        Big::trimmed(words)
    }

    pub fn shr(&self, by: usize) -> Big {
        let from = (by / 32).min(self.0.len());
        let high = self.0[from..].iter().skip(1).chain(&[0]);
        let pairs = self.0[from..].iter().zip(high);
        let word = |(&low, &high): (&u32, &u32)| (((high as u64) << 32 | low as u64) >> (by % 32)) as u32;
        Big::trimmed(pairs.map(word).collect())
    }

    pub fn plus(&self, other: &Big) -> Big {
        let mut carry = 0u64;
        let mut words = vec![];
        for i in 0..=self.0.len().max(other.0.len()) {
            carry += *self.0.get(i).unwrap_or(&0) as u64 + *other.0.get(i).unwrap_or(&0) as u64;
            words.push(carry as u32);
            carry >>= 32;
        }
        Big::trimmed(words)
    }

    /// This less another, which must not be above it.
    pub fn minus(&self, other: &Big) -> Big {
        let mut words = vec![];
        let mut borrow = 0i64;
        for (i, &w) in self.0.iter().enumerate() {
            let left = w as i64 - *other.0.get(i).unwrap_or(&0) as i64 + borrow;
            words.push(left as u32);
            borrow = left >> 32;
        }
        assert!(borrow == 0, "a difference must not be negative");
        Big::trimmed(words)
    }

    pub fn times(&self, other: &Big) -> Big {
        let mut words = vec![0u32; self.0.len() + other.0.len() + 1];
        for (i, &a) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for (j, &b) in other.0.iter().chain(&[0]).enumerate() {
                carry += a as u64 * b as u64 + words[i + j] as u64;
                words[i + j] = carry as u32;
                carry >>= 32;
            }
        }
        Big::trimmed(words)
    }

    pub fn over_small(&self, divisor: u32) -> Big {
        let mut words = vec![0; self.0.len()];
        let mut rest = 0u64;
        for i in (0..words.len()).rev() {
            rest = rest << 32 | self.0[i] as u64;
            words[i] = (rest / divisor as u64) as u32;
            rest %= divisor as u64;
        }
        Big::trimmed(words)
    }

    /// Quotient and remainder, one bit at a time.
    pub fn divided(&self, divisor: &Big) -> (Big, Big) {
        let (mut rest, shift) = (self.clone(), self.bits().saturating_sub(divisor.bits()));
        let mut quotient = vec![0u32; shift / 32 + 1];
        let mut step = divisor.shl(shift);
        for bit in (0..=shift).rev() {
            if rest >= step {
                rest = rest.minus(&step);
                quotient[bit / 32] |= 1 << (bit % 32);
            }
            step = step.shr(1);
        }
        (Big::trimmed(quotient), rest)
    }

    pub fn gcd(&self, other: &Big) -> Big {
        let (mut a, mut b) = (self.clone(), other.clone());
        while !b.is_zero() {
            (a, b) = (b.clone(), a.divided(&b).1);
        }
        a
    }
}

/// Bits after the point of what follows; its errors stay below 2^-(POINT - SPARE).
const POINT: usize = 256;
const SPARE: usize = 24;

/// 2 atanh(a / b) = ln((b + a) / (b - a)), for a / b of at most a third.
fn twice_atanh(a: &Big, b: &Big) -> Big {
    let z = a.shl(POINT).divided(b).0;
    let square = z.times(&z).shr(POINT);
    let (mut power, mut sum, mut odd) = (z, Big::of(0), 1);
    while !power.is_zero() {
        sum = sum.plus(&power.over_small(odd));
        power = power.times(&square).shr(POINT);
        odd += 2;
    }
    sum.shl(1)
}

thread_local! {
    static LN2: Big = twice_atanh(&Big::of(1), &Big::of(3));
}

fn ln(n: &Big) -> Big {
    let power = n.bits() - 1;
    let unit = Big::of(1).shl(power);
    let rest = twice_atanh(&n.minus(&unit), &n.plus(&unit));
    LN2.with(|two| two.times(&Big::of(power as u128)).plus(&rest))
}

/// ln(n / d), n >= d >= 1, between two numbers of POINT bits after the point.
fn ln_between(n: &Big, d: &Big) -> (Big, Big) {
    let (top, bottom, error) = (ln(n), ln(d), Big::of(1 << SPARE));
    let low = if top > bottom.plus(&error) { top.minus(&bottom).minus(&error) } else { Big::of(0) };
    (low, top.plus(&error).minus(&bottom))
}

fn same<T: PartialEq>(low: T, high: T) -> Result<T, &'static str> {
    if low == high { Ok(low) } else { Err("a logarithm too near to a whole number of units") }
}

/// The least whole number of 2^-40 nats not below ln(n / d), n >= d.
pub fn units_up(n: u128, d: u128) -> Result<i64, &'static str> {
    if n == d {
        return Ok(0);
    }
    let (low, high) = ln_between(&Big::of(n), &Big::of(d));
    let floor = same(low.shr(POINT - 40), high.shr(POINT - 40))?;
    Ok(floor.small().unwrap() as i64 + 1)
}

/// The whole 2^-40 nats of ln w.
pub fn units_down(w: u128) -> Result<i64, &'static str> {
    if w == 1 {
        return Ok(0);
    }
    let (low, high) = ln_between(&Big::of(w), &Big::of(1));
    Ok(same(low.shr(POINT - 40), high.shr(POINT - 40))?.small().unwrap() as i64)
}

/// The least float not below ln(n / d), n >= d.
pub fn ln_above(n: &Big, d: &Big) -> Result<f64, &'static str> {
    if n == d {
        return Ok(0.0);
    }
    let (low, high) = ln_between(n, d);
    let shift = high.bits().saturating_sub(53);
    let floor = same(low.shr(shift), high.shr(shift))?.small().unwrap() as u64 + 1;
    Ok(floor as f64 * 2f64.powi(shift as i32 - POINT as i32))
}

/// A finite float as mantissa and exponent of two.
pub fn parts(x: f64) -> (u64, i32) {
    let bits = x.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// floor(2^96 e^x) for x in 0 to 40.
pub fn exp_below(x: f64) -> Result<Big, &'static str> {
    if x == 0.0 {
        return Ok(Big::of(1 << 96));
    }
    let (mantissa, exponent) = parts(x);
    let fixed = Big::of(mantissa as u128).shl(fit(POINT as i32 + exponent));
    let (mut term, mut sum, mut n) = (Big::of(1).shl(POINT), Big::of(0), 1);
    while !term.is_zero() {
        sum = sum.plus(&term);
        term = term.times(&fixed).shr(POINT).over_small(n);
        n += 1;
    }
    // Each of some 400 terms is cut by less than 40^40 / 40! < 2^57 last places.
    same(sum.shr(POINT - 96), sum.plus(&Big::of(1 << 70)).shr(POINT - 96))
}

/// The place of x on the grid of `points` from low to high: the point below, and the rest as a fraction.
pub fn place(x: (bool, Big, i32), low: f64, high: f64, points: usize) -> (usize, Big, Big) {
    let ends = [low, high].map(|end| (end < 0.0, Big::of(parts(end).0 as u128), parts(end).1));
    let least = x.2.min(ends[0].2).min(ends[1].2);
    let whole = |(minus, n, e): &(bool, Big, i32)| (*minus, n.shl(fit(e - least)));
    let (value, from, to) = (whole(&x), whole(&ends[0]), whole(&ends[1]));
    let above = difference(&value, &from).times(&Big::of(points as u128 - 1));
    let width = difference(&to, &from);
    let (index, rest) = above.divided(&width);
    let common = rest.gcd(&width);
    (fit(index.small().unwrap()), rest.divided(&common).0, width.divided(&common).0)
}

/// a - b of two signed numbers, a not below b.
fn difference(a: &(bool, Big), b: &(bool, Big)) -> Big {
    match (a.0, b.0) {
        (false, true) => a.1.plus(&b.1),
        (true, true) => b.1.minus(&a.1),
        _ => a.1.minus(&b.1),
    }
}

/// The sum of finite floats, rounded once: exact, then to the nearest, ties to even.
pub fn exact_sum(numbers: &[f64]) -> f64 {
    let (mut plus, mut minus) = (Big::of(0), Big::of(0));
    for &x in numbers {
        let (mantissa, exponent) = parts(x);
        let term = Big::of(mantissa as u128).shl(fit(exponent + 1074));
        let side = if x < 0.0 { &mut minus } else { &mut plus };
        *side = side.plus(&term);
    }
    let negative = minus > plus;
    let size = if negative { minus.minus(&plus) } else { plus.minus(&minus) };
    let shift = size.bits().saturating_sub(53);
    let mut kept = size.shr(shift).small().unwrap() as u64;
    let rest = size.minus(&Big::of(kept as u128).shl(shift));
    if shift > 0 {
        let order = rest.cmp(&Big::of(1).shl(shift - 1));
        kept += (order == Ordering::Greater || (order == Ordering::Equal && kept & 1 == 1)) as u64;
    }
    // Two steps, so that neither power of two leaves the floats.
    let half = (shift as i32 - 1074) / 2;
    let found = kept as f64 * 2f64.powi(half) * 2f64.powi(shift as i32 - 1074 - half);
    if negative { -found } else { found }
}
