//! Channels: the integers of place 7, their rules, and the largest ratio that certifies epsilon.

use crate::big::Big;
use crate::items::Items;
use crate::orbits::Orbits;
use crate::pack::{fit, must, Answer, Value};
use crate::parts::Parts;
use crate::pool::Pool;

pub const MAX_INPUTS: usize = 1 << 17;
/// Inputs that hashes may have, which no table lists.
const MAX_HASHED: usize = 1 << 20;
pub const MAX_TOTAL: u128 = 1 << 63;
const MAX_OUTPUTS: u128 = 1 << 24;
const MAX_CELLS: usize = 1 << 18;
pub const WORD: u64 = 1 << 32;
pub const COIN: u64 = 1 << 31;

pub struct Subset {
    pub inputs: usize,
    pub size: usize,
    pub held: u64,
}

/// What a device draws one of: inputs grouped on levels, the single inputs last.
pub struct Levels {
    pub of: Vec<Vec<usize>>,
    pub counts: Vec<usize>,
}

pub enum Kind {
    Grr { t: u64, u: u64 },
    Pbgrr { sizes: Vec<usize>, t: Vec<u64>, u: Vec<u64>, o: Vec<u64> },
    Category { sizes: Vec<usize>, t: u64, o: u64 },
    Dense { outputs: usize, weights: Vec<u64> },
    Levels { levels: Levels, t: Vec<u64>, u: Vec<u64> },
    Hashing { pool: Pool, t: u64, u: u64 },
    Subset(Subset),
    Unary { held: u64, other: u64 },
    SetLevels { levels: Levels, shares: Vec<u64>, sets: Vec<Subset> },
    Tree { levels: Levels, shares: Vec<u64>, sets: Vec<Subset> },
    Orbits(Orbits),
    Items(Items),
    Parts(Parts),
}

pub struct Channel {
    pub inputs: usize,
    /// Symbols and T of a channel that is a table.
    pub outputs: u64,
    pub total: u64,
    pub kind: Kind,
    /// True where categories must be none but those of a tree: all numbers together.
    pub is_tree: bool,
}

/// The keys of a map that has these and "kind", no others.
pub struct Keys<'a>(Vec<(&'a str, &'a Value)>);

impl<'a> Keys<'a> {
    fn of(map: &'a Value) -> Answer<Keys<'a>> {
        let Value::Map(items) = map else { return Err("a channel that is no map") };
        let mut found = vec![];
        for (key, value) in items {
            found.push((key.text()?, value));
        }
        must(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "keys must rise")?;
        Ok(Keys(found))
    }

    fn exactly(&self, names: &[&str]) -> Answer<()> {
        let all = names.iter().chain(&["kind"]).all(|name| self.0.iter().any(|(key, _)| key == name));
        must(all && self.0.len() == names.len() + 1, "other keys than those of the kind")
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| *key == name)
    }

    pub fn value(&self, name: &str) -> Answer<&'a Value> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value).ok_or("a key is missing")
    }

    pub fn int(&self, name: &str) -> Answer<u64> {
        Ok(self.value(name)?.int(1, MAX_TOTAL as i128 - 1)? as u64)
    }

    pub fn ints(&self, name: &str) -> Answer<Vec<u64>> {
        let items = self.value(name)?.array()?;
        must(!items.is_empty(), "an empty list")?;
        items.iter().map(|n| Ok(n.int(1, MAX_TOTAL as i128 - 1)? as u64)).collect()
    }
}

