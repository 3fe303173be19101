//! What a survey asks, as a release names it: values, categories, and the numbers that values stand for.

use crate::channel::labels;
use crate::pack::{fit, must, read, Answer, Value};

pub struct Asked {
    pub fields: Vec<Value>,
    pub values: Vec<String>,
    pub categories: Vec<String>,
    /// The category of every input, from 0, per margin.
    pub rows: Vec<Vec<usize>>,
    /// The category of every value by name, none where it is in several.
    pub of: Vec<Option<String>>,
    pub points: Option<Vec<Option<f64>>>,
    pub score: Option<(f64, f64)>,
    /// The attributes of every part of a bundle.
    pub parts: Option<Vec<Vec<String>>>,
}

const MISSING: &str = "missing";
const MOST: i128 = 1 << 62;

impl Asked {
    /// A survey that was read and keeps its rules.
    pub fn read(canonical: &[u8], inputs: usize) -> Answer<Asked> {
        let Value::Array(fields) = read(canonical)? else { return Err("no survey") };
        let mut found = Asked {
            fields,
            values: vec![],
            categories: vec![],
            rows: vec![],
            of: vec![],
            points: None,
            score: None,
            parts: None,
        };
        if found.fields.len() == 16 {
            found.single(inputs)?;
            return Ok(found);
        }
        let form = found.fields[8].array()?.to_vec();
        match form[0].text()? {
            "table" => found.table(&form, inputs)?,
            "score" => {
                let ends = form[4].array_of(2)?;
                found.score = Some((ends[0].float()?, ends[1].float()?));
            }
            "transition" => found.transition(&form)?,
            "key_value" => {
                let attribute = found.fields[5].array()?[0].array_of(4)?.to_vec();
                let ends = attribute[3].array()?;
                let end = |i: usize| ends[i].float().or_else(|_| Ok(ends[i].int(-MOST, MOST)? as f64));
                let points = grid(end(0)?, end(1)?, form[1].index(2, inputs)?);
                found.values = number_names(&points);
                found.values.push("absent".to_string());
                found.points = Some(points.iter().copied().map(Some).chain([None, None]).collect());
                found.grouped(&["present", "absent", MISSING], &[points.len(), 1, 1]);
            }
            "set" => {
                found.values = names(found.fields[5].array()?[0].array_of(4)?)?;
                found.values.push(MISSING.to_string());
                found.of = vec![None; inputs];
            }
            "bundle" => found.bundle(&form)?,
            _ => return Err("a form that this checker does not know"),
        }
        Ok(found)
    }

    pub fn spec(&self, key: &str) -> Answer<&Value> {
        let Value::Map(items) = &self.fields[7] else { return Err("no channel") };
        let found = items.iter().find(|(own, _)| own.text() == Ok(key));
        found.map(|(_, value)| value).ok_or("a key is missing")
    }

    pub fn int(&self, key: &str) -> Answer<i128> {
        self.spec(key)?.int(0, MOST)
    }

    pub fn ints(&self, key: &str) -> Answer<Vec<i128>> {
        self.spec(key)?.array()?.iter().map(|each| each.int(0, MOST)).collect()
    }

    fn single(&mut self, inputs: usize) -> Answer<()> {
        let mut sizes = vec![];
        for pair in self.fields[9].array()? {
            let pair = pair.array_of(2)?;
            self.categories.push(pair[0].text()?.to_string());
            sizes.push(pair[1].index(1, inputs)?);
        }
        let row = labels(&sizes);
        self.of = row.iter().map(|&c| Some(self.categories[c].clone())).collect();
        let attribute = self.fields[5].array_of(4)?;
        let last = inputs - 1;
        if attribute[2].text()? == "number" {
            let ends = attribute[3].array_of(2)?;
            let points = grid(ends[0].float()?, ends[1].float()?, last);
            self.values = number_names(&points);
            self.points = Some(points.into_iter().map(Some).chain([None]).collect());
        } else {
            let names = names(attribute)?;
            let mut indices: Vec<Vec<usize>> = vec![vec![]; last];
            for index in 0..names.len() {
                let map = &self.fields[8];
                let x = if map.is_nil() { index } else { map.array()?[index].index(0, last)? };
                indices[x].push(index);
            }
            let own = |(x, held): (usize, &Vec<usize>)| {
                if held.len() > 1 { self.of[x].clone().unwrap() } else { names[held[0]].clone() }
            };
            self.values = indices.iter().enumerate().map(own).collect();
            let alone = indices.iter().all(|held| held.len() == 1);
            if attribute[2].text()? == "integer" && alone {
                let number = |name: &String| name.parse::<f64>().ok();
                self.points = Some(self.values.iter().map(number).chain([None]).collect());
            }
        }
        self.values.push(MISSING.to_string());
        self.rows.push(row);
        Ok(())
    }

    /// Give every value its category, and the last value its name.
    fn grouped(&mut self, names: &[&str], sizes: &[usize]) {
        self.categories = names.iter().map(|name| name.to_string()).collect();
        let row = labels(sizes);
        self.of = row.iter().map(|&c| Some(self.categories[c].clone())).collect();
        self.values.push(MISSING.to_string());
        self.rows.push(row);
    }

