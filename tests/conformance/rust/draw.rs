//! Draws: from the stream of random bytes to the exact symbol.

use crate::big::Big;
use crate::channel::{labels, Channel, Kind, Levels, Subset, COIN, WORD};
use crate::pack::{fit, hex, must, Answer};

pub struct Source<'a> {
    data: &'a [u8],
    pub used: usize,
}

#[derive(Clone, PartialEq)]
pub enum Symbol {
    Number(u64),
    Set(Vec<u8>),
}

/// What a survey reads the values as: a number, items, or a part and the cell of its table.
pub enum Input {
    One(usize),
    Items(Vec<usize>),
    Cell(usize, usize),
}

impl Input {
    /// In words, for a channel of so many inputs.
    pub fn words(&self, inputs: usize) -> String {
        match self {
            Input::One(x) => x.to_string(),
            Input::Items(items) => hex(&packed(&(0..inputs).map(|i| items.contains(&i)).collect::<Vec<_>>())),
            Input::Cell(part, cell) => format!("{part}:{cell}"),
        }
    }
}

impl<'a> Source<'a> {
    pub fn of(data: &'a [u8]) -> Source<'a> {
        Source { data, used: 0 }
    }

    pub fn take(&mut self, n: usize) -> Answer<&'a [u8]> {
        must(n <= self.data.len() - self.used, "random bytes that end too early")?;
        self.used += n;
        Ok(&self.data[self.used - n..self.used])
    }

    fn word(&mut self, bytes: usize) -> Answer<u64> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |n, &b| n << 8 | b as u64))
    }

    /// A uniform integer below a total of less than 2^63.
    pub fn below(&mut self, total: u64) -> Answer<u64> {
        let bytes = if total <= WORD { 4 } else { 8 };
        let limit = (1u128 << (8 * bytes)) / total as u128 * total as u128;
        loop {
            let word = self.word(bytes)?;
            if (word as u128) < limit {
                return Ok(word % total);
            }
        }
    }

    /// True with probability part / whole.
    pub fn coin(&mut self, part: &Big, whole: &Big) -> Answer<bool> {
        let bits = whole.bits();
        if bits <= 63 {
            return Ok((self.below(whole.small().unwrap() as u64)? as u128) < part.small().unwrap());
        }
        let bytes = bits.div_ceil(8);
        loop {
            let draw = Big::of_bytes(self.take(bytes)?).shr(8 * bytes - bits);
            if draw < *whole {
                return Ok(draw < *part);
            }
        }
    }

    /// An attempt: as many words as there are limits, all below theirs.
    pub fn attempt(&mut self, limits: &[u64]) -> Answer<Vec<u64>> {
        loop {
            let start = self.used;
            let data = self.take(4 * limits.len())?;
            let mut words = Source { data, used: 0 };
            let found: Vec<u64> = limits.iter().map(|_| words.word(4)).collect::<Answer<_>>()?;
            debug_assert!(self.used == start + words.used);
            if found.iter().zip(limits).all(|(word, limit)| word < limit) {
                return Ok(found);
            }
        }
    }
}

pub fn packed(held: &[bool]) -> Vec<u8> {
    let byte = |part: &[bool]| part.iter().enumerate().fold(0, |b, (i, &is_in)| b | (is_in as u8) << i);
    held.chunks(8).map(byte).collect()
}

impl Subset {
    pub fn limits(&self) -> Vec<u64> {
        let (k, d) = (self.inputs as u64, self.size as u64);
        std::iter::once(WORD).chain((k - d..k).map(|m| WORD - WORD % m)).collect()
    }

    pub fn chosen(&self, x: usize, words: &[u64]) -> Vec<bool> {
        let inside = words[0] < self.held;
        let mut held = vec![false; self.inputs];
        for (i, word) in words[1..].iter().enumerate().skip(usize::from(inside)) {
            let j = self.inputs - 1 - self.size + i;
            let label = fit(*word % (j as u64 + 1));
            let joins = if held[label] { j } else { label };
            held[joins] = true;
        }
        held[self.inputs - 1] = held[x];
        held[x] = inside;
        held
    }
}

/// The part of which the running sums hold the number, and what is left of the number in it.
pub fn part(sizes: impl Iterator<Item = u64>, mut number: u64) -> (usize, u64) {
    for (i, size) in sizes.enumerate() {
        if number < size {
            return (i, number);
        }
        number -= size;
    }
    unreachable!("a number beyond all parts")
}