pub fn read(map: &Value) -> Answer<Channel> {
    let keys = Keys::of(map)?;
    let kind = keys.value("kind")?.text()?;
    let names: &[&str] = match kind {
        "grr" => &["inputs", "t", "u"],
        "pbgrr" => &["sizes", "t", "u", "o"],
        "category_grr" => &["sizes", "t", "o"],
        "dense" | "curve" => &["inputs", "outputs", "total", "weights"],
        "weighted" => &["inputs", "outputs", "total", "weights", "common"],
        "levels" => &["inputs", "sizes", "t", "u"],
        "tree_node" => &["inputs", "cells", "t", "u"],
        "local_hashing" => &["inputs", "buckets", "t", "u"],
        "subset" => &["inputs", "size", "held"],
        "unary" => &["inputs", "held", "other"],
        "set_levels" | "nested_levels" => &["inputs", "sizes", "shares", "subset", "held"],
        "tree" => &["inputs", "cells", "shares", "subset", "held"],
        "set" => &["inputs", "most", "size", "held"],
        "parts" if keys.has("classes") => {
            &["readings", "orders", "members", "shares", "subset", "held", "classes"]
        }
        "parts" => &["readings", "orders", "members", "shares", "subset", "held"],
        "orbits" | "short_orbits" => {
            &["sizes", "unit", "counts", "missing", "inside", "outside", "absent"]
        }
        _ => return Err("an unknown kind of channel"),
    };
    keys.exactly(names)?;
    let is_tree = kind.starts_with("tree");
    let (inputs, outputs, total, kind) = match kind {
        "grr" => grr(&keys)?,
        "pbgrr" => pbgrr(&keys)?,
        "category_grr" => category(&keys)?,
        "dense" | "curve" => dense(&keys)?,
        "weighted" => weighted(&keys)?,
        "levels" => weighed(grouped(&keys)?, &keys)?,
        "tree_node" => weighed(ranges(&keys)?, &keys)?,
        "local_hashing" => hashing(&keys)?,
        "subset" => {
            let inputs = count(&keys, "inputs")?;
            let kind = subset(inputs, keys.int("size")?, keys.int("held")?)?;
            (inputs, 0, 0, Kind::Subset(kind))
        }
        "unary" => unary(&keys)?,
        "set_levels" => {
            let (levels, shares, sets) = shared(grouped(&keys)?, &keys)?;
            (levels.of[0].len(), 0, 0, Kind::SetLevels { levels, shares, sets })
        }
        "nested_levels" => {
            let (levels, shares, sets) = shared(grouped(&keys)?, &keys)?;
            (levels.of[0].len(), 0, 0, Kind::Tree { levels, shares, sets })
        }
        "tree" => {
            let (levels, shares, sets) = shared(ranges(&keys)?, &keys)?;
            (levels.of[0].len(), 0, 0, Kind::Tree { levels, shares, sets })
        }
        "set" => {
            let inputs = count(&keys, "inputs")?;
            let items = Items::of(inputs, keys.int("most")?, keys.int("size")?, keys.int("held")?)?;
            (inputs, 0, 0, Kind::Items(items))
        }
        // Its combinations have no numbers here: two readings stand for all of them.
        "parts" => (2, 0, 0, Kind::Parts(Parts::read(&keys)?)),
        kind => {
            let orbits = Orbits::read(&keys, kind == "short_orbits")?;
            (orbits.inputs, 0, 0, Kind::Orbits(orbits))
        }
    };
    let most = if let Kind::Hashing { .. } = kind { MAX_HASHED } else { MAX_INPUTS };
    must((2..=most).contains(&inputs), "inputs out of range")?;
    let set = matches!(
        kind,
        Kind::Subset(_) | Kind::Unary { .. } | Kind::SetLevels { .. } | Kind::Tree { .. } | Kind::Orbits(_)
            | Kind::Items(_) | Kind::Parts(_)
    );
    must(set || (2..=MAX_OUTPUTS).contains(&outputs), "symbols out of range")?;
    must(set || (1..MAX_TOTAL).contains(&total), "a total that is not below 2^63")?;
    Ok(Channel { inputs, outputs: outputs as u64, total: total as u64, kind, is_tree })
}

type Made = (usize, u128, u128, Kind);

fn count(keys: &Keys, name: &str) -> Answer<usize> {
    let n = keys.int(name)?;
    must(n <= MAX_INPUTS as u64, "too many inputs")?;
    Ok(fit(n))
}

pub fn sizes(list: &[u64]) -> Answer<Vec<usize>> {
    must(list.iter().map(|&n| n as u128).sum::<u128>() <= MAX_INPUTS as u128, "too many inputs")?;
    Ok(list.iter().map(|&n| fit(n)).collect())
}

/// The number of the part that each place lies in.
pub fn labels(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().enumerate().flat_map(|(c, &n)| vec![c; n]).collect()
}