    fn transition(&mut self, form: &[Value]) -> Answer<()> {
        let own = reading(self.fields[5].array()?[0].array_of(4)?, &form[2])?;
        let r = own.len() - 1;
        let pair = |a: usize, b: usize| format!("{} > {}", own[a], own[b]);
        let pairs = |many: usize| (0..many * many).map(move |i| (i / many, i % many));
        match form[4].text()? {
            "direction" => self.values = ["up", "same", "down"].map(String::from).to_vec(),
            "pairs" => self.values = pairs(r + 1).take(r * (r + 2)).map(|(a, b)| pair(a, b)).collect(),
            _ => {
                let moved = pairs(r).filter(|(a, b)| a != b).map(|(a, b)| pair(a, b));
                self.values = (0..r).map(|a| pair(a, a)).chain(moved).collect();
                self.grouped(&["same", "changed", MISSING], &[r, r * (r - 1), 1]);
                return Ok(());
            }
        }
        self.grouped(&["answered", MISSING], &[self.values.len(), 1]);
        Ok(())
    }

    fn bundle(&mut self, form: &[Value]) -> Answer<()> {
        let attributes = self.fields[5].array()?.to_vec();
        let (mut ids, mut named) = (vec![], vec![]);
        for (attribute, item) in attributes.iter().zip(form[1].array()?) {
            let (attribute, names) = (attribute.array_of(4)?, &item.array_of(2)?[1]);
            let id = attribute[0].text()?.to_string();
            named.push(reading(attribute, names)?.iter().map(|name| format!("{id}: {name}")).collect::<Vec<_>>());
            ids.push(id);
        }
        self.categories = named.concat();
        for table in form[2].array()? {
            let mut cells = vec![String::new()];
            for member in table.array()? {
                let own = &named[member.index(0, named.len() - 1)?];
                cells = crossed(&cells, own);
            }
            self.values.extend(cells);
        }
        self.of = vec![None; self.values.len()];
        let (orders, members) = (self.ints("orders")?, self.ints("members")?);
        let mut rest = members.iter().map(|&n| ids[fit::<i128>(n - 1)].clone());
        self.parts = Some(orders.iter().map(|&n| rest.by_ref().take(fit(n)).collect()).collect());
        Ok(())
    }

    fn table(&mut self, form: &[Value], inputs: usize) -> Answer<()> {
        let attributes = self.fields[5].array()?.to_vec();
        let mut repeat = inputs;
        self.values = vec![String::new()];
        for (attribute, item) in attributes.iter().zip(form[1].array()?) {
            let (attribute, named) = (attribute.array_of(4)?, &item.array_of(2)?[1]);
            let own = reading(attribute, named)?;
            self.values = crossed(&self.values, &own);
            repeat /= own.len();
            self.rows.push((0..inputs).map(|x| x / repeat % own.len()).collect());
            let id = attribute[0].text()?;
            self.categories.extend(own.iter().map(|name| format!("{id}: {name}")));
        }
        self.of = vec![None; inputs];
        Ok(())
    }
}

fn texts(value: &Value) -> Answer<Vec<String>> {
    value.array()?.iter().map(|name| Ok(name.text()?.to_string())).collect()
}

/// The names of cells, each with one more name behind it.
fn crossed(cells: &[String], own: &[String]) -> Vec<String> {
    let joined = |left: &String, name: &String| {
        if left.is_empty() { name.clone() } else { format!("{left} / {name}") }
    };
    cells.iter().flat_map(|left| own.iter().map(move |name| joined(left, name))).collect()
}

/// The names of what a reading tells apart, missing included.
fn reading(attribute: &[Value], named: &Value) -> Answer<Vec<String>> {
    let mut own = if named.is_nil() { names(attribute)? } else { texts(named)? };
    own.push(MISSING.to_string());
    Ok(own)
}

/// The names of the values of a discrete attribute.
fn names(attribute: &[Value]) -> Answer<Vec<String>> {
    if ["label", "set"].contains(&attribute[2].text()?) {
        return texts(&attribute[3]);
    }
    let ends = attribute[3].array()?;
    if attribute[2].text()? == "dictionary" {
        return Ok((1..=ends[0].int(2, 1 << 20)?).map(|n| format!("#{n}")).collect());
    }
    must(attribute[2].text()? == "integer", "a domain that this checker does not know")?;
    let numbers = (ends[0].int(-MOST, MOST)?..=ends[1].int(-MOST, MOST)?).map(|n| n.to_string());
    Ok(numbers.chain((ends.len() == 3).then(|| "absent".to_string())).collect())
}

fn grid(low: f64, high: f64, points: usize) -> Vec<f64> {
    let step = (high - low) / (points - 1) as f64;
    let along = |i: usize| {
        if step == 0.0 { i as f64 / (points - 1) as f64 * (high - low) } else { i as f64 * step }
    };
    (0..points).map(|i| if i == points - 1 { high } else { along(i) + low }).collect()
}

/// Names of different numbers, with six digits or as many as tell them apart.
fn number_names(numbers: &[f64]) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for digits in 6..=17 {
        found = numbers.iter().map(|&x| general(x, digits)).collect();
        let mut sorted = found.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() == numbers.len() {
            break;
        }
    }
    found
}

/// A number as "%g" of C writes it.
fn general(x: f64, digits: i32) -> String {
    let text = format!("{:.*e}", fit(digits - 1), x);
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let e: i32 = exponent.parse().unwrap();
    let trimmed = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }.to_string()
    };
    if x == 0.0 || (-4..digits).contains(&e) {
        let places = if x == 0.0 { 0 } else { digits - 1 - e };
        return trimmed(&format!("{:.*}", fit(places), x));
    }
    format!("{}e{}{:02}", trimmed(mantissa), if e < 0 { '-' } else { '+' }, e.abs())
}
