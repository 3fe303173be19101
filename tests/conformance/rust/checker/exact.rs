//! Rational numbers, and the floats nearest to them.

use crate::big::{parts, Big};
use crate::pack::fit;

#[derive(Clone)]
pub struct Exact {
    minus: bool,
    top: Big,
    bottom: Big,
}

impl Exact {
    pub fn of(top: i128, bottom: i128) -> Exact {
        let minus = (top < 0) != (bottom < 0);
        Exact { minus, top: Big::of(top.unsigned_abs()), bottom: Big::of(bottom.unsigned_abs()) }
    }

    pub fn of_float(x: f64) -> Exact {
        let (mantissa, exponent) = parts(x);
        let (up, down) = (exponent.max(0), (-exponent).max(0));
        let top = Big::of(mantissa as u128).shl(fit(up));
        Exact { minus: x < 0.0, top, bottom: Big::of(1).shl(fit(down)) }
    }

    pub fn plus(&self, other: &Exact) -> Exact {
        let same = self.bottom == other.bottom;
        let (a, b) = if same {
            (self.top.clone(), other.top.clone())
        } else {
            (self.top.times(&other.bottom), other.top.times(&self.bottom))
        };
        let bottom = if same { self.bottom.clone() } else { self.bottom.times(&other.bottom) };
        if self.minus == other.minus {
            return Exact { minus: self.minus, top: a.plus(&b), bottom };
        }
        let (minus, top) = if a >= b { (self.minus, a.minus(&b)) } else { (other.minus, b.minus(&a)) };
        Exact { minus, top, bottom }
    }

    pub fn times(&self, other: &Exact) -> Exact {
        let (top, bottom) = (self.top.times(&other.top), self.bottom.times(&other.bottom));
        Exact { minus: self.minus != other.minus, top, bottom }
    }

    pub fn minus(&self, other: &Exact) -> Exact {
        self.plus(&Exact { minus: !other.minus, ..other.clone() })
    }

    pub fn inverse(&self) -> Exact {
        Exact { minus: self.minus, top: self.bottom.clone(), bottom: self.top.clone() }
    }

    pub fn is_positive(&self) -> bool {
        !self.minus && !self.top.is_zero()
    }

    /// The nearest float: 66 bits of the quotient, the last one set where anything follows, rounded once.
    pub fn float(&self) -> f64 {
        if self.top.is_zero() {
            return 0.0;
        }
        let shift = 66 + self.bottom.bits() as i32 - self.top.bits() as i32;
        let (top, bottom) = (self.top.shl(fit(shift.max(0))), self.bottom.shl(fit((-shift).max(0))));
        let (quotient, rest) = top.divided(&bottom);
        let size = (quotient.small().unwrap() | u128::from(!rest.is_zero())) as f64;
        let found = size * 2f64.powi(-shift / 2) * 2f64.powi(-shift - -shift / 2);
        if self.minus { -found } else { found }
    }
}

/// The sum of numbers, of which most have one denominator.
pub fn sum<'a>(numbers: impl Iterator<Item = &'a Exact>) -> Exact {
    let mut found: Vec<Exact> = vec![];
    for each in numbers {
        match found.iter_mut().find(|own| own.bottom == each.bottom) {
            Some(own) => *own = own.plus(each),
            None => found.push(each.clone()),
        }
    }
    found.iter().fold(Exact::of(0, 1), |all, each| all.plus(each))
}
