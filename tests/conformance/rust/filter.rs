//! The privacy filter in whole units of 2^-40 nats, by its definition: over all pairs of cells.

use crate::big::{parts, units_down, units_up, Big};
use crate::channel::{labels, Channel, Kind};
use crate::draw::Symbol;
use crate::pack::{fit, must, Answer, Value};
use crate::survey::{Form, Survey};

const MAX_BLOCKS: usize = 1024;

/// D of two inputs, in units: by the blocks that they lie in.
pub struct Distance {
    block: Vec<usize>,
    within: Vec<i64>,
    across: Vec<Vec<i64>>,
}

impl Distance {
    fn constant(inputs: usize, units: i64) -> Distance {
        Distance { block: vec![0; inputs], within: vec![units], across: vec![vec![units]] }
    }

    fn between(&self, x: usize, other: usize) -> i64 {
        let (a, b) = (self.block[x], self.block[other]);
        if x == other { 0 } else if a == b { self.within[a] } else { self.across[a][b] }
    }

    fn of(channel: &Channel) -> Answer<Distance> {
        let (n, d) = channel.ratio();
        let all = units_up(n, d)?;
        if let Kind::Items(_) | Kind::Parts(_) = channel.kind {
            return Ok(Distance::constant(2, all));
        }
        let (block, within, across): (Vec<usize>, Vec<i64>, Vec<Vec<i64>>) = match &channel.kind {
            Kind::Pbgrr { sizes, t, u, o } => {
                let m = sizes.len();
                if m > MAX_BLOCKS {
                    return Ok(Distance::constant(channel.inputs, all));
                }
                let up = |a: u64, b: u64| units_up(a as u128, b as u128);
                let within: Answer<_> = (0..m).map(|c| up(t[c], u[c])).collect();
                let rows: Answer<_> = (0..m).map(|c| Ok(vec![up(t[c], o[c])?; m])).collect();
                (labels(sizes), within?, rows?)
            }
            Kind::Category { sizes, .. } if sizes.len() <= MAX_BLOCKS => {
                let m = sizes.len();
                (labels(sizes), vec![0; m], vec![vec![all; m]; m])
            }
            Kind::Dense { outputs, weights } => return rows(weights, *outputs),
            Kind::Orbits(orbits) => {
                let (near, across) = orbits.ratios();
                let classes = orbits.classes();
                if classes.len() > MAX_BLOCKS {
                    return Ok(Distance::constant(channel.inputs, all));
                }
                let up = |r: (u128, u128)| units_up(r.0, r.1);
                let within: Answer<_> = classes.iter().map(|&g| up(near[g])).collect();
                let row = |&g: &usize| classes.iter().map(|&h| up(across[g][h])).collect::<Answer<_>>();
                let table: Answer<_> = classes.iter().map(row).collect();
                (orbits.categories(), within?, table?)
            }
            kind => match kind.level_odds() {
                Some((levels, odds)) => {
                    let units = odds.iter().map(|&(n, d)| units_up(n, d)).collect::<Answer<Vec<_>>>()?;
                    let depth = units.len();
                    let below: Vec<i64> = (0..depth).map(|j| *units[j..].iter().max().unwrap()).collect();
                    let groups = levels.counts[depth - 2];
                    if groups > MAX_BLOCKS {
                        return Ok(Distance::constant(channel.inputs, below[0]));
                    }
                    let last = &levels.of[depth - 2];
                    let first: Vec<usize> =
                        (0..groups).map(|b| last.iter().position(|&c| c == b).unwrap()).collect();
                    let common = |x: usize, y: usize| levels.of.iter().filter(|of| of[x] == of[y]).count();
                    let row = |&x: &usize| first.iter().map(|&y| below[common(x, y).min(depth - 1)]).collect();
                    (last.clone(), vec![below[depth - 1]; groups], first.iter().map(row).collect())
                }
                None => return Ok(Distance::constant(channel.inputs, all)),
            },
        };
        Ok(Distance { block, within, across })
    }
}

