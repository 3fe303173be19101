//! Slots of a rotating survey and the coin of a bundle, by BLAKE2b (RFC 7693) with the seed as its key.

use crate::pack::{fit, must, Answer};

const IV: [u64; 8] = [
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
];
/// A digit for a word: the order in which a round reads the block.
const SIGMA: [&str; 10] = [
    "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
    "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
];

fn mix(v: &mut [u64; 16], places: [usize; 4], x: u64, y: u64) {
    let [a, b, c, d] = places;
    for (word, turns) in [(x, [32, 24]), (y, [16, 63])] {
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(word);
        v[d] = (v[d] ^ v[a]).rotate_right(turns[0]);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(turns[1]);
    }
}

fn compress(h: &mut [u64; 8], block: &[u8; 128], so_far: u64, last: bool) {
    let word = |part: &[u8]| u64::from_le_bytes(part.try_into().unwrap());
    let m: Vec<u64> = block.chunks(8).map(word).collect();
    let mut v = [0; 16];
    v[..8].copy_from_slice(h);
    v[8..].copy_from_slice(&IV);
    v[12] ^= so_far;
    if last {
        v[14] = !v[14];
    }
    for round in 0..12 {
        let digits = SIGMA[round % 10].chars().map(|c| c.to_digit(16).unwrap());
        let order: Vec<u64> = digits.map(|digit| m[fit(digit as i128)]).collect();
        for i in 0..4 {
            mix(&mut v, [i, 4 + i, 8 + i, 12 + i], order[2 * i], order[2 * i + 1]);
        }
        for i in 0..4 {
            let places = [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4];
            mix(&mut v, places, order[8 + 2 * i], order[9 + 2 * i]);
        }
    }
    for i in 0..8 {
        h[i] ^= v[i] ^ v[8 + i];
    }
}

/// BLAKE2b of so many bytes, the first eight of them read big-endian.
fn drawn(seed: &[u8], data: &[u8], bytes: u64) -> u64 {
    let mut h = IV;
    h[0] ^= 0x0101_0000 ^ (seed.len() as u64) << 8 ^ bytes;
    let mut block = [0; 128];
    block[..seed.len()].copy_from_slice(seed);
    compress(&mut h, &block, 128, false);
    block = [0; 128];
    block[..data.len()].copy_from_slice(data);
    compress(&mut h, &block, 128 + data.len() as u64, true);
    u64::from_be_bytes(h[0].to_le_bytes())
}

/// What the public coin of a device shows that picks the part of a bundle.
pub fn toss(seed: &[u8], place: u64) -> Answer<u64> {
    must(seed.len() == 32, "a seed of 32 bytes")?;
    Ok(drawn(seed, &[b"part".as_slice(), &place.to_be_bytes()].concat(), 4) >> 32)
}

/// The round within a cycle that the holder of a seed answers.
pub fn slot(seed: &[u8], cycle: u32, rotation: u64) -> Answer<u64> {
    must(seed.len() == 32, "a seed of 32 bytes")?;
    let left_over = (u64::MAX % rotation + 1) % rotation;
    let mut place = 0u32;
    loop {
        let word = drawn(seed, &[cycle.to_be_bytes(), place.to_be_bytes()].concat(), 8);
        // All words but the last few, which are too few for one more of each remainder.
        if word <= u64::MAX - left_over {
            return Ok(word % rotation);
        }
        place += 1;
    }
}
