//! A release held beside its survey and its public counts: right, different, or not to be said.

use crate::asked::Asked;
use crate::channel::{labels, Kind};
use crate::ends::{is_nearest, quantile, Rule, SLACK};
use crate::exact::{sum, Exact};
use crate::json::{self, Json};
use crate::pack::{fit, hex, must, read, write, Answer};
use crate::scores::{families, Cell, Counts};
use crate::sha2::sha256;
use crate::survey::Survey;
use std::collections::BTreeSet;

/// The methods of releases whose rules these are.
const METHODS: [i128; 1] = [10];
const KINDS: [&str; 2] = ["values", "categories"];
const LEVEL: f64 = 0.95;

#[derive(Default)]
pub struct Checked {
    /// Facts and numbers that are right.
    pub right: usize,
    /// Places that are wrong, with what they should be.
    pub differences: Vec<(String, String)>,
    pub unchecked: Vec<String>,
    covered: BTreeSet<String>,
}

impl Checked {
    fn fact(&mut self, path: &str, holds: bool, due: impl ToString) -> bool {
        self.covered.insert(path.to_string());
        self.right += usize::from(holds);
        if !holds {
            self.differences.push((path.to_string(), due.to_string()));
        }
        holds
    }

    fn number(&mut self, path: &str, said: Option<f64>, due: Option<f64>) {
        let near = match (said, due) {
            (Some(said), Some(due)) => (said - due).abs() <= SLACK * due.abs().max(1.0),
            _ => said == due,
        };
        self.fact(path, near, due.map_or("null".to_string(), |due| due.to_string()));
    }

    fn cover(&mut self, paths: &[&str]) {
        self.covered.extend(paths.iter().map(|path| path.to_string()));
    }
}

pub fn check(canonical: &[u8], data: &[u8], release: &[u8]) -> Answer<Checked> {
    let survey = Survey::read(canonical)?;
    let asked = Asked::read(canonical, survey.channel.inputs)?;
    let document = json::read(release)?;
    let mut checked = Checked::default();
    if let Err(rule) = whole(&mut checked, &survey, &asked, &document, data) {
        checked.differences.push(("the release".to_string(), rule.to_string()));
    }
    let plain: BTreeSet<String> = checked.covered.iter().map(|path| without_places(path)).collect();
    let mut found = BTreeSet::new();
    uncovered(&document, String::new(), &plain, &mut found);
    checked.unchecked = found.into_iter().collect();
    Ok(checked)
}

fn without_places(path: &str) -> String {
    path.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect()
}

/// The parts that nothing was held beside: whole where no part of them was.
fn uncovered(part: &Json, path: String, covered: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    if covered.contains(&path) {
        return;
    }
    match part {
        Json::Array(items) => items.iter().for_each(|each| uncovered(each, path.clone(), covered, found)),
        Json::Object(items) => {
            for (key, each) in items {
                let own = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                uncovered(each, own, covered, found);
            }
        }
        _ => {
            let top = path.split('.').next().unwrap();
            let touched = covered.iter().any(|other| other.split('.').next() == Some(top));
            found.insert(if touched { path } else { top.to_string() });
        }
    }
}

