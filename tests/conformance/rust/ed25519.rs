//! Ed25519 (RFC 8032): whether a key signed a message. Nothing here is secret, and nothing takes constant time.

use crate::big::Big;
use crate::pack::{must, Answer};
use crate::sha2::sha512;

const MASK: u64 = (1 << 51) - 1;

/// A number modulo p = 2^255 - 19, five parts of 51 bits.
#[derive(Clone, Copy)]
struct Field([u64; 5]);

impl Field {
    const ZERO: Field = Field([0; 5]);
    const ONE: Field = Field([1, 0, 0, 0, 0]);

    fn small(n: u64) -> Field {
        Field([n, 0, 0, 0, 0])
    }

    fn of(bytes: &[u8; 32]) -> Field {
        let part = |i: usize| {
            let bit = |j: usize| (bytes[j / 8] as u64) >> (j % 8) & 1;
            (51 * i..51 * i + 51).rev().fold(0, |n, j| n << 1 | bit(j))
        };
        Field([part(0), part(1), part(2), part(3), part(4)])
    }

    fn carried(mut parts: [u128; 5]) -> Field {
        for _ in 0..2 {
            for i in 0..5 {
                let carry = parts[i] >> 51;
                parts[i] &= MASK as u128;
                parts[(i + 1) % 5] += if i == 4 { 19 * carry } else { carry };
            }
        }
        Field(parts.map(|n| n as u64))
    }

    fn plus(self, other: Field) -> Field {
        Field::carried(std::array::from_fn(|i| self.0[i] as u128 + other.0[i] as u128))
    }

    fn minus(self, other: Field) -> Field {
        let p16 = |i: usize| if i == 0 { (MASK as u128 - 18) << 4 } else { (MASK as u128) << 4 };
        Field::carried(std::array::from_fn(|i| self.0[i] as u128 + p16(i) - other.0[i] as u128))
    }

    fn times(self, other: Field) -> Field {
        let mut parts = [0u128; 5];
        for i in 0..5 {
            for j in 0..5 {
                let product = self.0[i] as u128 * other.0[j] as u128;
                parts[(i + j) % 5] += if i + j >= 5 { 19 * product } else { product };
            }
        }
        Field::carried(parts)
    }

    /// This to the power whose bits below `ones_to` are all one but those listed.
    fn power(self, bits: usize, zeros: &[usize]) -> Field {
        (0..bits).rev().fold(Field::ONE, |found, bit| {
            let square = found.times(found);
            if zeros.contains(&bit) { square } else { square.times(self) }
        })
    }

    /// To the power p - 2 = 2^255 - 21.
    fn inverse(self) -> Field {
        self.power(255, &[2, 4])
    }

    /// The bytes of the number below p.
    fn bytes(self) -> [u8; 32] {
        let whole = self.0.iter().rev().fold(Big::of(0), |n, &part| n.shl(51).plus(&Big::of(part as u128)));
        let p = Big::of(1).shl(255).minus(&Big::of(19));
        let rest = whole.divided(&p).1;
        std::array::from_fn(|i| rest.shr(8 * i).minus(&rest.shr(8 * i + 8).shl(8)).small().unwrap() as u8)
    }

    fn is(self, other: Field) -> bool {
        self.bytes() == other.bytes()
    }
}

/// x, y, z and x y / z of a point (x / z, y / z).
#[derive(Clone, Copy)]
struct Point([Field; 4]);

fn curve() -> Field {
    Field::ZERO.minus(Field::small(121_665)).times(Field::small(121_666).inverse())
}

impl Point {
    const ZERO: Point = Point([Field::ZERO, Field::ONE, Field::ONE, Field::ZERO]);

    fn of(bytes: &[u8; 32], d: Field) -> Answer<Point> {
        let y = Field::of(bytes);
        let mut plain = *bytes;
        plain[31] &= 127;
        must(y.bytes() == plain, "a point in another encoding")?;
        let square = y.times(y);
        let (u, v) = (square.minus(Field::ONE), square.times(d).plus(Field::ONE));
        let cube = v.times(v).times(v);
        // (p - 5) / 8 = 2^252 - 3
        let mut x = u.times(cube).times(u.times(cube).times(cube).times(v).power(252, &[1]));
        if !x.times(x).times(v).is(u) {
            // A root of -1: 2^((p - 1) / 4), (p - 1) / 4 = 2^253 - 5.
            x = x.times(Field::small(2).power(253, &[2]));
            must(x.times(x).times(v).is(u), "no point of the curve")?;
        }
        if x.bytes()[0] & 1 != bytes[31] >> 7 {
            must(!x.is(Field::ZERO), "no point of the curve")?;
            x = Field::ZERO.minus(x);
        }
        Ok(Point([x, y, Field::ONE, x.times(y)]))
    }

    fn plus(self, other: Point, d: Field) -> Point {
        let ([x1, y1, z1, t1], [x2, y2, z2, t2]) = (self.0, other.0);
        let a = y1.minus(x1).times(y2.minus(x2));
        let b = y1.plus(x1).times(y2.plus(x2));
        let c = t1.times(t2).times(d).times(Field::small(2));
        let z = z1.times(z2).times(Field::small(2));
        let (e, f, g, h) = (b.minus(a), z.minus(c), z.plus(c), b.plus(a));
        Point([e.times(f), g.times(h), f.times(g), e.times(h)])
    }

    fn times(self, scalar: &Big, d: Field) -> Point {
        (0..scalar.bits()).rev().fold(Point::ZERO, |found, bit| {
            let twice = found.plus(found, d);
            let odd = scalar.shr(bit) > scalar.shr(bit + 1).shl(1);
            if odd { twice.plus(self, d) } else { twice }
        })
    }

    fn bytes(self) -> [u8; 32] {
        let inverse = self.0[2].inverse();
        let (x, mut bytes) = (self.0[0].times(inverse), self.0[1].times(inverse).bytes());
        bytes[31] |= x.bytes()[0] << 7;
        bytes
    }
}

fn order() -> Big {
    let rest = Big::of(27_742_317_777_372_353_535_851_937_790_883_648_493);
    Big::of(1).shl(252).plus(&rest)
}

/// Refuse a signature that is not the key's, and a key that anybody can sign for.
pub fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Answer<()> {
    let d = curve();
    let point = Point::of(key, d)?;
    let small = point.times(&Big::of(8), d).bytes() == Point::ZERO.bytes();
    must(!small, "a key of small order")?;
    let (r, s) = signature.split_at(32);
    let (s, order) = (Big::of_bytes(s), order());
    must(s < order, "a signature beyond the order")?;
    let hash = sha512(&[r, key, message].concat());
    let k = Big::of_bytes(&hash).divided(&order).1;
    let mut base = Field::small(4).times(Field::small(5).inverse()).bytes();
    base[31] &= 127;
    let [x, y, z, t] = point.0;
    let away = Point([Field::ZERO.minus(x), y, z, Field::ZERO.minus(t)]);
    let found = Point::of(&base, d)?.times(&s, d).plus(away.times(&k, d), d);
    must(found.bytes() == r, "another signature")
}
