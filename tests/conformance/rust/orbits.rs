//! Orbits: their rules, their largest ratio, which sets are theirs, and a way to draw them.

use crate::channel::{labels, larger, sizes, Keys, MAX_INPUTS};
use crate::draw::{packed, Source};
use crate::pack::{fit, must, Answer};

pub struct Orbit {
    /// Counts of every class, each falling.
    counts: Vec<Vec<u64>>,
    missing: bool,
    inside: Vec<u128>,
    outside: Vec<u128>,
    absent: u128,
}

pub struct Orbits {
    pub inputs: usize,
    sizes: Vec<usize>,
    /// Sizes of the classes, the largest first, and the class of each category.
    classes: Vec<usize>,
    class_of: Vec<usize>,
    orbits: Vec<Orbit>,
    has_missing: bool,
    /// Bytes of a category's name and of its values, where symbols are short.
    short: Option<(usize, usize)>,
}

impl Orbits {
    pub fn read(keys: &Keys, short: bool) -> Answer<Orbits> {
        let sizes = sizes(&keys.ints("sizes")?)?;
        let values: usize = sizes.iter().sum();
        must((2..=MAX_INPUTS).contains(&values), "values out of range")?;
        let mut classes = sizes.clone();
        classes.sort_by(|a, b| b.cmp(a));
        classes.dedup();
        let class_of: Vec<usize> =
            sizes.iter().map(|size| classes.iter().position(|s| s == size).unwrap()).collect();
        let many: Vec<usize> =
            (0..classes.len()).map(|g| class_of.iter().filter(|&&c| c == g).count()).collect();
        let whole = |name: &str| -> Answer<Vec<u64>> {
            let items = keys.value(name)?.array()?;
            items.iter().map(|n| Ok(n.int(0, 1 << 62)? as u64)).collect()
        };
        let (counts, missing, absent) = (whole("counts")?, whole("missing")?, whole("absent")?);
        let (inside, outside) = (keys.ints("inside")?, keys.ints("outside")?);
        let (n, k) = (missing.len(), classes.len());
        must((1..=64).contains(&n) && absent.len() == n, "1 to 64 orbits")?;
        must([inside.len(), outside.len()] == [n * k; 2], "two weights per class and orbit")?;
        must(counts.len() == n * sizes.len(), "a count per category and orbit")?;
        must(missing.iter().all(|&flag| flag <= 1), "missing is 0 or 1")?;
        let unit = keys.int("unit")?;
        must(unit <= 1000, "a unit of at most 1000")?;
        let steps = values as u128 * unit as u128;
        let total = (unit as u128) << (62 - (128 - steps.leading_zeros()));
        let has_missing = absent.iter().any(|&a| a > 0);
        let held: Vec<u128> = (0..k).map(|g| (classes[g] * many[g]) as u128).collect();
        let most = total * held.iter().max().unwrap();
        let mut orbits = vec![];
        for t in 0..n {
            let mut rest = &counts[t * sizes.len()..];
            let mut own = vec![];
            for g in 0..k {
                let (part, after) = rest.split_at(many[g]);
                let falls = part.windows(2).all(|pair| pair[0] >= pair[1]);
                must(falls && part[0] <= classes[g] as u64, "counts must fall")?;
                own.push(part.to_vec());
                rest = after;
            }
            let row = |from: &[u64]| from[t * k..(t + 1) * k].iter().map(|&w| w as u128).collect();
            let orbit = Orbit {
                counts: own,
                missing: missing[t] == 1,
                inside: row(&inside),
                outside: row(&outside),
                absent: absent[t] as u128,
            };
            let least = if has_missing { orbit.absent } else { 1 };
            let weights = [&orbit.inside[..], &orbit.outside, &[least]].concat();
            let within = weights.iter().all(|&w| 1 <= w && w <= most);
            must(within, "weights within 1 to the total")?;
            must(!orbit.missing || has_missing, "missing where there is none")?;
            orbits.push(orbit);
        }
        for (i, one) in orbits.iter().enumerate() {
            let twice = orbits[..i].iter().any(|o| o.counts == one.counts && o.missing == one.missing);
            must(!twice, "an orbit twice")?;
        }
        for g in 0..k {
            let rows: u128 = orbits.iter().map(|orbit| orbit.row(g, held[g])).sum();
            must(rows == held[g] * total, "rows must sum to the total")?;
        }
        let absent: u128 = orbits.iter().map(|orbit| orbit.absent).sum();
        must(!has_missing || absent == total, "missing must sum to the total")?;
        let mut found = Orbits {
            inputs: values + usize::from(has_missing),
            sizes,
            classes,
            class_of,
            orbits,
            has_missing,
            short: None,
        };
        if short {
            found.shorten()?;
        }
        Ok(found)
    }