impl Channel {
    pub fn draw(&self, input: &Input, source: &mut Source) -> Answer<Symbol> {
        let x = match (&self.kind, input) {
            (Kind::Items(items), Input::Items(own)) => return items.draw(own, source).map(Symbol::Set),
            (Kind::Parts(parts), Input::Cell(part, cell)) => {
                return parts.draw(*part, *cell, source).map(Symbol::Set);
            }
            (_, Input::One(x)) => *x,
            _ => return Err("another input than the channel's"),
        };
        let set = match &self.kind {
            Kind::Subset(set) => set.chosen(x, &source.attempt(&set.limits())?),
            Kind::Unary { held, other } => {
                let words = source.attempt(&vec![WORD; self.inputs])?;
                let rate = |y: usize| if y == x { *held } else { *other };
                words.iter().enumerate().map(|(y, word)| word % COIN < rate(y)).collect()
            }
            Kind::SetLevels { levels, shares, sets } => set_levels(levels, shares, sets, x, source)?,
            Kind::Tree { levels, shares, sets } => {
                let (level, _) = part(shares.iter().copied(), source.below(WORD)?);
                let own = &sets[level];
                let held = own.chosen(levels.of[level][x], &source.attempt(&own.limits())?);
                let mut bytes = vec![level as u8];
                bytes.extend(packed(&held));
                bytes.resize(1 + self.inputs.div_ceil(8), 0);
                return Ok(Symbol::Set(bytes));
            }
            Kind::Orbits(orbits) => return Ok(Symbol::Set(orbits.draw(x, source)?)),
            _ => return Ok(Symbol::Number(self.select(x as u64, source.below(self.total)?))),
        };
        Ok(Symbol::Set(packed(&set)))
    }

    /// The symbol of a draw d, 0 <= d < T.
    fn select(&self, x: u64, d: u64) -> u64 {
        let or = |symbol: u64, count: u64, own: u64| if symbol < count { symbol } else { own };
        match &self.kind {
            Kind::Grr { u, .. } => or(d / u, self.inputs as u64, x),
            Kind::Category { sizes, o, .. } => {
                or(d / o, sizes.len() as u64, labels(sizes)[fit(x)] as u64)
            }
            Kind::Pbgrr { sizes, u, o, .. } => pbgrr(sizes, u, o, x, d),
            Kind::Dense { outputs, weights } => {
                let row = weights.chunks(*outputs).nth(fit(x)).unwrap();
                part(row.iter().copied(), d).0 as u64
            }
            Kind::Levels { levels, t, u } => {
                let counts = levels.counts.iter().map(|&n| n as u64);
                let totals = counts.clone().zip(t.iter().zip(u)).map(|(n, (t, u))| t + (n - 1) * u);
                let (j, rest) = part(totals, d);
                let first: u64 = counts.clone().take(j).sum();
                let own = levels.of[j][fit(x)] as u64;
                first + or(rest / u[j], levels.counts[j] as u64, own)
            }
            Kind::Hashing { pool, t, u } => {
                let each = t + (pool.q - 1) * u;
                let (seed, rest) = (d / each, d % each);
                seed * pool.q + or(rest / u, pool.q, pool.cell(seed, x))
            }
            _ => unreachable!("sets are drawn above"),
        }
    }
}

fn pbgrr(sizes: &[usize], u: &[u64], o: &[u64], x: u64, mut d: u64) -> u64 {
    let mut first = 0;
    for (&size, o) in sizes.iter().zip(o) {
        if d < size as u64 * o {
            return first + d / o;
        }
        d -= size as u64 * o;
        first += size as u64;
    }
    let c = labels(sizes)[fit(x)];
    let (begin, extra) = (sizes[..c].iter().sum::<usize>() as u64, u[c] - o[c]);
    if d < sizes[c] as u64 * extra { begin + d / extra } else { x }
}

fn set_levels(
    levels: &Levels,
    shares: &[u64],
    sets: &[Subset],
    x: usize,
    source: &mut Source,
) -> Answer<Vec<bool>> {
    let limits: Vec<u64> = std::iter::once(WORD).chain(sets.iter().flat_map(Subset::limits)).collect();
    let words = source.attempt(&limits)?;
    let (level, _) = part(shares.iter().copied(), words[0]);
    let mut held: Vec<bool> = (0..sets.len()).map(|j| j == level).collect();
    let mut at = 1;
    for (j, set) in sets.iter().enumerate() {
        let own = &words[at..at + 1 + set.size];
        at += own.len();
        if j == level {
            held.extend(set.chosen(levels.of[j][x], own));
        } else {
            held.extend(vec![false; set.inputs]);
        }
    }
    Ok(held)
}