fn grr(keys: &Keys) -> Answer<Made> {
    let (inputs, t, u) = (count(keys, "inputs")?, keys.int("t")?, keys.int("u")?);
    must(u < t, "t must be above u")?;
    let total = t as u128 + (inputs as u128 - 1) * u as u128;
    Ok((inputs, inputs as u128, total, Kind::Grr { t, u }))
}

fn pbgrr(keys: &Keys) -> Answer<Made> {
    let sizes = sizes(&keys.ints("sizes")?)?;
    let (t, u, o) = (keys.ints("t")?, keys.ints("u")?, keys.ints("o")?);
    let m = sizes.len();
    must(m >= 2 && [t.len(), u.len(), o.len()] == [m; 3], "one weight per category")?;
    let base: u128 = sizes.iter().zip(&o).map(|(&s, &o)| s as u128 * o as u128).sum();
    let mut total = 0;
    for c in 0..m {
        must(o[c] <= u[c] && u[c] < t[c] && (sizes[c] > 1 || u[c] == o[c]), "t > u >= o")?;
        let row = base + sizes[c] as u128 * (u[c] - o[c]) as u128 + (t[c] - u[c]) as u128;
        must(c == 0 || row == total, "rows of one total")?;
        total = row;
    }
    let inputs = sizes.iter().sum();
    Ok((inputs, inputs as u128, total, Kind::Pbgrr { sizes, t, u, o }))
}

fn category(keys: &Keys) -> Answer<Made> {
    let sizes = sizes(&keys.ints("sizes")?)?;
    let (t, o) = (keys.int("t")?, keys.int("o")?);
    must(sizes.len() >= 2 && o < t, "two categories, t > o")?;
    let (m, inputs) = (sizes.len() as u128, sizes.iter().sum());
    Ok((inputs, m, t as u128 + (m - 1) * o as u128, Kind::Category { sizes, t, o }))
}

fn dense(keys: &Keys) -> Answer<Made> {
    let (inputs, outputs, total) = (keys.int("inputs")?, keys.int("outputs")?, keys.int("total")?);
    let (width, bytes) = (if total <= WORD { 4 } else { 8 }, keys.value("weights")?.binary()?);
    let entries = inputs as u128 * outputs as u128;
    must(entries <= MAX_OUTPUTS && entries * width as u128 == bytes.len() as u128, "weights of K rows")?;
    let word = |part: &[u8]| part.iter().rev().fold(0, |n, &b| n << 8 | b as u64);
    let weights: Vec<u64> = bytes.chunks(width).map(word).collect();
    must(weights.iter().all(|&w| 1 <= w && (w as u128) < MAX_TOTAL), "weights of 1 and more")?;
    for row in weights.chunks(fit(outputs)) {
        must(row.iter().map(|&w| w as u128).sum::<u128>() == total as u128, "rows of the total")?;
    }
    let kind = Kind::Dense { outputs: fit(outputs), weights };
    Ok((fit(inputs), outputs as u128, total as u128, kind))
}

/// A table, and how common each input is: numbers for estimates, which no device reads.
fn weighted(keys: &Keys) -> Answer<Made> {
    let (table, common) = (dense(keys)?, keys.ints("common")?);
    must(common.len() == table.0, "an integer of common per input")?;
    must(common.iter().all(|&n| n < 1 << 31), "common below 2^31")?;
    Ok(table)
}

impl Levels {
    /// Levels from the sizes of their groups, the single inputs not among them.
    fn of(inputs: usize, sizes: &[Vec<usize>]) -> Answer<Levels> {
        must((1..16).contains(&sizes.len()), "two to sixteen levels")?;
        let (mut of, mut counts, mut ends) = (vec![], vec![], vec![]);
        for level in sizes {
            let finer: Vec<usize> =
                level.iter().scan(0, |sum, &n| { *sum += n; Some(*sum) }).collect();
            must(level.iter().all(|&n| n >= 1) && finer.last() == Some(&inputs), "sizes must sum to K")?;
            let splits = ends.iter().all(|end| finer.binary_search(end).is_ok());
            must(splits && finer.len() > ends.len() && finer.len() >= 2, "each level must split")?;
            of.push(labels(level));
            counts.push(level.len());
            ends = finer;
        }
        must(ends.len() < inputs, "groups of several inputs")?;
        of.push((0..inputs).collect());
        counts.push(inputs);
        Ok(Levels { of, counts })
    }
}

