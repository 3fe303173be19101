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
    /// Classes of each part's readings; 1 where it is a table.
    classes: Vec<usize>,
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
        let interacts = keys.has("classes");
        let classes = if interacts { keys.ints("classes")? } else { vec![1; orders.len()] };
        must(!interacts || classes.iter().any(|&g| g > 1), "classes of an interaction")?;
        let lengths = [shares.len(), size.len(), held.len(), classes.len()];
        must(lengths == [orders.len(); 4], "integers of every part")?;
        must(orders.iter().sum::<u64>() == members.len() as u64, "members of every part")?;
        let all: u128 = shares.iter().map(|&share| share as u128).sum();
        must(all == WORD as u128, "shares of 2^32")?;
        let attributes = readings.len() as u64;
        must(members.iter().all(|&n| n <= attributes), "attributes that there are")?;
        let readings: Vec<usize> = readings.into_iter().map(fit).collect();
        let mut rest = members.iter().map(|&n| fit::<u64>(n - 1));
        let members: Vec<Vec<usize>> = orders.iter().map(|&n| rest.by_ref().take(fit(n)).collect()).collect();
        must(members.iter().all(|own| own.windows(2).all(|pair| pair[0] < pair[1])), "attributes that rise")?;
        let mut sorted: Vec<_> = members.iter().zip(&classes).map(|(own, &g)| (own.clone(), g > 1)).collect();
        sorted.sort();
        must(sorted.windows(2).all(|pair| pair[0] != pair[1]), "parts must differ")?;
        must((0..readings.len()).all(|n| members.iter().any(|own| own.contains(&n))), "every attribute")?;
        let mut counts = members.len() as u128;
        let mut sets = vec![];
        for ((own, &g), (&size, &held)) in members.iter().zip(&classes).zip(size.iter().zip(&held)) {
            let cells: u128 = own.iter().map(|&member| readings[member] as u128).product();
            must(cells <= MAX_INPUTS as u128, "too many cells of a part")?;
            counts += cells;
            let whole = own.len() == 2 && own.iter().all(|&member| readings[member] as u64 % g == 0);
            must(g == 1 || whole && (size as u128 * g as u128) % cells == 0, "whole classes of two attributes")?;
            sets.push(subset(fit(cells as u64), size, held)?);
        }
        must(counts <= 1 << 18, "at most 2^18 counts")?;
        let classes = classes.into_iter().map(fit).collect();
        Ok(Parts { readings, members, sets, classes, shares })
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
        let held = match self.classes[part] {
            1 => set.chosen(cell, &source.attempt(&set.limits())?),
            g => latin(set, self.shape(part), g, cell, source)?,
        };
        bytes.extend(packed(&held));
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
        let own: Vec<i128> = held.iter().map(|&is_in| is_in.into()).collect();
        must(self.agrees(part, &own, 1), "a set of another size")?;
        Ok((part, held))
    }

    fn shape(&self, part: usize) -> (usize, usize) {
        (self.readings[self.members[part][0]], self.readings[self.members[part][1]])
    }

    /// Whether the counts of a part's cells can be those of n sets, of an interaction in every row and column.
    pub fn agrees(&self, part: usize, cells: &[i128], n: i128) -> bool {
        let due = n * self.sets[part].size as i128;
        if self.classes[part] == 1 {
            return cells.iter().sum::<i128>() == due;
        }
        let (rows, columns) = self.shape(part);
        let row = |u: usize| cells[u * columns..][..columns].iter().sum::<i128>();
        let column = |v: usize| cells.iter().skip(v).step_by(columns).sum::<i128>();
        (0..rows).all(|u| row(u) * rows as i128 == due)
            && (0..columns).all(|v| column(v) * columns as i128 == due)
    }

    /// Whether parts tell a table of at most four attributes: of each component a table that has it, or itself.
    pub fn tell(&self, table: &[usize]) -> bool {
        (1..1usize << table.len()).all(|picked| {
            let own: Vec<_> = (0..table.len()).filter(|i| picked >> i & 1 == 1).map(|i| table[i]).collect();
            self.members.iter().zip(&self.classes).any(|(part, &g)| {
                if g == 1 { own.iter().all(|member| part.contains(member)) } else { own == *part }
            })
        })
    }
}

/// A latin set: classes of rows and columns in random order, turned to where the cell is due.
fn latin(set: &Subset, (r, c): (usize, usize), g: usize, x: usize, source: &mut Source) -> Answer<Vec<bool>> {
    let band = set.size * g / set.inputs;
    let picks = (2..=r).rev().chain((2..=c).rev()).map(|m| m as u64);
    let bounds = picks.chain([(band * (g - band)) as u64]);
    let limits: Vec<u64> = std::iter::once(WORD).chain(bounds.map(|m| WORD - WORD % m)).collect();
    let words = source.attempt(&limits)?;
    let (mut rows, mut columns): (Vec<_>, Vec<_>) = ((0..r).collect(), (0..c).collect());
    for (i, last) in (1..r).rev().enumerate() {
        rows.swap(last, fit(words[1 + i] % (last as u64 + 1)));
    }
    for (i, last) in (1..c).rev().enumerate() {
        columns.swap(last, fit(words[r + i] % (last as u64 + 1)));
    }
    let word: usize = fit(words[r + c - 1]);
    let due = if words[0] < set.held { word % band } else { band + word % (g - band) };
    let class = |z: usize| (rows[z / c] + columns[z % c]) % g;
    Ok((0..set.inputs).map(|z| (class(z) + due + g - class(x)) % g < band).collect())
}