/// Of a dense channel: the largest difference of two rows' logarithms, and a unit; equal rows are one block.
fn rows(weights: &[u64], outputs: usize) -> Answer<Distance> {
    let mut different: Vec<&[u64]> = vec![];
    let mut block = vec![];
    for row in weights.chunks(outputs) {
        let known = different.iter().position(|r| *r == row);
        block.push(known.unwrap_or(different.len()));
        if known.is_none() {
            different.push(row);
        }
    }
    let units = |row: &&[u64]| row.iter().map(|&w| units_down(w as u128)).collect::<Answer<Vec<i64>>>();
    let logs = different.iter().map(units).collect::<Answer<Vec<_>>>()?;
    let most = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a - b).max().unwrap() + 1;
    if logs.len() > MAX_BLOCKS {
        let column = |y: usize| logs.iter().map(move |row| row[y]);
        let spread = (0..outputs).map(|y| column(y).max().unwrap() - column(y).min().unwrap()).max();
        return Ok(Distance::constant(block.len(), spread.unwrap() + 1));
    }
    let across = logs.iter().map(|a| logs.iter().map(|b| most(a, b)).collect()).collect();
    Ok(Distance { block, within: vec![0; logs.len()], across })
}

impl Channel {
    /// The weights of a symbol for every input, of which the filter reads the ratios.
    pub fn column(&self, symbol: &Symbol) -> Answer<Vec<u128>> {
        let all = 0..self.inputs;
        let bits = |bytes: &[u8], cells: usize| -> Answer<Vec<bool>> {
            must(bytes.len() == cells.div_ceil(8), "a symbol of another length")?;
            let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
            must(!(cells..8 * bytes.len()).any(bit), "bits after the last")?;
            Ok((0..cells).map(bit).collect())
        };
        let count = |held: &[bool]| held.iter().filter(|&&is_in| is_in).count();
        match (symbol, &self.kind) {
            (Symbol::Number(y), _) if *y < self.outputs => Ok(all.map(|x| self.weight(x, *y)).collect()),
            (Symbol::Set(bytes), Kind::Subset(set)) => {
                let held = bits(bytes, self.inputs)?;
                must(count(&held) == set.size, "a set of another size")?;
                let (inside, outside) = set.odds();
                Ok(all.map(|x| if held[x] { inside } else { outside }).collect())
            }
            (Symbol::Set(bytes), Kind::Unary { held, other }) => {
                let (inside, outside) = Kind::unary_odds(*held, *other);
                let held = bits(bytes, self.inputs)?;
                Ok(all.map(|x| if held[x] { inside } else { outside }).collect())
            }
            (Symbol::Set(bytes), Kind::SetLevels { levels, sets, .. }) => {
                let held = bits(bytes, sets.len() + levels.counts.iter().sum::<usize>())?;
                let (named, cells) = held.split_at(sets.len());
                must(count(named) == 1, "one level")?;
                let j = named.iter().position(|&is_in| is_in).unwrap();
                let start: usize = levels.counts[..j].iter().sum();
                let own = &cells[start..start + levels.counts[j]];
                must(count(own) == sets[j].size && count(cells) == sets[j].size, "another set")?;
                let (inside, outside) = sets[j].odds();
                Ok(all.map(|x| if own[levels.of[j][x]] { inside } else { outside }).collect())
            }
            (Symbol::Set(bytes), Kind::Tree { levels, sets, .. }) => {
                must(bytes.len() == 1 + self.inputs.div_ceil(8), "a symbol of another length")?;
                let j = usize::from(bytes[0]);
                must(j < sets.len(), "no level")?;
                let end = 1 + levels.counts[j].div_ceil(8);
                must(bytes[end..].iter().all(|&b| b == 0), "bits after the last")?;
                let own = bits(&bytes[1..end], levels.counts[j])?;
                must(count(&own) == sets[j].size, "a set of another size")?;
                let (inside, outside) = sets[j].odds();
                Ok(all.map(|x| if own[levels.of[j][x]] { inside } else { outside }).collect())
            }
            (Symbol::Set(bytes), Kind::Orbits(orbits)) => orbits.column(bytes),
            (Symbol::Set(bytes), Kind::Items(items)) => items.column(&bits(bytes, items.bins())?),
            (Symbol::Set(bytes), Kind::Parts(parts)) => {
                let (inside, outside) = parts.sets[parts.told(bytes)?.0].odds();
                Ok(vec![inside, outside])
            }
            _ => Err("no symbol of the channel"),
        }
    }