    fn shorten(&mut self) -> Answer<()> {
        let mut largest = 0;
        for orbit in &self.orbits {
            let some = |part: &Vec<u64>| part.iter().filter(|&&n| n > 0).count();
            let of: Vec<usize> = orbit.counts.iter().map(some).collect();
            must(of.iter().sum::<usize>() == 1, "values of one category")?;
            largest = largest.max(self.classes[of.iter().position(|&n| n == 1).unwrap()]);
        }
        let name = if self.sizes.len() <= 256 { 1 } else { 2 };
        self.short = Some((name, largest.div_ceil(8)));
        Ok(())
    }

    /// The weights that some set of an orbit gives, per class, and last of missing.
    fn used(&self, orbit: &Orbit) -> Vec<Vec<u128>> {
        let mut found = vec![];
        for (g, part) in orbit.counts.iter().enumerate() {
            let held: u64 = part.iter().sum();
            let mut weights = vec![];
            weights.extend((held > 0).then_some(orbit.inside[g]));
            weights.extend((held < (self.classes[g] * part.len()) as u64).then_some(orbit.outside[g]));
            found.push(weights);
        }
        found.extend(self.has_missing.then_some(vec![orbit.absent]));
        found
    }

    pub fn ratio(&self) -> (u128, u128) {
        let of = |orbit: &Orbit| {
            let used = self.used(orbit).concat();
            (*used.iter().max().unwrap(), *used.iter().min().unwrap())
        };
        self.orbits.iter().map(of).fold((1, 1), larger)
    }

    /// The largest ratios of two values of a category of each class, and of two of two categories.
    pub fn ratios(&self) -> (Vec<(u128, u128)>, Vec<Vec<(u128, u128)>>) {
        let k = self.classes.len() + usize::from(self.has_missing);
        let (mut near, mut across) = (vec![(1, 1); k], vec![vec![(1, 1); k]; k]);
        for orbit in &self.orbits {
            let used = self.used(orbit);
            let ends: Vec<_> = used.iter().map(|u| (*u.iter().max().unwrap(), *u.iter().min().unwrap())).collect();
            for g in 0..k {
                let size = *self.classes.get(g).unwrap_or(&1) as u64;
                let parts = orbit.counts.get(g).map_or(&[][..], |part| part);
                if parts.iter().any(|&n| 0 < n && n < size) {
                    near[g] = larger(near[g], ends[g]);
                }
                for h in 0..k {
                    across[g][h] = larger(across[g][h], (ends[g].0, ends[h].1));
                }
            }
        }
        (near, across)
    }

    /// The category of every input, missing last.
    pub fn categories(&self) -> Vec<usize> {
        let missing = self.has_missing.then_some(self.sizes.len());
        labels(&self.sizes).into_iter().chain(missing).collect()
    }

    /// The class of every category, that of missing last.
    pub fn classes(&self) -> Vec<usize> {
        self.class_of.iter().copied().chain(self.has_missing.then_some(self.classes.len())).collect()
    }

    /// A set for an input, by steps of this device's own: a weighted pick, shuffles, and subsets one by one.
    pub fn draw(&self, x: usize, source: &mut Source) -> Answer<Vec<u8>> {
        let values = labels(&self.sizes);
        let own = values.get(x).copied();
        let row = match own {
            Some(c) => self.outcomes(self.class_of[c]),
            None => self.orbits.iter().enumerate().map(|(t, o)| ((t, false, 0), o.absent)).collect(),
        };
        let mut d = source.below(row.iter().map(|(_, weight)| *weight).sum::<u128>() as u64)? as u128;
        let mut picked = row.iter();
        let (t, is_in, n) = loop {
            let (outcome, weight) = picked.next().expect("a draw below the sum");
            if d < *weight {
                break *outcome;
            }
            d -= weight;
        };
        let mut held = vec![false; self.inputs];
        for g in 0..self.classes.len() {
            let mut counts = self.orbits[t].counts[g].clone();
            let home = own.filter(|&c| self.class_of[c] == g);
            if home.is_some() {
                counts.remove(counts.iter().position(|&other| other == n).unwrap());
            }
            shuffle(&mut counts, source)?;
            for c in (0..self.sizes.len()).filter(|&c| self.class_of[c] == g && home != Some(c)) {
                let cells = (0..values.len()).filter(|&i| values[i] == c).collect();
                choose(cells, counts.pop().unwrap(), &mut held, source)?;
            }
            if let Some(c) = home {
                let others = (0..values.len()).filter(|&i| values[i] == c && i != x).collect();
                choose(others, n - is_in as u64, &mut held, source)?;
                held[x] = is_in;
            }
        }
        if let Some((name, bytes)) = self.short {
            let c = values[held.iter().position(|&is_in| is_in).unwrap()];
            let start: usize = self.sizes[..c].iter().sum();
            let mut symbol = vec![t as u8];
            symbol.extend(&(c as u16).to_le_bytes()[..name]);
            symbol.extend(packed(&held[start..start + self.sizes[c]]));
            symbol.resize(1 + name + bytes, 0);
            return Ok(symbol);
        }
        if self.has_missing {
            held[self.inputs - 1] = self.orbits[t].missing;
        }
        Ok(packed(&held))
    }

