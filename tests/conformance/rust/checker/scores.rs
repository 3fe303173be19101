//! The estimates of a round as exact quotients of its public counts, and the laws of the scores behind them.

use crate::asked::Asked;
use crate::channel::labels;
use crate::ends::{plausible, Law, Moments};
use crate::exact::{sum, Exact};
use crate::pack::{fit, Answer};

#[derive(Clone)]
pub struct Cell {
    pub exact: Exact,
    /// None where the channel hides it.
    pub estimate: Option<f64>,
    pub law: Option<Law>,
    /// The least and the most that a report adds to the cell.
    pub least: f64,
    pub most: f64,
}

pub struct Counts {
    pub n: i128,
    pub cells: Vec<i128>,
}

/// The difference of two variances, as a part of them, below which rounding may decide which is larger.
const ALIKE: f64 = 1.0 / (1u64 << 30) as f64;

/// Values and categories; none where nothing is recomputed.
pub type Families = Option<(Vec<Cell>, Vec<Cell>)>;

pub fn families(asked: &Asked, counts: &Counts) -> Answer<Families> {
    let rows = &asked.rows;
    Ok(Some(match asked.spec("kind")?.text()? {
        "grr" => {
            let (size, t, u) = (asked.int("inputs")?, asked.int("t")?, asked.int("u")?);
            blocks(&[Block { size, t, u, o: u, total: t + (size - 1) * u, scale: t - u }], rows, counts)
        }
        "pbgrr" => {
            let (sizes, t) = (asked.ints("sizes")?, asked.ints("t")?);
            let (u, o) = (asked.ints("u")?, asked.ints("o")?);
            let others: i128 = sizes.iter().zip(&o).map(|(s, o)| s * o).sum();
            let total = others - sizes[0] * o[0] + t[0] + (sizes[0] - 1) * u[0];
            let block = |c: usize| {
                let u = if sizes[c] > 1 { u[c] } else { o[c] };
                Block { size: sizes[c], t: t[c], u, o: o[c], total, scale: total - others }
            };
            blocks(&(0..sizes.len()).map(block).collect::<Vec<_>>(), rows, counts)
        }
        "category_grr" => {
            let sizes = asked.ints("sizes")?;
            let (t, o, many) = (asked.int("t")?, asked.int("o")?, sizes.len() as i128);
            let block = Block { size: 1, t, u: o, o, total: t + (many - 1) * o, scale: t - o };
            let own = labels(&sizes.iter().map(|&size| fit(size)).collect::<Vec<_>>());
            if rows[..] != [own.clone()] {
                return Ok(None);
            }
            let (values, categories) = blocks(&vec![block; sizes.len()], &[(0..sizes.len()).collect()], counts);
            let hidden = |&c: &usize| {
                let estimate = values[c].estimate.filter(|_| sizes[c] == 1);
                Cell { estimate, ..values[c].clone() }
            };
            (own.iter().map(hidden).collect(), categories)
        }
        "unary" => {
            let odds = ["held", "other"].map(|key| Ok(Exact::of(asked.int(key)?, 1 << 31)));
            let [p, q] = odds;
            supports(&p?, &q?, asked, counts)?
        }
        "set" => {
            let (items, most, size) = (asked.int("inputs")?, asked.int("most")?, asked.int("size")?);
            let hit = Exact::of(asked.spec("held")?.int(0, 1 << 63)?, 1 << 63);
            let missed = choose(items, size).inverse();
            let met = choose(items + most, size).minus(&choose(items, size)).inverse();
            let (other, every) = (choose(items - 1, size - 1), choose(items + most - 1, size - 1));
            let beside = every.minus(&other).times(&met).times(&hit);
            let rest = Exact::of(1, 1).minus(&hit).times(&other).times(&missed);
            supports(&hit.times(&every).times(&met), &beside.plus(&rest), asked, counts)?
        }
        "subset" => {
            let (k, size, held) = (asked.int("inputs")?, asked.int("size")?, asked.int("held")?);
            let other = held * (size - 1) + ((1 << 32) - held) * size;
            supports(&Exact::of(held, 1 << 32), &Exact::of(other, (k - 1) << 32), asked, counts)?
        }
        "local_hashing" => {
            let (inputs, q) = (asked.int("inputs")?, asked.int("buckets")?);
            let (t, u) = (asked.int("t")?, asked.int("u")?);
            let mut points = q;
            while points < inputs {
                points *= q;
            }
            let (seeds, together) = ((points - 1) / (q - 1), (points / q - 1) / (q - 1));
            let low = u * seeds + (t - u) * together;
            let total = seeds * (t + (q - 1) * u);
            supports(&Exact::of(low + (t - u) * (points / q), total), &Exact::of(low, total), asked, counts)?
        }
        _ => return Ok(None),
    }))
}