    fn weight(&self, x: usize, y: u64) -> u128 {
        let found = match &self.kind {
            Kind::Grr { t, u } => if x as u64 == y { t } else { u },
            Kind::Pbgrr { sizes, t, u, o } => {
                let of = labels(sizes);
                let c = of[fit(y)];
                if x as u64 == y { &t[c] } else if of[x] == c { &u[c] } else { &o[c] }
            }
            Kind::Category { sizes, t, o } => if labels(sizes)[x] as u64 == y { t } else { o },
            Kind::Dense { outputs, weights } => &weights[x * outputs + fit(y)],
            Kind::Levels { levels, t, u } => {
                let (mut j, mut group) = (0, fit(y));
                while group >= levels.counts[j] {
                    group -= levels.counts[j];
                    j += 1;
                }
                if levels.of[j][x] == group { &t[j] } else { &u[j] }
            }
            Kind::Hashing { pool, t, u } => {
                if pool.cell(y / pool.q, x as u64) == y % pool.q { t } else { u }
            }
            _ => unreachable!("sets have no numbers"),
        };
        *found as u128
    }
}

#[derive(Clone)]
struct Pending {
    ticket: i128,
    keys: Vec<i128>,
    survey: usize,
}

/// Coordinates that queries have joined, and the recorded log-likelihood of their cells, at most and at least.
#[derive(Clone, Default)]
struct Component {
    keys: Vec<i128>,
    shape: Vec<usize>,
    upper: Vec<i64>,
    lower: Vec<i64>,
    pending: Vec<Pending>,
}

pub struct Filter {
    limit: i64,
    full: bool,
    surveys: Vec<Survey>,
    distances: Vec<Distance>,
    components: Vec<Component>,
    closed: Vec<i128>,
    /// What closed components have lost and committed.
    gone: (i64, i64),
    tickets: i128,
}

/// The input of every cell of what a survey reads, and the sizes of its coordinates.
fn cells(survey: &Survey) -> Answer<(Vec<usize>, Vec<usize>)> {
    match &survey.form {
        Form::Single(Some(mapping)) => Ok((mapping.clone(), vec![mapping.len()])),
        Form::Single(None) => Ok(((0..survey.channel.inputs).collect(), vec![survey.channel.inputs])),
        Form::Table(readings) => Ok(product(&readings.iter().collect::<Vec<_>>())),
        Form::Transition(_, _, inputs) => Ok(((0..*inputs).collect(), vec![*inputs])),
        Form::KeyValue(points) => Ok(((0..points + 2).collect(), vec![points + 2])),
        // Two readings stand for all values: at best and at worst.
        Form::Items(..) | Form::Bundle(_) => Ok((vec![0, 1], vec![2])),
        Form::Tree(mapping, side) => {
            let shape = side.map_or(vec![mapping.len()], |side| vec![side, side]);
            Ok((mapping.clone(), shape))
        }
        Form::Score(_) => Err("a score, whose bounds are of floats"),
    }
}