fn whole(checked: &mut Checked, survey: &Survey, asked: &Asked, document: &Json, data: &[u8]) -> Answer<()> {
    let start = facts(checked, survey, asked, document)?;
    let Some(counts) = counts_of(checked, survey, asked, document, data, start)? else { return Ok(()) };
    let found = if asked.score.is_none() && asked.parts.is_none() { families(asked, &counts)? } else { None };
    let due = [&asked.values, &asked.categories];
    let none = asked.score.is_some();
    for (i, kind) in KINDS.iter().enumerate() {
        let cells = document.get(kind)?.items()?;
        let names: &[String] = if none { &[] } else { due[i] };
        checked.fact(&format!("{kind}: how many"), cells.len() == names.len(), names.len());
        let said = cells.iter().map(|cell| Ok(cell.get("label")?.text())).collect::<Answer<Vec<_>>>()?;
        let same = said.iter().copied().eq(names.iter().map(|name| Some(name.as_str())));
        checked.fact(&format!("{kind}: labels"), same, "those of the survey");
        checked.cover(&[&format!("{kind}.label")]);
        if let Some((values, categories)) = &found {
            family(checked, document, kind, if i == 0 { values } else { categories }, counts.n as f64)?;
        }
    }
    let places = document.get("values")?.items()?;
    let said = places.iter().map(|cell| cell.get("category")).collect::<Answer<Vec<_>>>()?;
    let fits = |(said, due): (&&Json, &Option<String>)| {
        due.as_ref().map_or(said.is_null(), |due| said.text() == Some(due))
    };
    let right = said.len() == asked.of.len() && said.iter().zip(&asked.of).all(fits);
    checked.fact("values: categories", right || none, "those of the survey");
    checked.cover(&["values.category"]);
    if let Some(parts) = &asked.parts {
        let lines = document.get("parts")?.items()?;
        let reports = lines.iter().zip(&counts.cells).map(|(line, &due)| Ok(line.get("reports")?.whole() == Some(due)));
        let right = lines.len() == parts.len() && reports.collect::<Answer<Vec<_>>>()?.iter().all(|&same| same);
        checked.fact("parts: reports", right, "those of the counts");
        for (i, (line, (due, share))) in lines.iter().zip(parts.iter().zip(asked.ints("shares")?)).enumerate() {
            let said = line.get("attributes")?.items()?.iter().map(Json::text);
            checked.fact("parts: attributes", said.eq(due.iter().map(|id| Some(id.as_str()))), due.join(", "));
            let expected = Exact::of(counts.n * share, 1 << 32).float();
            checked.number(&format!("parts[{i}].expected"), line.get("expected")?.number()?, Some(expected));
        }
        if let Ok(classes) = asked.ints("classes") {
            let said = lines.iter().map(|line| line.get("tells").ok().and_then(Json::text));
            let due = classes.iter().map(|&g| (g > 1).then_some("interaction"));
            checked.fact("parts: tells", said.eq(due), "an interaction where there are classes");
        }
        checked.cover(&["parts.reports", "parts.attributes", "parts.tells"]);
        return Ok(());
    }
    if found.is_none() && !none {
        normal_equations(checked, survey, asked, document, &counts)?;
    }
    mean(checked, asked, document, &counts, found.as_ref().map(|(values, _)| &values[..]))?;
    if none { Ok(()) } else { consistent(checked, asked, document) }
}

/// Check what the survey says; return the round, from 1.
fn facts(checked: &mut Checked, survey: &Survey, asked: &Asked, document: &Json) -> Answer<i128> {
    let (fields, about) = (&asked.fields, document.get("survey")?);
    let terms = &fields[fields.len() - 6..];
    let schedule = terms[0].array()?;
    let [start, length, rounds] = [0, 1, 2].map(|i| schedule[i].int(0, 1 << 53).unwrap_or(0));
    checked.fact("survey.id", about.get("id")?.text() == Some(fields[2].text()?), fields[2].text()?);
    let version = fields[3].int(1, 1 << 31)?;
    checked.fact("survey.version", about.get("version")?.whole() == Some(version), version);
    let digest = hex(&survey.digest);
    checked.fact("survey.digest", about.get("digest")?.text() == Some(&digest), &digest);
    checked.fact("survey.title", about.get("title")?.text() == Some(fields[4].text()?), fields[4].text()?);
    let round = document.get("round")?.whole().unwrap_or(0);
    if checked.fact("round is in the schedule", (1..=rounds).contains(&round), rounds) {
        let begin = start + (round - 1) * length;
        for (key, second) in [("start", begin), ("end", begin + length)] {
            let due = timestamp(second);
            checked.fact(key, document.get(key)?.text() == Some(&due), due.clone());
        }
    }
    checked.fact("sealed", matches!(document.get("sealed")?, Json::Bool(true)), true);
    checked.fact("level", document.get("level")?.number()? == Some(LEVEL), LEVEL);
    let (epsilon, declared) = (document.get("epsilon")?, fields[6].float()?);
    for (key, due) in [("declared", declared), ("certified", survey.certified)] {
        checked.fact(&format!("epsilon.{key}"), epsilon.get(key)?.number()? == Some(due), due);
    }
    let Json::Object(verdicts) = document.get("accounting")? else { return Err("no accounting") };
    let many = |skip: &str| verdicts.iter().filter(|(key, _)| key != skip).map(|(_, n)| n.whole()).sum();
    let attempts: Option<i128> = many("attempts");
    let said = document.get("accounting")?;
    checked.fact("accounting.attempts", attempts.is_some() && said.get("attempts")?.whole() == attempts, "the sum");
    let devices = document.get("devices")?.whole();
    checked.fact("devices", devices.is_some() && devices == said.get("accepted")?.whole(), "those accepted");
    let few = devices < Some(terms[3].int(1, 1 << 53)?.max(1));
    let Json::Bool(suppressed) = document.get("suppressed")? else { return Err("no flag") };
    checked.fact("suppressed", *suppressed == few, few);
    let known = document.get("method")?.whole().is_some_and(|method| METHODS.contains(&method));
    checked.fact("method", known, "one that this checker knows");
    checked.cover(&["round", "accounting.accepted"]);
    Ok(round)
}