fn grouped(keys: &Keys) -> Answer<Levels> {
    let inputs = count(keys, "inputs")?;
    let (mut levels, mut level, mut sum) = (vec![], vec![], 0u128);
    for n in keys.ints("sizes")? {
        sum += n as u128;
        must(sum <= inputs as u128, "sizes must sum to K")?;
        level.push(fit(n));
        if sum == inputs as u128 {
            levels.push(std::mem::take(&mut level));
            sum = 0;
        }
    }
    must(level.is_empty() && inputs >= 2, "sizes must sum to K")?;
    Levels::of(inputs, &levels)
}

/// Ranges of numbers and the missing input, which is a group of its own.
fn ranges(keys: &Keys) -> Answer<Levels> {
    let (inputs, cells) = (count(keys, "inputs")?, keys.ints("cells")?);
    let points = inputs as u64 - 1;
    let (&last, inner) = cells.split_last().unwrap();
    must(last == points && points >= 2 && cells.len() <= 16, "cells must end at the numbers")?;
    must(inner.iter().all(|&n| n < points), "fewer ranges than numbers")?;
    must(inner.windows(2).all(|pair| pair[1] % pair[0] == 0), "ranges must divide the next")?;
    let lengths = |&n: &u64| -> Vec<usize> {
        let start = |i| fit(i * points / n);
        (0..n).map(|i| start(i + 1) - start(i)).chain([1]).collect()
    };
    Levels::of(inputs, &inner.iter().map(lengths).collect::<Vec<_>>())
}

fn weighed(levels: Levels, keys: &Keys) -> Answer<Made> {
    let (t, u) = (keys.ints("t")?, keys.ints("u")?);
    must([t.len(), u.len()] == [levels.counts.len(); 2], "two weights per level")?;
    let mut total = 0u128;
    for ((&t, &u), &n) in t.iter().zip(&u).zip(&levels.counts) {
        must(u < t, "t must be above u")?;
        total += t as u128 + (n as u128 - 1) * u as u128;
    }
    let symbols = levels.counts.iter().sum::<usize>() as u128;
    Ok((levels.of[0].len(), symbols, total, Kind::Levels { levels, t, u }))
}

fn hashing(keys: &Keys) -> Answer<Made> {
    let (inputs, q) = (keys.int("inputs")?, keys.int("buckets")?);
    must(inputs <= MAX_HASHED as u64, "too many inputs")?;
    let (t, u) = (keys.int("t")?, keys.int("u")?);
    must(u < t, "t must be above u")?;
    let pool = Pool::of(inputs, q)?;
    let total = pool.seeds as u128 * (t as u128 + (q as u128 - 1) * u as u128);
    Ok((fit(inputs), (pool.seeds * q) as u128, total, Kind::Hashing { pool, t, u }))
}

pub fn subset(inputs: usize, size: u64, held: u64) -> Answer<Subset> {
    must(size < inputs as u64 && held < WORD, "sizes of 1 to K - 1")?;
    let found = Subset { inputs, size: fit(size), held };
    let (inside, outside) = found.odds();
    must(inside > outside, "the true value must be favoured")?;
    Ok(found)
}

impl Subset {
    /// The weights of an input in the set and of one that is not.
    pub fn odds(&self) -> (u128, u128) {
        let (k, d) = (self.inputs as u128, self.size as u128);
        (self.held as u128 * (k - d), (WORD - self.held) as u128 * d)
    }
}

fn unary(keys: &Keys) -> Answer<Made> {
    let (inputs, held, other) = (count(keys, "inputs")?, keys.int("held")?, keys.int("other")?);
    must(other < held && held < COIN, "other < held < 2^31")?;
    Ok((inputs, 0, 0, Kind::Unary { held, other }))
}

