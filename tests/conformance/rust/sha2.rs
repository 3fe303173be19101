//! SHA-256 and SHA-512 (FIPS 180-4); their constants are the first bits of roots of primes.

use crate::big::Big;

fn primes(n: usize) -> Vec<u32> {
    (2..).filter(|p| (2..*p).all(|d| p % d != 0)).take(n).collect()
}

/// The first bits after the point of the square or cubic root of a prime, by search.
fn root(prime: u32, degree: usize, bits: usize) -> u64 {
    let (mut low, mut high) = (0u128, 8 << bits);
    let target = Big::of(prime as u128).shl(degree * bits);
    while high - low > 1 {
        let middle = (low + high) / 2;
        let factor = Big::of(middle);
        let power = (1..degree).fold(factor.clone(), |product, _| product.times(&factor));
        if power <= target { low = middle } else { high = middle }
    }
    (low & ((1 << bits) - 1)) as u64
}

fn constants(rounds: usize, bits: usize) -> (Vec<u64>, Vec<u64>) {
    let roots = |n, degree| primes(n).into_iter().map(|p| root(p, degree, bits)).collect();
    (roots(8, 2), roots(rounds, 3))
}

thread_local! {
    static SHORT: (Vec<u64>, Vec<u64>) = constants(64, 32);
    static LONG: (Vec<u64>, Vec<u64>) = constants(80, 64);
}

/// The message, a bit, zeros, and its length in bits, up to whole blocks.
fn padded(data: &[u8], block: usize) -> Vec<u8> {
    let mut message = data.to_vec();
    message.push(0x80);
    message.resize((message.len() + block / 8).next_multiple_of(block), 0);
    let end = message.len();
    message[end - 8..].copy_from_slice(&(8 * data.len() as u64).to_be_bytes());
    message
}

macro_rules! sha2 {
    ($name:ident, $word:ty, $bytes:expr, $rounds:expr, $constants:ident, $small:expr, $large:expr) => {
        pub fn $name(data: &[u8]) -> Vec<u8> {
            let (start, keys) = $constants.with(|c| c.clone());
            let mut state: Vec<$word> = start.into_iter().map(|w| w as $word).collect();
            for block in padded(data, 16 * $bytes).chunks(16 * $bytes) {
                let word = |part: &[u8]| <$word>::from_be_bytes(part.try_into().unwrap());
                let mut w: Vec<$word> = block.chunks($bytes).map(word).collect();
                for i in 16..$rounds {
                    let [[a, b, c], [d, e, f]] = $small;
                    let (x, y) = (w[i - 15], w[i - 2]);
                    let s0 = x.rotate_right(a) ^ x.rotate_right(b) ^ x >> c;
                    let s1 = y.rotate_right(d) ^ y.rotate_right(e) ^ y >> f;
                    w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
                }
                let mut v = state.clone();
                for i in 0..$rounds {
                    let [[a, b, c], [d, e, f]] = $large;
                    let s0 = v[0].rotate_right(a) ^ v[0].rotate_right(b) ^ v[0].rotate_right(c);
                    let s1 = v[4].rotate_right(d) ^ v[4].rotate_right(e) ^ v[4].rotate_right(f);
                    let choice = v[4] & v[5] ^ !v[4] & v[6];
                    let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
                    let t1 = [s1, choice, keys[i] as $word, w[i]].into_iter().fold(v[7], <$word>::wrapping_add);
                    v[3] = v[3].wrapping_add(t1);
                    v[7] = t1.wrapping_add(s0).wrapping_add(majority);
                    v.rotate_right(1);
                }
                state.iter_mut().zip(v).for_each(|(old, new)| *old = old.wrapping_add(new));
            }
            state.into_iter().flat_map(<$word>::to_be_bytes).collect()
        }
    };
}

sha2!(sha256, u32, 4, 64, SHORT, [[7, 18, 3], [17, 19, 10]], [[2, 13, 22], [6, 11, 25]]);
sha2!(sha512, u64, 8, 80, LONG, [[1, 8, 7], [19, 61, 6]], [[28, 34, 39], [14, 18, 41]]);