/// The combination of readings of every combination of values, and how many values each attribute has.
fn product(readings: &[&Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let mut found = vec![0];
    for reading in readings {
        let many = reading.last().unwrap() + 1;
        found = found.iter().flat_map(|x| reading.iter().map(move |r| x * many + r)).collect();
    }
    (found, readings.iter().map(|reading| reading.len()).collect())
}

impl Component {
    /// The cell of a query's own coordinates that each cell of the component lies in.
    fn within(&self, keys: &[i128], shape: &[usize]) -> Vec<usize> {
        let place = |cell: usize| {
            let mut rest = cell;
            let mut at = vec![0; self.keys.len()];
            for i in (0..at.len()).rev() {
                at[i] = rest % self.shape[i];
                rest /= self.shape[i];
            }
            let axes = keys.iter().map(|key| self.keys.iter().position(|k| k == key).unwrap());
            axes.zip(shape).fold(0, |found, (axis, size)| found * size + at[axis])
        };
        (0..self.upper.len()).map(place).collect()
    }

    fn join(&mut self, other: Component) {
        let both = |a: &[i64], b: &[i64]| a.iter().flat_map(|a| b.iter().map(move |b| a + b)).collect();
        self.upper = both(&self.upper, &other.upper);
        self.lower = both(&self.lower, &other.lower);
        self.keys.extend(other.keys);
        self.shape.extend(other.shape);
        self.pending.extend(other.pending);
    }

    fn without(&mut self, key: i128) {
        let axis = self.keys.iter().position(|&k| k == key).unwrap();
        let (size, inner) = (self.shape[axis], self.shape[axis + 1..].iter().product::<usize>());
        let fold = |from: &[i64], pick: fn(i64, i64) -> i64| {
            let cell = |i: usize| (0..size).map(|j| from[i / inner * inner * size + j * inner + i % inner]).reduce(pick).unwrap();
            (0..from.len() / size).map(cell).collect()
        };
        self.upper = fold(&self.upper, i64::max);
        self.lower = fold(&self.lower, i64::min);
        self.keys.remove(axis);
        self.shape.remove(axis);
    }

    /// Take in an answer: the logarithm of every input's weight.
    fn take(&mut self, keys: &[i128], inputs: &[usize], shape: &[usize], column: &[u128]) -> Answer<()> {
        let logs = column.iter().map(|&w| units_down(w)).collect::<Answer<Vec<i64>>>()?;
        for (cell, at) in self.within(keys, shape).into_iter().enumerate() {
            self.upper[cell] += logs[inputs[at]];
            self.lower[cell] += logs[inputs[at]];
        }
        Ok(())
    }

    fn loss(&self) -> i64 {
        self.upper.iter().max().unwrap() - self.lower.iter().min().unwrap()
    }
}

impl Filter {
    pub fn of(budget: f64, full: bool, surveys: Vec<Survey>) -> Answer<Filter> {
        must(0.0 < budget && budget <= 4096.0, "a budget out of range")?;
        let (mantissa, exponent) = parts(budget);
        let limit = if exponent + 40 >= 0 {
            Big::of(mantissa as u128).shl(fit(exponent + 40))
        } else {
            Big::of(mantissa as u128).shr(fit(-exponent - 40))
        };
        let distances = surveys.iter().map(|s| Distance::of(&s.channel)).collect::<Answer<Vec<_>>>()?;
        let limit = limit.small().unwrap() as i64;
        let (components, closed) = (vec![], vec![]);
        Ok(Filter { limit, full, surveys, distances, components, closed, gone: (0, 0), tickets: 0 })
    }

    /// What pending queries and recorded answers of a component can come to.
    fn worst(&self, component: &Component) -> i64 {
        let parts: Vec<(Vec<usize>, &Distance)> = component.pending.iter().map(|pending| {
            let (inputs, shape) = cells(&self.surveys[pending.survey]).unwrap();
            let own = component.within(&pending.keys, &shape);
            (own.into_iter().map(|cell| inputs[cell]).collect(), &self.distances[pending.survey])
        }).collect();
        let largest = |(inputs, distance): &(Vec<usize>, &Distance)| {
            let pairs = inputs.iter().flat_map(|&x| inputs.iter().map(move |&y| distance.between(x, y)));
            pairs.max().unwrap()
        };
        // The simplified filter: one number of every query for any two different cells.
        let any: i64 = if self.full { 0 } else { parts.iter().map(largest).sum() };
        if parts.is_empty() {
            return component.loss();
        }
        let mut worst = 0;
        for x in 0..component.upper.len() {
            for y in 0..component.upper.len() {
                let apart: i64 = match self.full {
                    true => parts.iter().map(|(inputs, d)| d.between(inputs[x], inputs[y])).sum(),
                    false => if x == y { 0 } else { any },
                };
                worst = worst.max(component.upper[x] - component.lower[y] + apart);
            }
        }
        worst
    }

    pub fn committed(&self) -> i64 {
        let open: i64 = self.components.iter().map(|c| self.worst(c)).sum();
        open + self.gone.1 + self.tickets as i64
    }

    pub fn loss(&self) -> i64 {
        let pending: usize = self.components.iter().map(|c| c.pending.len()).sum();
        let open: i64 = self.components.iter().map(Component::loss).sum();
        open + self.gone.0 + (self.tickets - pending as i128) as i64
    }

    /// Whether a whole schedule fits; then it is reserved.
    pub fn reserve(&mut self, queries: &[Value]) -> Answer<bool> {
        let mut sizes: Vec<(i128, usize)> = vec![];
        let mut asked = vec![];
        for query in queries {
            let pair = query.array_of(2)?;
            let survey = pair[1].int(0, self.surveys.len() as i128 - 1).map(fit)?;
            let keys = pair[0].array()?.iter().map(|k| k.int(0, 1 << 32)).collect::<Answer<Vec<_>>>()?;
            let (_, shape) = cells(&self.surveys[survey])?;
            must(keys.len() == shape.len(), "a coordinate per attribute")?;
            must((1..keys.len()).all(|i| !keys[..i].contains(&keys[i])), "coordinates must differ")?;
            for (&key, &size) in keys.iter().zip(&shape) {
                must(!self.closed.contains(&key), "a coordinate is closed")?;
                let open = self.components.iter().flat_map(|c| c.keys.iter().zip(&c.shape));
                let known = open.chain(sizes.iter().map(|(k, s)| (k, s))).find(|(k, _)| **k == key);
                must(known.is_none_or(|(_, s)| *s == size), "a domain must keep its size")?;
                sizes.push((key, size));
            }
            asked.push((keys, shape, survey));
        }
        let before = self.components.clone();
        for (keys, shape, survey) in &asked {
            let mut own = Component { upper: vec![0], lower: vec![0], ..Component::default() };
            for (&key, &size) in keys.iter().zip(shape) {
                if let Some(i) = self.components.iter().position(|c| c.keys.contains(&key)) {
                    own.join(self.components.remove(i));
                } else if !own.keys.contains(&key) {
                    let (upper, lower) = (vec![0; size], vec![0; size]);
                    own.join(Component { keys: vec![key], shape: vec![size], upper, lower, pending: vec![] });
                }
            }
            own.pending.push(Pending { ticket: self.tickets, keys: keys.clone(), survey: *survey });
            self.tickets += 1;
            self.components.push(own);
        }
        let fits = self.committed() <= self.limit;
        if !fits {
            self.tickets -= asked.len() as i128;
            self.components = before;
        }
        Ok(fits)
    }

    fn waiting(&self, ticket: i128) -> Answer<(usize, usize)> {
        for (i, component) in self.components.iter().enumerate() {
            if let Some(j) = component.pending.iter().position(|p| p.ticket == ticket) {
                return Ok((i, j));
            }
        }
        Err("a ticket that waits for nothing")
    }

    pub fn record(&mut self, ticket: i128, symbol: &Symbol) -> Answer<()> {
        let (i, j) = self.waiting(ticket)?;
        let pending = &self.components[i].pending[j];
        let survey = &self.surveys[pending.survey];
        let column = survey.channel.column(symbol)?;
        let (inputs, shape) = cells(survey)?;
        let keys = pending.keys.clone();
        self.components[i].take(&keys, &inputs, &shape, &column)?;
        self.components[i].pending.remove(j);
        Ok(())
    }

    /// Whether a bundle's answer joined what is known of the values that its part read; else it is recorded apart.
    pub fn resolve(&mut self, ticket: i128, symbol: &Symbol, keys: &Value) -> Answer<bool> {
        let (i, j) = self.waiting(ticket)?;
        let survey = &self.surveys[self.components[i].pending[j].survey];
        let keys = keys.array()?.iter().map(|k| k.int(0, 1 << 32)).collect::<Answer<Vec<_>>>()?;
        let (Form::Bundle(readings), Kind::Parts(parts)) = (&survey.form, &survey.channel.kind) else {
            return Err("no bundle");
        };
        let Symbol::Set(bytes) = symbol else { return Err("a symbol of another kind") };
        let (part, held) = parts.told(bytes)?;
        let (inside, outside) = parts.sets[part].odds();
        let column: Vec<u128> = held.iter().map(|&is_in| if is_in { inside } else { outside }).collect();
        let own: Vec<&Vec<usize>> = parts.members[part].iter().map(|&member| &readings[member]).collect();
        must(keys.len() == own.len(), "a coordinate per attribute")?;
        must((1..keys.len()).all(|i| !keys[..i].contains(&keys[i])), "coordinates must differ")?;
        let many = |sizes: &[usize]| sizes.iter().map(|&size| size as u128).product::<u128>();
        let shape: Vec<usize> = own.iter().map(|reading| reading.len()).collect();
        let closed = keys.iter().any(|key| self.closed.contains(key));
        if closed || many(&shape) > 1 << 18 {
            return self.record(ticket, symbol).map(|_| false);
        }
        let (inputs, shape) = product(&own);
        let (joins, mut rest): (Vec<Component>, Vec<Component>) =
            self.components.clone().into_iter().partition(|c| keys.iter().any(|key| c.keys.contains(key)));
        let mut joined = Component { upper: vec![0], lower: vec![0], ..Component::default() };
        let mut cells = 1;
        for component in &joins {
            cells *= many(&component.shape);
            for (key, size) in component.keys.iter().zip(&component.shape) {
                let own = keys.iter().position(|k| k == key).map(|at| shape[at]);
                must(own.is_none_or(|own| own == *size), "a domain must keep its size")?;
            }
        }
        let known = |key: &i128| joins.iter().any(|c| c.keys.contains(key));
        let fresh: Vec<(i128, usize)> = keys.iter().copied().zip(shape.iter().copied()).filter(|(k, _)| !known(k)).collect();
        cells *= fresh.iter().map(|&(_, size)| size as u128).product::<u128>();
        if cells > 1 << 18 {
            return self.record(ticket, symbol).map(|_| false);
        }
        joins.into_iter().for_each(|component| joined.join(component));
        for (key, size) in fresh {
            let zeros = vec![0; size];
            joined.join(Component { keys: vec![key], shape: vec![size], upper: zeros.clone(), lower: zeros, pending: vec![] });
        }
        joined.take(&keys, &inputs, &shape, &column)?;
        let held = rest.iter().position(|c| c.pending.iter().any(|p| p.ticket == ticket)).unwrap();
        rest[held].pending.retain(|p| p.ticket != ticket);
        if rest[held].pending.is_empty() && rest[held].loss() == 0 {
            rest.remove(held); // nothing was ever recorded there
        }
        rest.push(joined);
        self.components = rest;
        Ok(true)
    }

    pub fn cancel(&mut self, ticket: i128) -> Answer<()> {
        let (i, j) = self.waiting(ticket)?;
        self.components[i].pending.remove(j);
        Ok(())
    }

    pub fn close(&mut self, key: i128) -> Answer<()> {
        let open = self.components.iter().position(|c| c.keys.contains(&key)).ok_or("not in use")?;
        if self.components[open].keys.len() > 1 {
            let waits = self.components[open].pending.iter().any(|p| p.keys.contains(&key));
            must(!waits, "a joined coordinate with something pending")?;
            self.components[open].without(key);
        } else {
            let component = self.components.remove(open);
            self.gone.0 += component.loss();
            self.gone.1 += self.worst(&component);
        }
        self.closed.push(key);
        Ok(())
    }
}
