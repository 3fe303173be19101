//! Sets of items: one random subset of items and dummies for the whole set.

use crate::big::Big;
use crate::channel::MAX_TOTAL;
use crate::draw::{packed, Source};
use crate::pack::{fit, must, Answer};

pub struct Items {
    pub inputs: usize,
    pub most: usize,
    size: usize,
    held: u64,
    /// The largest ratio: e^epsilon.
    pub odds: (Big, Big),
}

/// How many subsets of k of n there are.
fn choose(n: usize, k: usize) -> Big {
    let step = |found: Big, i: usize| {
        let factor = Big::of((n + i - k) as u128);
        found.times(&factor).over_small(u32::try_from(i).expect("a small number"))
    };
    if k > n { Big::of(0) } else { (1..=k).fold(Big::of(1), step) }
}

/// A source's bytes, read so many at a time.
struct Ahead<'a, 'b> {
    source: &'b mut Source<'a>,
    left: Vec<u8>,
    size: usize,
}

impl Ahead<'_, '_> {
    fn take(&mut self, n: usize) -> Answer<Vec<u8>> {
        if n > self.left.len() {
            self.left.extend(self.source.take(n.max(self.size))?);
        }
        Ok(self.left.drain(..n).collect())
    }

    fn word(&mut self, n: usize) -> Answer<u64> {
        Ok(self.take(n)?.iter().rev().fold(0, |word, &b| word << 8 | b as u64))
    }

    fn below(&mut self, bound: u64) -> Answer<usize> {
        loop {
            let word = self.word(4)?;
            if word < (1 << 32) / bound * bound {
                return Ok(fit(word % bound));
            }
        }
    }
}

impl Items {
    pub fn of(inputs: usize, most: u64, size: u64, held: u64) -> Answer<Items> {
        must(inputs >= 2 && most <= 256 && inputs + fit::<u64>(most) <= 1 << 13, "too many items")?;
        must(size <= inputs as u64, "a set of at most K cells")?;
        let (most, size) = (fit(most), fit(size));
        let missed = choose(inputs, size);
        let meeting = choose(inputs + most, size).minus(&missed);
        let rest = MAX_TOTAL - held as u128;
        let odds = (missed.times(&Big::of(held as u128)), meeting.times(&Big::of(rest)));
        must(odds.0 > odds.1, "what meets the set must be favoured")?;
        Ok(Items { inputs, most, size, held, odds })
    }

    pub fn bins(&self) -> usize {
        self.inputs + self.most
    }

    /// The two weights that a filter reads, whatever the symbol.
    pub fn weights(&self) -> (u128, u128) {
        let near = 1 << 62;
        let far = self.odds.1.times(&Big::of(near)).divided(&self.odds.0).0;
        (near, far.small().expect("less than near"))
    }

    pub fn column(&self, held: &[bool]) -> Answer<Vec<u128>> {
        must(held.iter().filter(|&&is_in| is_in).count() == self.size, "a set of another size")?;
        let (near, far) = self.weights();
        Ok(vec![near, far])
    }

    /// How many cells of the set a symbol that meets it has: a number of [0, 1), as long as it must be.
    fn hits(&self, source: &mut Ahead) -> Answer<usize> {
        let mut sums = vec![Big::of(0)];
        for i in 1..=self.most.min(self.size) {
            let weight = choose(self.most, i).times(&choose(self.inputs, self.size - i));
            sums.push(sums[i - 1].plus(&weight));
        }
        let total = sums.last().expect("one sum and more");
        let (mut number, mut bits) = (Big::of(source.word(8)? as u128), 64);
        loop {
            let (low, high) = (number.times(total), number.plus(&Big::of(1)).times(total));
            let inside = (1..sums.len()).find(|&i| {
                sums[i - 1].shl(bits) <= low && high <= sums[i].shl(bits)
            });
            if let Some(i) = inside {
                return Ok(i);
            }
            number = number.shl(8).plus(&Big::of(source.word(1)? as u128));
            bits += 8;
        }
    }

    pub fn draw(&self, items: &[usize], source: &mut Source) -> Answer<Vec<u8>> {
        let mut source = Ahead { source, left: vec![], size: 16 + 4 * self.size };
        let meeting = self.hits(&mut source)?;
        let hits = if source.word(8)? >> 1 < self.held { meeting } else { 0 };
        let dummies = self.inputs..self.bins() - items.len();
        let (mine, others): (Vec<usize>, Vec<usize>) =
            (0..self.bins()).partition(|cell| items.contains(cell) || dummies.contains(cell));
        let mut chosen = vec![false; self.bins()];
        for step in 0..self.size {
            let (from, bound) = if step < hits {
                (&mine, self.most + step + 1 - hits)
            } else {
                (&others, self.inputs + step + 1 - self.size)
            };
            let cell = from[source.below(bound as u64)?];
            let joins = if chosen[cell] { from[bound - 1] } else { cell };
            chosen[joins] = true;
        }
        Ok(packed(&chosen))
    }
}
