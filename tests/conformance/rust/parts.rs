//! Parts of a bundle: a table of a few attributes, picked by a coin, answered by a subset.

use crate::channel::{larger, subset, Keys, Subset, MAX_INPUTS, WORD};
use crate::draw::{packed, part, Source};
use crate::pack::{fit, must, Answer};

pub struct Parts {
    /// Readings of each attribute, missing included.
    pub readings: Vec<usize>,
    /// The attributes of each part, from 0.
    pub members: Vec<Vec<usize>>,
    pub sets: Vec<Subset>,
    shares: Vec<u64>,
}

impl Parts {
    pub fn read(keys: &Keys) -> Answer<Parts> {
        let (readings, orders) = (keys.ints("readings")?, keys.ints("orders")?);
        let (members, shares) = (keys.ints("members")?, keys.ints("shares")?);
        let (size, held) = (keys.ints("subset")?, keys.ints("held")?);
        must((2..=32).contains(&readings.len()), "2 to 32 attributes")?;
        must(readings.iter().all(|n| (2..=MAX_INPUTS as u64).contains(n)), "two readings and more")?;
        let product = readings.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        must(product.is_some_and(|product| product <= 1 << 62), "at most 2^62 combinations")?;
        must(orders.len() <= 4096 && orders.iter().all(|&n| n <= 4), "tables of one to four")?;
        must([shares.len(), size.len(), held.len()] == [orders.len(); 3], "three integers per part")?;
        must(orders.iter().sum::<u64>() == members.len() as u64, "members of every part")?;
        let all: u128 = shares.iter().map(|&share| share as u128).sum();
        must(all == WORD as u128, "shares of 2^32")?;
        let attributes = readings.len() as u64;
        must(members.iter().all(|&n| n <= attributes), "attributes that there are")?;
        let readings: Vec<usize> = readings.into_iter().map(fit).collect();
        let mut rest = members.iter().map(|&n| fit::<u64>(n - 1));
        let members: Vec<Vec<usize>> = orders.iter().map(|&n| rest.by_ref().take(fit(n)).collect()).collect();
        must(members.iter().all(|own| own.windows(2).all(|pair| pair[0] < pair[1])), "attributes that rise")?;
        let mut sorted = members.clone();
        sorted.sort();
        must(sorted.windows(2).all(|pair| pair[0] != pair[1]), "parts must differ")?;
        must((0..readings.len()).all(|n| members.iter().any(|own| own.contains(&n))), "every attribute")?;
        let mut counts = members.len() as u128;
        let mut sets = vec![];
        for (own, (&size, &held)) in members.iter().zip(size.iter().zip(&held)) {
            let cells: u128 = own.iter().map(|&member| readings[member] as u128).product();
            must(cells <= MAX_INPUTS as u128, "too many cells of a part")?;
            counts += cells;
            sets.push(subset(fit(cells as u64), size, held)?);
        }
        must(counts <= 1 << 18, "at most 2^18 counts")?;
        Ok(Parts { readings, members, sets, shares })
    }

    /// The largest ratio of any part.
    pub fn ratio(&self) -> (u128, u128) {
        self.sets.iter().map(Subset::odds).fold((1, 1), larger)
    }

    pub fn part(&self, toss: u64) -> usize {
        part(self.shares.iter().copied(), toss).0
    }

    fn head(&self) -> usize {
        if self.sets.len() <= 256 { 1 } else { 2 }
    }

    fn width(&self) -> usize {
        self.head() + self.sets.iter().map(|set| set.inputs.div_ceil(8)).max().unwrap()
    }

    pub fn draw(&self, part: usize, cell: usize, source: &mut Source) -> Answer<Vec<u8>> {
        let set = &self.sets[part];
        let mut bytes = (part as u16).to_le_bytes()[..self.head()].to_vec();
        bytes.extend(packed(&set.chosen(cell, &source.attempt(&set.limits())?)));
        bytes.resize(self.width(), 0);
        Ok(bytes)
    }

    /// The part that a symbol is about, and the cells that it holds.
    pub fn told(&self, symbol: &[u8]) -> Answer<(usize, Vec<bool>)> {
        must(symbol.len() == self.width(), "a symbol of another length")?;
        let (head, rest) = symbol.split_at(self.head());
        let part = head.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
        must(part < self.sets.len(), "no part")?;
        let set = &self.sets[part];
        let bit = |i: usize| rest[i / 8] >> (i % 8) & 1 == 1;
        must(!(set.inputs..8 * rest.len()).any(bit), "bits after the last")?;
        let held: Vec<bool> = (0..set.inputs).map(bit).collect();
        must(held.iter().filter(|&&is_in| is_in).count() == set.size, "a set of another size")?;
        Ok((part, held))
    }
}