    /// For an input of a class: orbit, in or out, the count of its category, and their weight.
    fn outcomes(&self, g: usize) -> Vec<((usize, bool, u64), u128)> {
        let size = self.classes[g] as u64;
        let mut found = vec![];
        for (t, orbit) in self.orbits.iter().enumerate() {
            for &n in &orbit.counts[g] {
                found.push(((t, true, n), n as u128 * orbit.inside[g]));
                found.push(((t, false, n), (size - n) as u128 * orbit.outside[g]));
            }
        }
        found
    }

    /// The weights of a set for every input, in lowest terms; refused where no orbit has the set.
    pub fn column(&self, symbol: &[u8]) -> Answer<Vec<u128>> {
        let values = labels(&self.sizes);
        let bit = |bytes: &[u8], i: usize| bytes.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1);
        let (mut held, mut flag, mut number) = (vec![false; values.len()], false, None);
        if let Some((name, own)) = self.short {
            must(symbol.len() == 1 + name + own, "a symbol of another length")?;
            let category = symbol[1..1 + name].iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
            must(category < self.sizes.len() && usize::from(symbol[0]) < self.orbits.len(), "no orbit")?;
            let start: usize = self.sizes[..category].iter().sum();
            for i in 0..8 * own {
                let is_in = bit(&symbol[1 + name..], i);
                must(!is_in || i < self.sizes[category], "a value of no category")?;
                if is_in {
                    held[start + i] = true;
                }
            }
            flag = self.orbits[usize::from(symbol[0])].missing;
            number = Some(usize::from(symbol[0]));
        } else {
            must(symbol.len() == self.inputs.div_ceil(8), "a symbol of another length")?;
            must((self.inputs..8 * symbol.len()).all(|i| !bit(symbol, i)), "bits after the last")?;
            (0..values.len()).for_each(|i| held[i] = bit(symbol, i));
            flag |= bit(symbol, values.len()) && self.has_missing;
        }
        let mut counts = vec![vec![]; self.classes.len()];
        for (c, &class) in self.class_of.iter().enumerate() {
            counts[class].push((0..held.len()).filter(|&i| values[i] == c && held[i]).count() as u64);
        }
        counts.iter_mut().for_each(|part: &mut Vec<u64>| part.sort_by(|a, b| b.cmp(a)));
        let found = self.orbits.iter().position(|o| o.counts == counts && o.missing == flag);
        let t = found.ok_or("a set of no orbit")?;
        must(number.is_none_or(|n| n == t), "a set of another orbit")?;
        let orbit = &self.orbits[t];
        let divisor = self.used(orbit).concat().into_iter().fold(0, common);
        let weight = |i: usize| {
            let class = self.class_of[values[i]];
            (if held[i] { orbit.inside[class] } else { orbit.outside[class] }) / divisor
        };
        let missing = self.has_missing.then_some(orbit.absent / divisor);
        Ok((0..values.len()).map(weight).chain(missing).collect())
    }
}

impl Orbit {
    fn row(&self, g: usize, values: u128) -> u128 {
        let held: u64 = self.counts[g].iter().sum();
        held as u128 * self.inside[g] + (values - held as u128) * self.outside[g]
    }
}

fn shuffle<T>(items: &mut [T], source: &mut Source) -> Answer<()> {
    for last in (1..items.len()).rev() {
        items.swap(last, source.below(last as u64 + 1).map(fit)?);
    }
    Ok(())
}

/// Hold so many of the cells, all sets of them equally likely.
fn choose(mut cells: Vec<usize>, many: u64, held: &mut [bool], source: &mut Source) -> Answer<()> {
    for _ in 0..many {
        let cell = cells.swap_remove(source.below(cells.len() as u64).map(fit)?);
        held[cell] = true;
    }
    Ok(())
}

fn common(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common(b, a % b) }
}
