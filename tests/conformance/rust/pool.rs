//! Local hashing's public pool of seeds, over the field of q elements.

use crate::channel::MAX_INPUTS;
use crate::pack::{fit, must, Answer};

const MAX_SYMBOLS: u64 = 1 << 20;
/// Of more inputs than any other channel takes.
const MAX_WIDE_SYMBOLS: u64 = 1 << 22;
/// The least irreducible polynomial of each degree from 2, bit i for x^i.
const POLYNOMIALS: [u64; 16] =
    [7, 11, 19, 37, 67, 131, 283, 515, 1033, 2053, 4105, 8219, 16417, 32771, 65579, 131081];

pub struct Pool {
    pub q: u64,
    pub digits: u32,
    pub seeds: u64,
    whole: u64,
    stride: u64,
    /// 0 where q is a prime.
    polynomial: u64,
}

fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

impl Pool {
    pub fn of(inputs: u64, q: u64) -> Answer<Pool> {
        let most = if inputs > MAX_INPUTS as u64 { MAX_WIDE_SYMBOLS } else { MAX_SYMBOLS };
        must((2..=most).contains(&q), "buckets of 2 and more")?;
        let degree = fit(q.trailing_zeros());
        let power = q.is_power_of_two() && degree >= 2;
        must(!power || degree <= 17, "a power of two of at most 2^17")?;
        must(power || (2..).take_while(|d| d * d <= q).all(|d| q % d != 0), "a prime")?;
        let (mut digits, mut whole) = (1, q);
        while whole < inputs {
            whole *= q;
            digits += 1;
        }
        let seeds = (whole - 1) / (q - 1);
        must(seeds * q <= most, "too many symbols")?;
        let mut stride = (618 * whole).div_ceil(1000);
        while common(stride, q) > 1 {
            stride += 1;
        }
        let polynomial = if power { POLYNOMIALS[degree - 2] } else { 0 };
        Ok(Pool { q, digits, seeds, whole, stride, polynomial })
    }

    fn product(&self, a: u64, b: u64) -> u64 {
        if self.polynomial == 0 {
            return a * b % self.q;
        }
        let (mut a, mut found) = (a, 0);
        for bit in 0..self.q.trailing_zeros() {
            found ^= if b >> bit & 1 == 1 { a } else { 0 };
            a <<= 1;
            a ^= if a & self.q != 0 { self.polynomial } else { 0 };
        }
        found
    }

    pub fn cell(&self, seed: u64, input: u64) -> u64 {
        let (mut rest, mut first) = (seed, 1);
        while rest >= first {
            rest -= first;
            first *= self.q;
        }
        let (mut direction, mut point) = (first + rest, input * self.stride % self.whole);
        let mut found = 0;
        for _ in 0..self.digits {
            let term = self.product(direction % self.q, point % self.q);
            found = if self.polynomial == 0 { (found + term) % self.q } else { found ^ term };
            direction /= self.q;
            point /= self.q;
        }
        found
    }
}