/// Seconds of Unix time as a date and a time of day.
fn timestamp(seconds: i128) -> String {
    let (mut days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let is_leap = |year: i128| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + i128::from(is_leap(year)) {
        days -= 365 + i128::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i128::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}

fn counts_of(
    checked: &mut Checked,
    survey: &Survey,
    asked: &Asked,
    document: &Json,
    data: &[u8],
    round: i128,
) -> Answer<Option<Counts>> {
    let stated = document.get("counts")?;
    let sha = hex(&sha256(data));
    if !checked.fact("counts.sha256", stated.get("sha256")?.text() == Some(&sha), &sha) {
        return Ok(None);
    }
    let Ok((digest, own, kind, counts)) = read_counts(data) else {
        checked.fact("counts", false, "the one encoding of counts");
        return Ok(None);
    };
    let cells = counts.cells.len() as i128;
    let mut fine = checked.fact("counts.kind", stated.get("kind")?.text() == Some(&kind), &kind);
    fine &= checked.fact("counts.cells", stated.get("cells")?.whole() == Some(cells), cells);
    fine &= checked.fact("counts' digest", digest == survey.digest, "the survey's");
    fine &= checked.fact("counts' round", own == round - 1, round - 1);
    fine &= checked.fact("devices", document.get("devices")?.whole() == Some(counts.n), counts.n);
    let (bins, agree) = if kind == "bins" { bins_of(survey, asked, &counts)? } else { supports_agree(survey, asked, &counts) };
    fine &= checked.fact("counts can be those of n reports", agree, true);
    fine &= bins.is_none_or(|bins| checked.fact("counts.cells", cells == bins, bins));
    Ok(fine.then_some(counts))
}

type Read = (Vec<u8>, i128, String, Counts);

fn read_counts(data: &[u8]) -> Answer<Read> {
    let value = read(data)?;
    let mut again = vec![];
    write(&mut again, &value);
    must(again == data, "another encoding")?;
    let fields = value.array_of(7)?;
    must(fields[0].text()? == "hubbub-counts", "no counts")?;
    fields[1].int(1, 1)?;
    let (kind, n) = (fields[4].text()?.to_string(), fields[5].int(1, (1 << 63) - 1)?);
    must(["bins", "support"].contains(&kind.as_str()), "an unknown kind of counts")?;
    let (mut cells, mut cell, mut shift) = (vec![], 0i128, 0);
    for &byte in fields[6].binary()? {
        must(shift <= 56, "a cell above n")?;
        cell |= i128::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            must(cell <= n && (byte > 0 || shift == 7), "a cell above n, or too long")?;
            cells.push(cell);
            (cell, shift) = (0, 0);
        }
    }
    must(shift == 0 && !cells.is_empty() && cells.len() <= 1 << 24, "cells, the last one whole")?;
    Ok((fields[2].binary()?.to_vec(), fields[3].int(0, (1 << 63) - 1)?, kind, Counts { n, cells }))
}

/// How many bins the counts have, and whether these can be those of n reports.
fn bins_of(survey: &Survey, asked: &Asked, counts: &Counts) -> Answer<(Option<i128>, bool)> {
    let Counts { n, cells } = counts;
    let (n, all) = (*n, |part: &[i128]| part.iter().sum::<i128>());
    let channel = &survey.channel;
    let (bins, agree) = match &channel.kind {
        Kind::Subset(set) => (channel.inputs, all(cells) == set.size as i128 * n),
        Kind::Unary { .. } => (channel.inputs, true),
        Kind::SetLevels { levels, sets, .. } | Kind::Tree { levels, sets, .. } => {
            let depth = sets.len();
            let bins = depth + levels.counts.iter().sum::<usize>();
            let mut at = depth;
            let mut whole = cells.len() == bins && all(&cells[..depth]) == n;
            for (j, &many) in levels.counts.iter().enumerate().filter(|_| cells.len() == bins) {
                whole &= all(&cells[at..at + many]) == cells[j] * sets[j].size as i128;
                at += many;
            }
            (bins, whole)
        }
        Kind::Orbits(_) => orbit_bins(asked, channel.inputs, counts)?,
        Kind::Items(items) => (items.inputs + items.most, all(cells) == asked.int("size")? * n),
        Kind::Parts(parts) => {
            let (many, ends) = (parts.sets.len(), parts.sets.iter().map(|set| set.inputs).sum::<usize>());
            let mut whole = cells.len() == many + ends && all(&cells[..many]) == n;
            let mut at = many;
            for (j, set) in parts.sets.iter().enumerate().filter(|_| cells.len() == many + ends) {
                let own = &cells[at..at + set.inputs];
                whole &= parts.agrees(j, own, cells[j]) && own.iter().all(|&cell| cell <= cells[j]);
                at += set.inputs;
            }
            (many + ends, whole)
        }
        _ => (fit(channel.outputs), all(cells) == n),
    };
    Ok((Some(bins as i128), agree && cells.len() == bins))
}

fn orbit_bins(asked: &Asked, inputs: usize, counts: &Counts) -> Answer<(usize, bool)> {
    let (sizes, missing, held) = (asked.ints("sizes")?, asked.ints("missing")?, asked.ints("counts")?);
    let mut classes = sizes.clone();
    classes.sort_by(|a, b| b.cmp(a));
    classes.dedup();
    let category_of = labels(&sizes.iter().map(|&size| fit(size)).collect::<Vec<_>>());
    let (width, values) = (1 + inputs, category_of.len());
    let bins = missing.len() * width;
    let mut agree = counts.cells.len() == bins;
    let mut reports = 0;
    for t in (0..missing.len()).filter(|_| counts.cells.len() == bins) {
        let row = &counts.cells[t * width..(t + 1) * width];
        let mut due = held[t * sizes.len()..(t + 1) * sizes.len()].iter();
        for &size in &classes {
            let many = sizes.iter().filter(|&&each| each == size).count();
            let in_it: i128 = due.by_ref().take(many).sum();
            let hits: i128 = (0..values).filter(|&x| sizes[category_of[x]] == size).map(|x| row[1 + x]).sum();
            agree &= hits == row[0] * in_it;
        }
        agree &= inputs == values || row[inputs] == row[0] * missing[t];
        agree &= row[1..].iter().all(|&each| each <= row[0]);
        reports += row[0];
    }
    Ok((bins, agree && reports == counts.n))
}

/// Whether supports and the histograms of categories after them can be those of n reports.
fn supports_agree(survey: &Survey, asked: &Asked, counts: &Counts) -> (Option<i128>, bool) {
    let Kind::Hashing { pool, .. } = &survey.channel.kind else { return (None, false) };
    let inputs = survey.channel.inputs;
    let (mut at, mut agree) = (inputs, counts.cells.len() >= inputs);
    for row in asked.rows.iter().filter(|_| counts.cells.len() >= inputs) {
        for category in 0..=*row.iter().max().unwrap() {
            let members: Vec<usize> = (0..inputs).filter(|&x| row[x] == category).collect();
            if members.len() == 1 {
                continue;
            }
            let mut most = 0;
            for seed in 0..pool.seeds {
                let mut held = vec![0; fit(pool.q)];
                members.iter().for_each(|&x| held[fit::<u64>(pool.cell(seed, x as u64))] += 1);
                most = most.max(*held.iter().max().unwrap());
            }
            let Some(sizes) = counts.cells.get(at..at + most + 1) else { return (None, false) };
            at += sizes.len();
            let many: i128 = sizes.iter().enumerate().map(|(size, count)| size as i128 * count).sum();
            let due: i128 = members.iter().map(|&x| counts.cells[x]).sum();
            agree &= sizes.iter().sum::<i128>() == counts.n && many == due;
        }
    }
    (None, agree && at == counts.cells.len())
}

fn column(cells: &[Json], key: &str) -> Answer<Vec<Option<f64>>> {
    cells.iter().map(|cell| cell.get(key)?.number()).collect()
}

fn family(checked: &mut Checked, document: &Json, kind: &str, family: &[Cell], n: f64) -> Answer<()> {
    let cells = document.get(kind)?.items()?;
    if cells.len() != family.len() {
        return Ok(());
    }
    for (i, said) in column(cells, "estimate")?.into_iter().enumerate() {
        checked.number(&format!("{kind}[{i}].estimate"), said, family[i].estimate);
    }
    if family.iter().any(|cell| cell.law.is_none()) {
        return Ok(());
    }
    let enrolment = document.get("enrolment")?;
    let asked = if enrolment.is_null() { None } else { enrolment.get("asked")?.number()? };
    let drawn = asked.filter(|&asked| asked >= n).map_or(1.0, |asked| 1.0 - n / asked);
    let error = |cell: &Cell, drawn: Option<f64>| {
        cell.estimate.map(|e| cell.law.as_ref().unwrap().error(n, e.clamp(0.0, 1.0), drawn))
    };
    for (key, drawn) in [("error", None), ("crowd_error", Some(drawn))] {
        for (i, said) in column(cells, key)?.into_iter().enumerate() {
            checked.number(&format!("{kind}[{i}].{key}"), said, error(&family[i], drawn));
        }
    }
    for before in ["", "simultaneous_", "crowd_", "crowd_simultaneous_"] {
        let many = if before.contains("simultaneous") { cells.len().max(1) } else { 1 };
        let tail = (1.0 - LEVEL) / (2.0 * many as f64);
        let drawn = before.starts_with("crowd").then_some(drawn);
        let rule = Rule { z: quantile(tail), tail, drawn };
        let [low, high] = ["low", "high"].map(|end| column(cells, &format!("{before}{end}")));
        for (i, (low, high)) in low?.into_iter().zip(high?).enumerate() {
            let right = match (family[i].estimate, low, high) {
                (None, low, high) => low.is_none() && high.is_none(),
                (Some(e), Some(low), Some(high)) => !family[i].law.as_ref().unwrap().is_wrong(e, low, high, n, &rule),
                _ => false,
            };
            let path = format!("{kind}[{i}].{before}low to high");
            checked.fact(&path, right, "the ends that the rule accepts last");
        }
        checked.cover(&[&format!("{kind}.{before}low"), &format!("{kind}.{before}high")]);
    }
    let margins = document.get("poison_margin")?;
    let stated = if margins.is_null() { &[][..] } else { margins.get(kind)?.items()? };
    if !checked.fact(&format!("poison_margin.{kind}: how many"), stated.len() == family.len(), family.len()) {
        return Ok(());
    }
    let z = quantile((1.0 - LEVEL) / 2.0);
    for (i, (cell, said)) in family.iter().zip(stated).enumerate() {
        let path = format!("poison_margin.{kind}[{i}]");
        let margin = cell.estimate.and_then(|e| {
            let half = z * error(cell, None).unwrap();
            let pull = (cell.most - e).max(e - cell.least) - half;
            (pull > 1e-12 * cell.most.max(-cell.least).max(1.0)).then_some(half * n / pull)
        });
        // A quotient beside a whole number may be rounded up to either.
        let due = margin.map(|m| [1.0 - SLACK, 1.0 + SLACK].map(|side| (m * side).ceil().max(1.0)));
        let right = due.map_or(said.is_null(), |due| said.number().is_ok_and(|said| due.map(Some).contains(&said)));
        checked.fact(&path, right, due.map_or("null".to_string(), |due| due[1].to_string()));
    }
    checked.cover(&[&format!("poison_margin.{kind}")]);
    Ok(())
}

/// Check the raw values of a table of probabilities: with rows P, the mean row d and counts C, the values f have
/// P diag(1/d) (P^T f - C/n) = 0.
fn normal_equations(
    checked: &mut Checked,
    survey: &Survey,
    asked: &Asked,
    document: &Json,
    counts: &Counts,
) -> Answer<()> {
    let Kind::Dense { outputs, weights } = &survey.channel.kind else { return Ok(()) };
    let values: Option<Vec<f64>> = column(document.get("values")?.items()?, "estimate")?.into_iter().collect();
    let Some(values) = values else { return Ok(()) };
    let total = survey.channel.total as f64;
    let rows: Vec<Vec<f64>> =
        weights.chunks(*outputs).map(|row| row.iter().map(|&w| w as f64 / total).collect()).collect();
    let common = asked.ints("common").unwrap_or(vec![1; rows.len()]);
    let all = common.iter().sum::<i128>() as f64;
    must(values.len() == rows.len(), "another number of values")?;
    let left: Vec<f64> = (0..*outputs)
        .map(|y| {
            let expected: f64 = rows.iter().zip(&values).map(|(row, f)| row[y] * f).sum();
            let mean: f64 = rows.iter().zip(&common).map(|(row, &c)| c as f64 / all * row[y]).sum();
            (expected - counts.cells[y] as f64 / counts.n as f64) / mean
        })
        .collect();
    let slack = SLACK * values.iter().fold(1.0, |most: f64, f| most.max(f.abs()));
    for (x, row) in rows.iter().enumerate() {
        let off: f64 = row.iter().zip(&left).map(|(p, l)| p * l).sum();
        checked.fact(&format!("values[{x}].estimate"), off.abs() <= slack, "a solution");
    }
    let shown = column(document.get("categories")?.items()?, "estimate")?;
    for (c, said) in shown.into_iter().enumerate() {
        let held = values.iter().zip(&asked.rows[0]).filter(|(_, &row)| row == c).map(|(f, _)| f);
        checked.number(&format!("categories[{c}].estimate"), said, Some(held.sum()));
    }
    Ok(())
}

fn mean(
    checked: &mut Checked,
    asked: &Asked,
    document: &Json,
    counts: &Counts,
    values: Option<&[Cell]>,
) -> Answer<()> {
    let said = document.get("mean")?;
    if let Some((low, high)) = asked.score {
        let (t, u) = (asked.int("t")?, asked.int("u")?);
        let width = Exact::of_float(high).plus(&Exact::of_float(low).times(&Exact::of(-1, 1)));
        // The share at the upper end: (share of "yes" - u/T) T/(t - u).
        let yes = Exact::of(counts.cells[1], counts.n).times(&Exact::of(t + u, t - u));
        let place = width.times(&yes.plus(&Exact::of(-u, t - u)));
        let due = Exact::of_float(low).plus(&place).float();
        checked.number("mean.estimate", said.get("estimate")?.number()?, Some(due));
        let (n, least) = (counts.n as f64, Exact::of(u, t + u).float());
        let spread = (counts.cells[1] as f64 / n).clamp(least, 1.0 - least);
        let wide = width.times(&Exact::of(t + u, t - u)).float();
        let error = wide * (spread * (1.0 - spread) / n).sqrt();
        checked.number("mean.error", said.get("error")?.number()?, Some(error));
        return Ok(());
    }
    let Some(points) = &asked.points else {
        checked.fact("mean", said.is_null(), "null");
        return Ok(());
    };
    let Some(values) = values.filter(|values| values.iter().all(|cell| cell.estimate.is_some())) else {
        return Ok(());
    };
    if said.is_null() {
        return Ok(());
    }
    let known: Vec<(f64, &Exact)> =
        points.iter().zip(values).filter_map(|(point, cell)| point.map(|p| (p, &cell.exact))).collect();
    let answered = sum(known.iter().map(|(_, share)| *share));
    let held: Vec<Exact> = known.iter().map(|(point, share)| Exact::of_float(*point).times(share)).collect();
    if answered.is_positive() {
        let due = sum(held.iter()).times(&answered.inverse()).float();
        checked.number("mean.estimate", said.get("estimate")?.number()?, Some(due));
    }
    Ok(())
}

/// Check that the consistent view is the nearest one to the raw estimates that are stated.
fn consistent(checked: &mut Checked, asked: &Asked, document: &Json) -> Answer<()> {
    let view = document.get("consistent")?;
    let raw = |kind: &str| column(document.get(kind)?.items()?, "estimate");
    let shown = |kind: &str| view.get(kind)?.items()?.iter().map(Json::number).collect::<Answer<Vec<_>>>();
    let (raw, shown) = ([raw("values")?, raw("categories")?], [shown("values")?, shown("categories")?]);
    checked.cover(&["consistent.values", "consistent.categories"]);
    if [0, 1].iter().any(|&i| raw[i].len() != shown[i].len()) {
        checked.fact("consistent: how many", false, "all cells");
        return Ok(());
    }
    if asked.rows.is_empty() {
        // Items of sets, each by itself.
        for (i, (&said, &raw)) in shown[0].iter().zip(&raw[0]).enumerate() {
            checked.number(&format!("consistent.values[{i}].share"), said, raw.map(|x| x.clamp(0.0, 1.0)));
        }
        return Ok(());
    }
    let mut group = |path: &str, which: usize, members: &[usize], total: Option<f64>| {
        let picked = |from: &[Option<f64>]| members.iter().map(|&x| from[x]).collect::<Vec<_>>();
        let (estimates, cells) = (picked(&raw[which]), picked(&shown[which]));
        let right = match (estimates.into_iter().collect::<Option<Vec<f64>>>(), total) {
            (Some(estimates), Some(total)) => {
                let cells: Option<Vec<f64>> = cells.into_iter().collect();
                cells.is_some_and(|cells| is_nearest(&estimates, &cells, total))
            }
            // A cell that the channel hides has no view, nor has any value beside it.
            _ => cells.iter().all(Option::is_none),
        };
        checked.fact(path, right, "the nearest one to the raw estimates");
    };
    if let [row] = &asked.rows[..] {
        group("consistent.categories", 1, &(0..raw[1].len()).collect::<Vec<_>>(), Some(1.0));
        for (c, &total) in shown[1].iter().enumerate() {
            let members: Vec<usize> = (0..row.len()).filter(|&x| row[x] == c).collect();
            group(&format!("consistent.values of category {c}"), 0, &members, total);
        }
        return Ok(());
    }
    let mut first = 0;
    let mut due = vec![];
    for row in &asked.rows {
        let many = row.iter().max().unwrap() + 1;
        let own = |c: usize| row.iter().zip(&shown[0]).filter(|(&r, _)| r == c).map(|(_, x)| *x).sum::<Option<f64>>();
        due.extend((0..many).map(|c| (first + c, own(c))));
        first += many;
    }
    drop(group);
    for (c, due) in due {
        checked.number(&format!("consistent.categories[{c}]"), shown[1][c], due);
    }
    let cells: (Option<Vec<f64>>, Option<Vec<f64>>) =
        (raw[0].iter().copied().collect(), shown[0].iter().copied().collect());
    let right = matches!(&cells, (Some(raw), Some(shown)) if is_nearest(raw, shown, 1.0));
    checked.fact("consistent.values", right, "the nearest one to the raw estimates");
    Ok(())
}