/// Inputs that are alike: how many, their weights, T, and T less the sum of s o over blocks.
#[derive(Clone)]
struct Block {
    size: i128,
    t: i128,
    u: i128,
    o: i128,
    total: i128,
    scale: i128,
}

fn over(top: i128, bottom: i128) -> f64 {
    Exact::of(top, bottom).float()
}

/// Variance and third central moment.
fn central(scores: &[f64], odds: &[f64]) -> Moments {
    let mean: f64 = scores.iter().zip(odds).map(|(b, p)| b * p).sum();
    let moment = |power| scores.iter().zip(odds).map(|(b, p)| p * (b - mean).powi(power)).sum();
    (moment(2), moment(3))
}

fn two_odds(own: f64, other: f64) -> Option<(f64, f64)> {
    let inside = |x: f64| x > 0.0 && x < 1.0;
    (inside(own) && inside(other)).then_some((own, other))
}

/// The law of a score of two values, as the count that it is.
fn counted(own: Moments, far: Moments, step: f64, odds: (f64, f64)) -> Law {
    Law { own, far, near: None, step, odds: two_odds(odds.0, odds.1), observed: f64::NEG_INFINITY }
}

impl Block {
    fn step(&self) -> i128 {
        self.t - self.u
    }

    /// A cell of the block without its estimate; `around` is the estimated share of the block.
    fn cell(&self, many: usize, around: f64) -> Cell {
        let Block { size, t, u, o, total, scale } = *self;
        let rest = -(u - o) * total - o * self.step();
        let far = over(-o, scale);
        let (hit, beside) = if size == 1 {
            (over(total - o, scale), far)
        } else {
            (over(total * scale + rest, scale * self.step()), over(rest, scale * self.step()))
        };
        let law_of = |hits: i128, besides: i128| {
            let odds = [hits, besides, total - hits - besides].map(|w| over(w, total));
            central(&[hit, beside, far], &odds)
        };
        let near = if size == 1 { None } else { Some((law_of(u, t + (size - 2) * u), around)) };
        let odds = if size == 1 || u == o || many == 1 { (over(t, total), over(o, total)) } else { (0.0, 0.0) };
        let own = law_of(t, (size - 1) * u);
        let law = Law { near, ..counted(own, law_of(o, (size - 1) * o), over(total, self.step()), odds) };
        let mut seen = vec![hit];
        seen.extend((size > 1).then_some(beside));
        seen.extend((many > 1).then_some(far));
        let (least, most) = span(&seen);
        Cell { exact: Exact::of(0, 1), estimate: None, law: Some(law), least, most }
    }
}

fn span(numbers: &[f64]) -> (f64, f64) {
    numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)))
}

fn members_of(row: &[usize]) -> Vec<Vec<usize>> {
    let mut found = vec![vec![]; row.iter().max().map_or(0, |most| most + 1)];
    row.iter().enumerate().for_each(|(x, &group)| found[group].push(x));
    found
}

fn told(cell: &Cell, exact: Exact) -> Cell {
    Cell { estimate: Some(exact.float()), exact, ..cell.clone() }
}

/// Categories as exact sums of their values.
fn summed(values: &[Cell], members: &[usize]) -> Exact {
    sum(members.iter().map(|&x| &values[x].exact))
}