fn shared(levels: Levels, keys: &Keys) -> Answer<(Levels, Vec<u64>, Vec<Subset>)> {
    let (shares, size, held) = (keys.ints("shares")?, keys.ints("subset")?, keys.ints("held")?);
    let n = levels.counts.len();
    must([shares.len(), size.len(), held.len()] == [n; 3], "three integers per level")?;
    must(shares.iter().map(|&s| s as u128).sum::<u128>() == WORD as u128, "shares of 2^32")?;
    must(n + levels.counts.iter().sum::<usize>() <= MAX_CELLS, "at most 2^18 cells")?;
    let sets: Answer<_> = (0..n).map(|j| subset(levels.counts[j], size[j], held[j])).collect();
    Ok((levels, shares, sets?))
}

/// The larger of two ratios.
pub fn larger(a: (u128, u128), b: (u128, u128)) -> (u128, u128) {
    if a.0 * b.1 >= b.0 * a.1 { a } else { b }
}

impl Kind {
    /// Unary bits: the weights of an input in the set and of one that is not.
    pub fn unary_odds(held: u64, other: u64) -> (u128, u128) {
        (held as u128 * (COIN - other) as u128, (COIN - held) as u128 * other as u128)
    }

    /// Per level the largest ratio of a symbol about it.
    pub fn level_odds(&self) -> Option<(&Levels, Vec<(u128, u128)>)> {
        match self {
            Kind::Levels { levels, t, u } => {
                let odds = t.iter().zip(u).map(|(&t, &u)| (t as u128, u as u128)).collect();
                Some((levels, odds))
            }
            Kind::SetLevels { levels, sets, .. } | Kind::Tree { levels, sets, .. } => {
                Some((levels, sets.iter().map(Subset::odds).collect()))
            }
            _ => None,
        }
    }
}

impl Channel {
    /// The same exactly, of sets too.
    pub fn certificate(&self) -> (Big, Big) {
        match &self.kind {
            Kind::Items(items) => items.odds.clone(),
            _ => (Big::of(self.ratio().0), Big::of(self.ratio().1)),
        }
    }

    /// The largest ratio of a symbol's probabilities for two inputs: e^epsilon; of sets of the weights below.
    pub fn ratio(&self) -> (u128, u128) {
        if let Some((_, odds)) = self.kind.level_odds() {
            return odds.into_iter().fold((1, 1), larger);
        }
        match &self.kind {
            Kind::Grr { t, u } | Kind::Hashing { t, u, .. } => (*t as u128, *u as u128),
            Kind::Category { t, o, .. } => (*t as u128, *o as u128),
            Kind::Pbgrr { t, o, .. } => {
                t.iter().zip(o).map(|(&t, &o)| (t as u128, o as u128)).fold((1, 1), larger)
            }
            Kind::Dense { outputs, weights } => {
                let column = |y: usize| weights.iter().skip(y).step_by(*outputs).map(|&w| w as u128);
                (0..*outputs)
                    .map(|y| (column(y).max().unwrap(), column(y).min().unwrap()))
                    .fold((1, 1), larger)
            }
            Kind::Subset(set) => set.odds(),
            Kind::Unary { held, other } => Kind::unary_odds(*held, *other),
            Kind::Orbits(orbits) => orbits.ratio(),
            Kind::Items(items) => items.weights(),
            Kind::Parts(parts) => parts.ratio(),
            _ => unreachable!("levels are above"),
        }
    }

    /// Whether single inputs are told, as a table of several attributes needs.
    pub fn tells_inputs(&self) -> bool {
        let grouped =
            matches!(self.kind, Kind::Category { .. } | Kind::Orbits(_) | Kind::Items(_) | Kind::Parts(_));
        !grouped && self.kind.level_odds().is_none()
    }

    /// Whether a survey of one attribute may have these categories of its inputs.
    pub fn fits(&self, categories: &[usize]) -> bool {
        if self.is_tree {
            return categories[categories.len() - 2] == 0;
        }
        match &self.kind {
            Kind::Pbgrr { sizes, .. } | Kind::Category { sizes, .. } => labels(sizes) == categories,
            Kind::Levels { levels, .. } | Kind::SetLevels { levels, .. } | Kind::Tree { levels, .. } => {
                levels.of.iter().any(|level| level == categories)
            }
            Kind::Orbits(orbits) => orbits.categories() == categories,
            Kind::Items(_) | Kind::Parts(_) => false,
            _ => true,
        }
    }
}