fn blocks(all: &[Block], rows: &[Vec<usize>], counts: &Counts) -> (Vec<Cell>, Vec<Cell>) {
    let (mut values, mut at, n) = (vec![], 0, counts.n);
    for block in all {
        let held = &counts.cells[at..at + fit(block.size)];
        at += held.len();
        // Devices of the block are crowd / scale.
        let whole = Exact::of(block.total, 1).times(&Exact::of(held.iter().sum(), 1));
        let crowd = whole.plus(&Exact::of(-block.size * n, 1).times(&Exact::of(block.o, 1)));
        let around = crowd.times(&Exact::of(1, block.scale).times(&Exact::of(1, n)));
        let cell = block.cell(all.len(), around.float());
        let beside = around.times(&Exact::of(block.o - block.u, block.step()));
        let constant = beside.plus(&Exact::of(-block.o, block.step()));
        let gain = Exact::of(block.total, block.step()).times(&Exact::of(1, n));
        for &count in held {
            let own = gain.times(&Exact::of(count, 1)).plus(&constant);
            values.push(told(&cell, if block.size == 1 { around.clone() } else { own }));
        }
    }
    let shares: Vec<f64> = values.iter().map(|cell| cell.estimate.unwrap()).collect();
    let populations = plausible(&shares);
    let categories = rows.iter().flat_map(|row| {
        let laws = group_laws(all, row, counts, &populations);
        let pairs = members_of(row).into_iter().zip(laws);
        pairs.map(|(members, law)| told(&law, summed(&values, &members))).collect::<Vec<_>>()
    });
    let categories = categories.collect();
    (values, categories)
}

/// The laws of the categories of one grouping, by the formulas of docs/mechanisms.md: with h of a block's inputs in the
/// category, a report of one of these adds base + delta + beta h, of another base + beta h, base + rho either way
/// where all are, and base where none is.
fn group_laws(all: &[Block], row: &[usize], counts: &Counts, populations: &[Vec<f64>; 2]) -> Vec<Cell> {
    let block_of = labels(&all.iter().map(|block| fit(block.size)).collect::<Vec<_>>());
    let by_block = |shares: &[f64]| {
        let mut found = vec![0.0; all.len()];
        shares.iter().zip(&block_of).for_each(|(share, &b)| found[b] += share);
        found
    };
    let reports: Vec<f64> = counts.cells.iter().map(|&count| count as f64 / counts.n as f64).collect();
    let (seen, crowds) = (by_block(&reports), populations.each_ref().map(|each| by_block(each)));
    let rho = over(all[0].total, all[0].scale);
    members_of(row)
        .iter()
        .map(|members| {
            let mut parts: Vec<(usize, Vec<usize>)> = vec![];
            for &x in members {
                match parts.iter_mut().find(|(b, _)| *b == block_of[x]) {
                    Some((_, held)) => held.push(x),
                    None => parts.push((block_of[x], vec![x])),
                }
            }
            let base = -parts.iter().map(|(b, held)| held.len() as f64 * over(all[*b].o, all[*b].scale)).sum::<f64>();
            let is_whole = |(b, held): &(usize, Vec<usize>)| held.len() as i128 == all[*b].size;
            let scores: Vec<(f64, f64)> = parts
                .iter()
                .map(|part| {
                    let (block, h) = (&all[part.0], part.1.len() as f64);
                    let lean = -over((block.u - block.o) * block.total, block.scale * block.step()) * h;
                    let delta = over(block.total, block.step());
                    if is_whole(part) { (base + rho, base + rho) } else { (base + delta + lean, base + lean) }
                })
                .collect();
            let everywhere = parts.len() == all.len();
            let mut ends: Vec<f64> = scores.iter().flat_map(|&(a, b)| [a, b]).collect();
            ends.extend((!everywhere).then_some(base));
            let (least, most) = span(&ends);
            let law = if parts.iter().all(is_whole) {
                let gap = if everywhere { 0.0 } else { rho };
                let odds = if gap > 0.0 { ((1.0 - base) / gap, -base / gap) } else { (0.0, 0.0) };
                let of = |share: f64| {
                    let spread = share * (1.0 - share);
                    (gap.powi(2) * spread, gap.powi(3) * spread * (1.0 - 2.0 * share))
                };
                counted(of(odds.0), of(odds.1), gap, odds)
            } else {
                // The mean of a power of the score, of the shares of reports: the category's, and the block's.
                let mean = |said: &[(f64, f64)], power: i32| {
                    let inside = said.iter().zip(&scores).map(|(&(mine, block), &(own, rest))| {
                        mine * own.powi(power) + (block - mine) * rest.powi(power)
                    });
                    let outside = 1.0 - said.iter().map(|(_, block)| block).sum::<f64>();
                    inside.sum::<f64>() + outside * base.powi(power)
                };
                let sent = |shares: &dyn Fn(&(usize, Vec<usize>)) -> (f64, f64)| -> Vec<(f64, f64)> {
                    let reported = |part: &(usize, Vec<usize>)| {
                        let (block, (mine, crowd)) = (&all[part.0], shares(part));
                        let extra = over(block.u - block.o, block.total);
                        let (each, hit) = (over(block.o, block.total) + extra * crowd, over(block.step(), block.total));
                        (part.1.len() as f64 * each + hit * mine, block.size as f64 * each + hit * crowd)
                    };
                    parts.iter().map(reported).collect()
                };
                let many = members.len() as f64;
                let alike = sent(&|(_, held)| (held.len() as f64 / many, held.len() as f64 / many));
                let own = about_one(mean(&alike, 2), mean(&alike, 3));
                let of = |i: usize| {
                    let share = |held: &[usize]| held.iter().map(|&x| populations[i][x]).sum::<f64>();
                    let law = sent(&|(b, held)| (share(held), crowds[i][*b]));
                    (share(members), mean(&law, 2), mean(&law, 3))
                };
                let far = elsewhere(own, [of(0), of(1)]);
                let said: Vec<(f64, f64)> = parts
                    .iter()
                    .map(|(b, held)| (held.iter().map(|&x| reports[x]).sum(), seen[*b]))
                    .collect();
                Law { observed: mean(&said, 2), ..counted(own, far, 0.0, (0.0, 0.0)) }
            };
            Cell { exact: Exact::of(0, 1), estimate: None, law: Some(law), least, most }
        })
        .collect()
}

/// Variance and third central moment of a score of mean 1, from its raw moments.
fn about_one(second: f64, third: f64) -> Moments {
    let v = second - 1.0;
    (v, third - 3.0 * v - 1.0)
}

/// The moments of devices elsewhere, of the population in which they vary more; of the first where both do alike.
fn elsewhere((v, k): Moments, populations: [(f64, f64, f64); 2]) -> Moments {
    let [one, other] = populations.map(|(share, second, third)| {
        let rest = 1.0 - share;
        if rest < 1e-9 {
            return (0.0, 0.0);
        }
        let variance: f64 = (second - share * (v + 1.0)) / rest;
        (variance.max(0.0), (third - share * (k + 3.0 * v + 1.0)) / rest)
    });
    if other.0 > one.0 * (1.0 + ALIKE) { other } else { one }
}

/// Cells that are in a share p of the reports of their own devices, and in q of all others': (C/n - q) / (p - q).
fn supports(p: &Exact, q: &Exact, asked: &Asked, counts: &Counts) -> Answer<(Vec<Cell>, Vec<Cell>)> {
    let one = Exact::of(1, 1);
    let gain = p.minus(q).inverse();
    let base = Exact::of(0, 1).minus(q).times(&gain);
    let (low, high) = (base.float(), one.minus(q).times(&gain).float());
    let odds = (p.float(), q.float());
    let moments = |share: f64| central(&[high, low], &[share, 1.0 - share]);
    let law = counted(moments(odds.0), moments(odds.1), gain.float(), odds);
    let cell = Cell { exact: Exact::of(0, 1), estimate: None, law: Some(law), least: low, most: high };
    let each = gain.times(&Exact::of(1, counts.n));
    let own = |&count: &i128| told(&cell, each.times(&Exact::of(count, 1)).plus(&base));
    let values: Vec<Cell> = counts.cells[..fit(asked.int("inputs")?)].iter().map(own).collect();
    let groups: Vec<Vec<usize>> = asked.rows.iter().flat_map(|row| members_of(row)).collect();
    let alone = groups.iter().all(|members| members.len() == 1);
    let none = Cell { law: None, ..cell.clone() };
    let of = |members: &Vec<usize>| if alone { values[members[0]].clone() } else { told(&none, summed(&values, members)) };
    Ok((values.clone(), groups.iter().map(of).collect()))
}

/// How many subsets of k there are.
fn choose(n: i128, k: i128) -> Exact {
    (1..=k).fold(Exact::of(1, 1), |found, i| found.times(&Exact::of(n - k + i, 1))).times(
        &(1..=k).fold(Exact::of(1, 1), |found, i| found.times(&Exact::of(i, 1))).inverse(),
    )
}
