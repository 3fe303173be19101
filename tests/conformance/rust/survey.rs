//! Surveys: canonical bytes, their rules, and which input a value is.

use crate::big::{exact_sum, exp_below, ln_above, parts, place, Big};
use crate::channel::{self, Channel, Kind};
use crate::draw::{Input, Source};
use crate::pack::{fit, must, read, write, Answer, Value};
use crate::sha2::sha256;
use crate::slots::toss;

pub const MAX_BYTES: usize = 1 << 24;
const MAX_ELEMENTS: usize = 10 << 17;
const MAX_SIZE: i128 = (1 << 20) - 1;
const EXACT: i128 = (1 << 53) - 1;
const ABSENT: &str = "absent";
const DAY: i128 = 86_400;
pub const MAX_ROTATION: i128 = 100_000;

pub enum Domain {
    /// Ends, and whether "absent" is a value beside them; of numbers alike.
    Integers(i128, i128, bool),
    Labels(Vec<String>),
    Numbers(f64, f64, bool),
    Items(Vec<String>),
    /// How many texts, their digest, and their hashes once they are at hand.
    Dictionary(usize, [u8; 32], Option<Vec<u64>>),
}

pub struct Attribute {
    id: String,
    evolves: bool,
    domain: Domain,
}

pub enum Form {
    /// One attribute: the input of every index, or none for numbers.
    Single(Option<Vec<usize>>),
    /// The reading of every index, per attribute.
    Table(Vec<Vec<usize>>),
    /// The input of every index, or of two, and then how many each has.
    Tree(Vec<usize>, Option<usize>),
    /// The reading of every index, what is asked of two, and how many inputs there are.
    Transition(Vec<usize>, Asks, usize),
    /// The most items that count, and whether having more is an item, the last but missing.
    Items(usize, bool),
    /// The reading of every index, per attribute.
    Bundle(Vec<Vec<usize>>),
    /// The points of the grid of a number that may be absent.
    KeyValue(usize),
    Score(Score),
}

pub enum Asks {
    Pairs,
    Changed,
    Direction,
}

pub struct Score {
    logistic: bool,
    coefficients: Vec<f64>,
    defaults: Vec<f64>,
    intercept: f64,
    low: f64,
    high: f64,
}

pub struct Survey {
    pub digest: [u8; 16],
    pub certified: f64,
    pub attributes: Vec<Attribute>,
    pub channel: Channel,
    pub form: Form,
}

fn short(text: &Value, most: usize) -> Answer<&str> {
    let found = text.text()?;
    must(found.chars().count() <= most, "text too long")?;
    Ok(found)
}

/// Text of 1 to 200 characters none of which is a control, a separator but a space, or unassigned; of the signs
/// that are not seen, the two joiners alone.
fn printable(text: &Value) -> Answer<&str> {
    let found = short(text, 200)?;
    let space_or_joiner = |c: char| {
        matches!(c, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{200c}' | '\u{200d}' | '\u{202f}')
            || matches!(c, '\u{205f}' | '\u{3000}')
    };
    let plain = |c: char| {
        let shown = format!("{:?}", format!("a{c}"));
        space_or_joiner(c) || (!shown.contains("\\u{") && !matches!(c, '\0' | '\t' | '\n' | '\r'))
    };
    must(!found.is_empty() && found.chars().all(plain), "text must be printable")?;
    Ok(found)
}

fn identifier(text: &Value) -> Answer<&str> {
    let found = short(text, 64)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    must(found.starts_with(plain), "an id begins with a letter or digit")?;
    must(found.chars().all(|c| plain(c) || ".-_".contains(c)), "an id of a-z 0-9 . - _")?;
    Ok(found)
}

fn all_differ<T: Ord>(items: impl Iterator<Item = T>) -> bool {
    let mut items: Vec<T> = items.collect();
    let count = items.len();
    items.sort();
    items.dedup();
    items.len() == count
}

impl Attribute {
    fn read(value: &Value) -> Answer<Attribute> {
        let [id, kind, name, domain] = value.array_of(4)? else { unreachable!() };
        let id = identifier(id)?.to_string();
        let evolves = short(kind, 64)? == "evolving";
        must(evolves || short(kind, 64)? == "static", "static or evolving")?;
        let domain = match short(name, 64)? {
            "label" | "set" => {
                let items = domain.array()?;
                let labels = items.iter().map(|item| Ok(short(item, 200)?.to_string()));
                let labels = labels.collect::<Answer<Vec<String>>>()?;
                must((2..=MAX_SIZE).contains(&(labels.len() as i128)), "two labels and more")?;
                must(labels.iter().all(|label| !label.is_empty()), "an empty label")?;
                must(all_differ(labels.iter()), "labels must differ")?;
                if name.text()? == "set" { Domain::Items(labels) } else { Domain::Labels(labels) }
            }
            "integer" => {
                let (ends, absent) = ends_of(domain)?;
                let (low, high) = (ends[0].int(-EXACT, EXACT)?, ends[1].int(-EXACT, EXACT)?);
                must(low < high && high - low + i128::from(absent) < MAX_SIZE, "an integer domain out of range")?;
                Domain::Integers(low, high, absent)
            }
            "number" => {
                let (ends, absent) = ends_of(domain)?;
                let (low, high) = (ends[0].float()?, ends[1].float()?);
                must(low < high && (high - low).is_finite(), "a domain of numbers out of range")?;
                Domain::Numbers(low, high, absent)
            }
            "dictionary" => {
                let [size, digest] = domain.array_of(2)? else { unreachable!() };
                let digest = digest.binary()?.try_into().map_err(|_| "a digest of 32 bytes")?;
                Domain::Dictionary(size.index(2, fit(MAX_SIZE))?, digest, None)
            }
            _ => return Err("an unknown type"),
        };
        Ok(Attribute { id, evolves, domain })
    }

    fn tells_absent(&self) -> bool {
        matches!(self.domain, Domain::Integers(_, _, true) | Domain::Numbers(_, _, true))
    }

    /// Values of a domain that is no interval.
    fn size(&self) -> Answer<usize> {
        match &self.domain {
            Domain::Integers(low, high, absent) => Ok(fit(high - low + 1 + i128::from(*absent))),
            Domain::Labels(labels) => Ok(labels.len()),
            Domain::Dictionary(size, ..) => Ok(*size),
            _ => Err("what has no places"),
        }
    }

    fn index(&self, value: &Value) -> usize {
        let size = self.size().unwrap();
        let whole = match value {
            Value::Int(n) => Some(*n),
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 1e17 => Some(*x as i128),
            _ => None,
        };
        match (&self.domain, value) {
            (Domain::Integers(_, _, true), Value::Text(s)) if s == ABSENT => size - 1,
            (Domain::Integers(low, high, _), _) => match whole {
                Some(n) if (*low..=*high).contains(&n) => fit(n - low),
                _ => size,
            },
            (Domain::Labels(labels), Value::Text(s)) => {
                labels.iter().position(|label| label == s).unwrap_or(size)
            }
            (Domain::Dictionary(_, _, Some(hashes)), Value::Text(s)) => {
                let own = u64::from_be_bytes(sha256(s.as_bytes())[..8].try_into().unwrap());
                hashes.binary_search(&own).unwrap_or(size)
            }
            _ => size,
        }
    }

    /// Take the hashes of the dictionary's texts, which must rise.
    fn take(&mut self, data: &[u8]) -> Answer<()> {
        if let Domain::Dictionary(size, digest, hashes) = &mut self.domain {
            must(data.len() == 8 * *size && sha256(data) == *digest, "another dictionary")?;
            let listed: Vec<u64> = data.chunks(8).map(|each| u64::from_be_bytes(each.try_into().unwrap())).collect();
            must(listed.windows(2).all(|pair| pair[0] < pair[1]), "hashes that rise")?;
            *hashes = Some(listed);
        }
        Ok(())
    }

    fn ends(&self) -> Answer<(f64, f64)> {
        match &self.domain {
            Domain::Integers(low, high, _) => Ok((*low as f64, *high as f64)),
            Domain::Numbers(low, high, _) => Ok((*low, *high)),
            _ => Err("labels in a score"),
        }
    }

    /// A number of the domain as sign, mantissa and exponent, and as a float.
    fn number(&self, value: &Value) -> Option<((bool, Big, i32), f64)> {
        let (low, high) = self.ends().ok()?;
        let whole = matches!(self.domain, Domain::Integers(..));
        match value {
            Value::Int(n) => {
                let exact = (*n < 0, Big::of(n.unsigned_abs()), 0);
                let inside = *n >= low.ceil() as i128 && *n <= high.floor() as i128;
                inside.then_some((exact, *n as f64))
            }
            Value::Float(x) if x.is_finite() && low <= *x && *x <= high && (!whole || x.fract() == 0.0) => {
                Some(((*x < 0.0, Big::of(parts(*x).0 as u128), parts(*x).1), *x))
            }
            _ => None,
        }
    }
}

/// The ends of an interval, and whether "absent" stands after them.
fn ends_of(domain: &Value) -> Answer<(&[Value], bool)> {
    let listed = domain.array()?;
    let absent = listed.len() == 3 && matches!(&listed[2], Value::Text(text) if text == ABSENT);
    must(absent || listed.len() == 2, "two ends")?;
    Ok((&listed[..2], absent))
}

fn elements(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(elements).sum::<usize>(),
        Value::Map(items) => 1 + items.iter().map(|(k, v)| elements(k) + elements(v)).sum::<usize>(),
        _ => 1,
    }
}

fn rises(mapping: &[usize]) -> bool {
    mapping.iter().enumerate().all(|(i, &x)| i == x)
}

/// An array of indices, or every index by itself where it is nil; nil wherever it may be.
fn mapping(value: &Value, size: usize, most: usize) -> Answer<Vec<usize>> {
    if value.is_nil() {
        return Ok((0..size + 1).collect());
    }
    let items = value.array()?.iter().map(|n| n.index(0, most));
    let found = items.collect::<Answer<Vec<usize>>>()?;
    must(!rises(&found), "nil must be used where it may be")?;
    must(found.len() == size + 1, "a reading of every index")?;
    Ok(found)
}

impl Survey {
    pub fn read(data: &[u8]) -> Answer<Survey> {
        must(data.len() <= MAX_BYTES, "too long")?;
        let value = read(data)?;
        must(data.len() <= 1 << 16 || elements(&value) <= MAX_ELEMENTS, "too many elements")?;
        let mut again = vec![];
        write(&mut again, &value);
        must(again == data, "another encoding")?;
        let fields = value.array()?;
        must(fields.len() >= 2 && fields[0].text()? == "hubbub-survey", "no survey")?;
        let layout = fields[1].int(1, 4)?;
        let (alone, listed) = (layout % 2 == 1, layout > 2);
        must(fields.len() == 15 + usize::from(alone) + usize::from(listed), "another number of fields")?;
        let fields = if listed { ledgers(fields)? } else { fields };
        identifier(&fields[2])?;
        fields[3].int(1, (1 << 31) - 1)?;
        printable(&fields[4])?;
        let epsilon = fields[6].float()?;
        must((1e-6..=40.0).contains(&epsilon), "epsilon out of range")?;
        let channel = channel::read(&fields[7])?;
        let (rotates, rounds) = terms(&fields[fields.len() - 6..])?;
        let listed = if alone { std::slice::from_ref(&fields[5]) } else { fields[5].array()? };
        let attributes = listed.iter().map(Attribute::read).collect::<Answer<Vec<_>>>()?;
        must(all_differ(attributes.iter().map(|a| &a.id)), "attributes must differ")?;
        must(!rotates || attributes.iter().any(|a| a.evolves), "a rotation of one answer")?;
        let name = if alone { "single" } else { fields[8].array()?.first().ok_or("no form")?.text()? };
        let told = matches!(name, "table" | "transition" | "bundle" | "key_value");
        must(told || !attributes.iter().any(Attribute::tells_absent), "a number that may be absent")?;
        let form = if alone {
            single(&attributes[0], &channel, &fields[8], &fields[9])?
        } else {
            let form = fields[8].array()?;
            match name {
                "table" => table(&attributes, &channel, form)?,
                "tree" => tree(&attributes, &channel, form)?,
                "transition" => transition(&attributes, &channel, form, rounds)?,
                "set" => items(&attributes, &channel, form)?,
                "bundle" => bundle(&attributes, &channel, form)?,
                "key_value" => key_value(&attributes, &channel, form)?,
                "score" => score(&attributes, &channel, form, epsilon)?,
                _ => return Err("an unknown form"),
            }
        };
        let (n, d) = channel.certificate();
        let certified = ln_above(&n, &d)?;
        must(certified <= epsilon, "epsilon exceeds what is declared")?;
        let digest = sha256(data)[..16].try_into().unwrap();
        Ok(Survey { digest, certified, attributes, channel, form })
    }

    /// Take the dictionary that the texts of attributes are looked up in.
    pub fn take(&mut self, dictionary: &[u8]) -> Answer<()> {
        self.attributes.iter_mut().try_for_each(|attribute| attribute.take(dictionary))
    }

    /// The input of one value per attribute; numbers are rounded by random bytes, and a bundle's begin with a seed.
    pub fn input(&self, values: &[Value], round: u64, source: &mut Source) -> Answer<Input> {
        let reads = if let Form::Transition(..) = self.form { 2 } else { self.attributes.len() };
        must(values.len() == reads, "a value per attribute")?;
        let unknown = |(a, v): (&Attribute, &Value)| matches!((&a.domain, v), (Domain::Dictionary(_, _, None), Value::Text(_)));
        must(!self.attributes.iter().zip(values).any(unknown), "a dictionary that is not at hand")?;
        match (&self.form, &self.channel.kind) {
            (Form::Items(most, more), _) => {
                let Domain::Items(own) = &self.attributes[0].domain else { unreachable!() };
                let mut held = members(own, &values[0]).unwrap_or(vec![self.channel.inputs - 1]);
                if held.len() > *most {
                    while held.len() > *most - usize::from(*more) {
                        held.remove(fit(source.below(held.len() as u64)?));
                    }
                    held.extend(more.then_some(own.len()));
                }
                Ok(Input::Items(held))
            }
            (Form::Bundle(readings), Kind::Parts(parts)) => {
                let evolves = self.attributes.iter().any(|a| a.evolves);
                let part = parts.part(toss(source.take(32)?, if evolves { round + 1 } else { 0 })?);
                let cell = parts.members[part].iter().fold(0, |cell, &member| {
                    cell * parts.readings[member] + readings[member][self.attributes[member].index(&values[member])]
                });
                Ok(Input::Cell(part, cell))
            }
            _ => self.number(values, source).map(Input::One),
        }
    }

    fn number(&self, values: &[Value], source: &mut Source) -> Answer<usize> {
        match &self.form {
            Form::Transition(reading, asks, inputs) => {
                let (r, of) = (reading.last().unwrap(), |value| reading[self.attributes[0].index(value)]);
                let (a, b) = (of(&values[0]), of(&values[1]));
                Ok(match asks {
                    Asks::Pairs => a * (r + 1) + b,
                    _ if a == *r || b == *r => inputs - 1,
                    Asks::Direction => 1 + a - b,
                    Asks::Changed if a == b => a,
                    Asks::Changed => r + a * (r - 1) + b - usize::from(b > a),
                })
            }
            Form::Items(..) | Form::Bundle(_) => Err("no number"),
            Form::Single(Some(mapping)) => Ok(mapping[self.attributes[0].index(&values[0])]),
            Form::Single(None) => {
                let (low, high) = self.attributes[0].ends()?;
                match self.attributes[0].number(&values[0]) {
                    None => Ok(self.channel.inputs - 1),
                    Some((exact, _)) => rounded(exact, low, high, self.channel.inputs - 1, source),
                }
            }
            Form::KeyValue(points) => match (&values[0], self.attributes[0].number(&values[0])) {
                (Value::Text(text), _) if text == ABSENT => Ok(*points),
                (_, None) => Ok(points + 1),
                (_, Some((exact, _))) => {
                    let (low, high) = self.attributes[0].ends()?;
                    rounded(exact, low, high, *points, source)
                }
            },
            Form::Table(readings) => {
                let pairs = readings.iter().zip(self.attributes.iter().zip(values));
                Ok(pairs.fold(0, |input, (reading, (attribute, value))| {
                    input * (reading.last().unwrap() + 1) + reading[attribute.index(value)]
                }))
            }
            Form::Tree(mapping, side) => {
                let at: Vec<usize> = self.attributes.iter().zip(values).map(|(a, v)| a.index(v)).collect();
                Ok(mapping[side.map_or(at[0], |side| at[0] * side + at[1])])
            }
            Form::Score(score) => {
                let pairs = self.attributes.iter().zip(values).zip(&score.defaults);
                let number = |((a, v), d): ((&Attribute, &Value), &f64)| a.number(v).map_or(*d, |n| n.1);
                let g = score.place(&pairs.map(number).collect::<Vec<_>>());
                rounded((false, Big::of(parts(g).0 as u128), parts(g).1), 0.0, 1.0, 2, source)
            }
        }
    }
}

fn rounded(x: (bool, Big, i32), low: f64, high: f64, points: usize, source: &mut Source) -> Answer<usize> {
    let (index, part, whole) = place(x, low, high, points);
    Ok(if part.is_zero() { index } else { index + usize::from(source.coin(&part, &whole)?) })
}

/// The fields before the last, which names the ledgers: in their order, and not what is meant without it.
fn ledgers(fields: &[Value]) -> Answer<&[Value]> {
    let (last, rest) = fields.split_last().ok_or("no fields")?;
    let named = last.array()?.iter().map(|each| each.text()).collect::<Answer<Vec<_>>>()?;
    must(named == ["site-data"] || named == ["durable", "site-data"], "ledgers in their order")?;
    Ok(rest)
}

/// The items that a list has, or the keys of a map; none for what is neither.
fn members(own: &[String], value: &Value) -> Option<Vec<usize>> {
    let held: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Map(items) => items.iter().map(|(key, _)| key).collect(),
        _ => return None,
    };
    let is_in = |item: &&String| held.iter().any(|each| matches!(each, Value::Text(text) if text == *item));
    Some(own.iter().enumerate().filter(|(_, item)| is_in(item)).map(|(i, _)| i).collect())
}

/// Whether the schedule has a rotation, its last element if there are four; and how many rounds.
fn terms(fields: &[Value]) -> Answer<(bool, usize)> {
    let schedule = fields[0].array()?;
    must(schedule.len() == 3 || schedule.len() == 4, "a schedule of three or four")?;
    schedule[0].int(0, (1 << 32) - 1)?;
    schedule[1].int(1, 366 * DAY)?;
    let rounds = schedule[2].index(1, 100_000)?;
    if schedule.len() == 4 {
        schedule[3].int(2, MAX_ROTATION)?;
    }
    fields[1].int(0, 90 * DAY)?;
    fields[2].int(0, DAY)?;
    fields[3].int(1, 100_000_000_000)?;
    fields[4].int(1, 100_000_000_000)?;
    if !fields[5].is_nil() {
        fields[5].int(1, EXACT)?;
    }
    Ok((schedule.len() == 4, rounds))
}

/// Names that differ, the last "missing" and no other.
fn names(listed: &[&Value], with_missing: bool) -> Answer<()> {
    let found = listed.iter().map(|name| printable(name)).collect::<Answer<Vec<&str>>>()?;
    let own = |i: usize| with_missing && i == found.len() - 1;
    must(found.iter().enumerate().all(|(i, &name)| (name == "missing") == own(i)), "missing last")?;
    must(all_differ(found.iter()), "names must differ")
}

/// Refuses a grid whose points do not rise in floats.
fn must_rise(low: f64, high: f64, points: usize) -> Answer<()> {
    let last = points - 1;
    let step = (high - low) / last as f64;
    let point = |i: usize| {
        let along = if step == 0.0 { i as f64 / last as f64 * (high - low) } else { i as f64 * step };
        if i == last { high } else { along + low }
    };
    must((1..points).all(|i| point(i - 1) < point(i)), "points must differ")
}

fn key_value(attributes: &[Attribute], channel: &Channel, form: &[Value]) -> Answer<Form> {
    must(form.len() == 3 && attributes.len() == 1 && attributes[0].tells_absent(), "one that may be absent")?;
    let (points, share) = (form[1].index(2, channel::MAX_INPUTS - 2)?, form[2].float()?);
    must(share > 0.0 && share < 1.0, "a share between 0 and 1")?;
    let of = channel::labels(&[points, 1, 1]);
    must(channel.inputs == of.len() && channel.fits(&of), "another channel than the number's")?;
    let (low, high) = attributes[0].ends()?;
    must_rise(low, high, points)?;
    Ok(Form::KeyValue(points))
}

fn single(attribute: &Attribute, channel: &Channel, map: &Value, categories: &Value) -> Answer<Form> {
    let missing = channel.inputs - 1;
    let pairs = categories.array()?.iter().map(|pair| pair.array_of(2));
    let pairs = pairs.collect::<Answer<Vec<&[Value]>>>()?;
    let sizes = pairs.iter().map(|pair| pair[1].index(1, channel.inputs));
    let sizes = sizes.collect::<Answer<Vec<usize>>>()?;
    must(sizes.iter().sum::<usize>() == channel.inputs, "categories of all inputs")?;
    must(missing >= 2 && sizes.len() >= 2 && sizes.last() == Some(&1), "missing last and alone")?;
    names(&pairs.iter().map(|pair| &pair[0]).collect::<Vec<_>>(), true)?;
    let category_of = channel::labels(&sizes);
    must(channel.fits(&category_of), "other categories than the channel's")?;
    if let Domain::Numbers(low, high, _) = attribute.domain {
        must(map.is_nil(), "a map of numbers")?;
        must_rise(low, high, missing)?;
        return Ok(Form::Single(None));
    }
    let size = attribute.size()?;
    must(size < channel::MAX_INPUTS || size < channel.inputs, "too many values that are not hashed")?;
    let map = mapping(map, size, missing)?;
    let mut values = vec![0; channel.inputs];
    for &x in &map {
        must(x <= missing, "an input that is none")?;
        values[x] += 1;
    }
    must(map[size] == missing && values[missing] == 1, "only missing is the last input")?;
    must(values.iter().all(|&n| n >= 1), "a value for every input")?;
    let lone = |x: usize| sizes[category_of[x]] == 1;
    must((0..missing).all(|x| values[x] == 1 || lone(x)), "values that share an input share a category")?;
    Ok(Form::Single(Some(map)))
}

fn table(attributes: &[Attribute], channel: &Channel, form: &[Value]) -> Answer<Form> {
    must(form.len() == 2 && (2..=10).contains(&attributes.len()), "two to ten attributes")?;
    let items = form[1].array_of(attributes.len())?;
    let (mut readings, mut inputs, mut cells) = (vec![], 1u128, 1u128);
    for (attribute, item) in attributes.iter().zip(items) {
        let reading = reading(attribute, item.array_of(2)?)?;
        inputs *= *reading.last().unwrap() as u128 + 1;
        cells *= reading.len() as u128;
        readings.push(reading);
    }
    must(inputs <= channel::MAX_INPUTS as u128 && cells <= 1 << 18, "too many combinations")?;
    must(channel.inputs as u128 == inputs && channel.tells_inputs(), "another channel than the table's")?;
    Ok(Form::Table(readings))
}

/// The reading of every index of an attribute, by its map and names.
fn reading(attribute: &Attribute, pair: &[Value]) -> Answer<Vec<usize>> {
    let size = attribute.size()?;
    let reading = mapping(&pair[0], size, fit(MAX_SIZE))?;
    let missing = reading[size];
    let mut values = vec![0; missing + 1];
    for &r in &reading {
        must(r <= missing, "missing must be the last reading")?;
        values[r] += 1;
    }
    must(missing >= 2 && values[missing] == 1, "two readings, and missing alone")?;
    must(values.iter().all(|&n| n >= 1), "a value for every reading")?;
    if pair[1].is_nil() {
        must(rises(&reading), "names where values share a reading")?;
    } else {
        let own = pair[1].array()?;
        must(own.len() == missing, "a name per reading")?;
        names(&own.iter().collect::<Vec<_>>(), false)?;
    }
    Ok(reading)
}

fn transition(attributes: &[Attribute], channel: &Channel, form: &[Value], rounds: usize) -> Answer<Form> {
    must(form.len() == 5 && attributes.len() == 1 && attributes[0].evolves, "one that evolves")?;
    let reading = reading(&attributes[0], &form[1..3])?;
    let r = *reading.last().unwrap();
    let (pairs, cells) = ((r + 1) as u128, reading.len() as u128);
    must(pairs * pairs <= channel::MAX_INPUTS as u128 && cells * cells <= 1 << 18, "too many pairs")?;
    form[3].index(1, rounds - 1)?;
    let (asks, sizes) = match form[4].text()? {
        "pairs" => (Asks::Pairs, vec![(r + 1) * (r + 1) - 1, 1]),
        "changed" => (Asks::Changed, vec![r, r * (r - 1), 1]),
        "direction" if r == 2 => (Asks::Direction, vec![3, 1]),
        _ => return Err("an unknown question"),
    };
    let of = channel::labels(&sizes);
    must(channel.inputs == of.len() && channel.fits(&of), "another channel than the transition's")?;
    Ok(Form::Transition(reading, asks, of.len()))
}

fn items(attributes: &[Attribute], channel: &Channel, form: &[Value]) -> Answer<Form> {
    let more = form.len() == 3 && matches!(&form[2], Value::Text(text) if text == "more");
    must((form.len() == 2 || more) && attributes.len() == 1, "one attribute of sets")?;
    let Domain::Items(own) = &attributes[0].domain else { return Err("no sets") };
    let Kind::Items(items) = &channel.kind else { return Err("another channel than that of sets") };
    let inputs = own.len() + 1 + usize::from(more);
    must(form[1].index(1, 256)? == items.most && channel.inputs == inputs, "another channel")?;
    must(!more || (items.most >= 2 && !own.contains(&format!("more than {}", items.most))), "an item of that name")?;
    Ok(Form::Items(items.most, more))
}

fn bundle(attributes: &[Attribute], channel: &Channel, form: &[Value]) -> Answer<Form> {
    let Kind::Parts(parts) = &channel.kind else { return Err("another channel than the bundle's") };
    must(form.len() == 3 && attributes.len() == parts.readings.len(), "other attributes")?;
    let pairs = attributes.iter().zip(form[1].array_of(attributes.len())?);
    let readings = pairs.map(|(a, item)| reading(a, item.array_of(2)?)).collect::<Answer<Vec<_>>>()?;
    let shape = readings.iter().map(|reading| reading.last().unwrap() + 1);
    must(shape.eq(parts.readings.iter().copied()), "other readings than the channel's")?;
    let mut tables = vec![];
    for table in form[2].array()? {
        let own = table.array()?.iter().map(|n| n.index(0, attributes.len() - 1));
        let own = own.collect::<Answer<Vec<usize>>>()?;
        must((1..=4).contains(&own.len()), "tables of one to four")?;
        must(own.windows(2).all(|pair| pair[0] < pair[1]), "attributes that rise")?;
        must(parts.tell(&own), "a table that parts tell")?;
        tables.push(own);
    }
    must((1..=4096).contains(&tables.len()) && all_differ(tables.iter()), "tables that differ")?;
    let asked = |member: usize| tables.iter().any(|table| table.contains(&member));
    must((0..attributes.len()).all(asked), "every attribute in a table")?;
    Ok(Form::Bundle(readings))
}

/// A tree of labels, or a heat map: levels that are, with missing in each, those of the channel.
fn tree(attributes: &[Attribute], channel: &Channel, form: &[Value]) -> Answer<Form> {
    let own = matches!(channel.kind, channel::Kind::Levels { .. } | channel::Kind::Tree { .. });
    must(own && !channel.is_tree, "another channel than a tree's")?;
    let (found, sizes) = if form.len() == 2 { squares(attributes, form)? } else { branches(attributes, form)? };
    let Form::Tree(mapping, _) = &found else { unreachable!() };
    must(channel.inputs == mapping.last().unwrap() + 1, "another number of inputs")?;
    let (levels, _) = channel.kind.level_odds().unwrap();
    must(levels.of.len() == sizes.len() + 1, "another number of levels")?;
    for (level, of) in sizes.iter().zip(&levels.of) {
        let with_missing: Vec<usize> = level.iter().copied().chain([1]).collect();
        must(channel::labels(&with_missing) == *of, "other levels than the channel's")?;
    }
    Ok(found)
}

fn squares(attributes: &[Attribute], form: &[Value]) -> Answer<(Form, Vec<Vec<usize>>)> {
    must(form[1].text()? == "quadtree" && attributes.len() == 2, "a heat map of two")?;
    let whole = |a: &Attribute| matches!(a.domain, Domain::Integers(..));
    must(attributes.iter().all(whole), "a heat map of integers")?;
    let side = attributes[0].size()?;
    must(attributes[1].size()? == side && side.is_power_of_two(), "2^k values each")?;
    must((4..=256).contains(&side), "k from 2 to 8")?;
    let bits = |n: usize| (0..8).fold(0, |found, bit| found | (n >> bit & 1) << (2 * bit));
    let cell = |x: usize, y: usize| if x == side || y == side { side * side } else { bits(x) | bits(y) << 1 };
    let mapping = (0..=side).flat_map(|x| (0..=side).map(move |y| cell(x, y))).collect();
    let mut sizes = vec![];
    let mut many = 4;
    while many < side * side {
        sizes.push(vec![side * side / many; many]);
        many *= 4;
    }
    Ok((Form::Tree(mapping, Some(side + 1)), sizes))
}

fn branches(attributes: &[Attribute], form: &[Value]) -> Answer<(Form, Vec<Vec<usize>>)> {
    must(form.len() == 3 && attributes.len() == 1, "one attribute in a tree")?;
    let size = attributes[0].size()?;
    let map = mapping(&form[1], size, fit(MAX_SIZE))?;
    must(all_differ(map.iter()) && map.iter().all(|&x| x <= size), "an input for every value")?;
    must(map[size] == size, "missing last")?;
    let listed = form[2].array()?;
    must((1..=8).contains(&listed.len()), "1 to 8 levels")?;
    let mut sizes: Vec<Vec<usize>> = vec![];
    // First value, end, own name, and the name joined to those above.
    let mut above: Vec<(usize, usize, String, String)> = vec![];
    for level in listed {
        let (mut found, mut end) = (vec![], 0usize);
        for pair in level.array()? {
            let pair = pair.array_of(2)?;
            let (name, many) = (printable(&pair[0])?, pair[1].index(1, channel::MAX_INPUTS)?);
            let (start, stop) = (end, end + many);
            must(stop <= size, "more values than there are")?;
            let parent = above.iter().find(|each| each.0 <= start && start < each.1);
            let joined = match parent {
                None => name.to_string(),
                Some(each) if each.0 == start && each.1 == stop => {
                    must(each.2 == name, "an unsplit category keeps its name")?;
                    each.3.clone()
                }
                Some(each) => format!("{} / {}", each.3, name),
            };
            found.push((start, stop, name.to_string(), joined));
            end = stop;
        }
        must(end == size, "all values at every level")?;
        let names = found.iter().map(|each| each.3.as_str()).chain(["missing"]);
        must(all_differ(names), "names must differ")?;
        sizes.push(found.iter().map(|each| each.1 - each.0).collect());
        above = found;
    }
    Ok((Form::Tree(map, None), sizes))
}

fn score(attributes: &[Attribute], channel: &Channel, form: &[Value], epsilon: f64) -> Answer<Form> {
    must(form.len() == 5 && (1..=64).contains(&attributes.len()), "one to 64 attributes")?;
    must(attributes.windows(2).all(|pair| pair[0].id < pair[1].id), "attributes in order")?;
    let kind = form[1].text()?;
    must(matches!(kind, "linear" | "truncated" | "logistic"), "an unknown score")?;
    let pairs = form[2].array_of(attributes.len())?.iter().map(|pair| pair.array_of(2));
    let pairs = pairs.collect::<Answer<Vec<&[Value]>>>()?;
    let column = |i: usize| pairs.iter().map(|pair| pair[i].float()).collect::<Answer<Vec<f64>>>();
    let (coefficients, defaults) = (column(0)?, column(1)?);
    let (intercept, ends) = (form[3].float()?, form[4].array_of(2)?);
    let (low, high) = (ends[0].float()?, ends[1].float()?);
    let logistic = kind == "logistic";
    must(low < high && (!logistic || (low == 0.0 && high == 1.0)), "ends of a score")?;
    let domains = attributes.iter().map(Attribute::ends).collect::<Answer<Vec<(f64, f64)>>>()?;
    for (default, (low, high)) in defaults.iter().zip(&domains) {
        must(low <= default && default <= high, "a default out of its domain")?;
    }
    let sizes = coefficients.iter().zip(&domains).map(|(a, (lo, hi))| a.abs() * lo.abs().max(hi.abs()));
    let sizes: Vec<f64> = sizes.collect();
    let largest = sizes.iter().chain(&[intercept.abs(), low.abs(), high.abs()]).fold(0.0, |a: f64, b| a.max(*b));
    must(largest <= 1e150, "terms too large")?;
    let error = (sizes.len() + 8) as f64 * 2f64.powi(-52) * (intercept.abs() + exact_sum(&sizes));
    if kind == "linear" {
        let along = |end: fn(f64, f64) -> f64| {
            let terms = coefficients.iter().zip(&domains).map(|(a, (lo, hi))| end(a * lo, a * hi));
            exact_sum(&std::iter::once(intercept).chain(terms).collect::<Vec<_>>())
        };
        let spare = error + 1e-12 * (high - low);
        must(along(f64::min) >= low - spare && along(f64::max) <= high + spare, "a score beyond its ends")?;
    }
    let total = 1u64 << 62;
    let above = exp_below(epsilon - 2f64.powi(-36))?.plus(&Big::of(1 << 96));
    let (floor, rest) = Big::of(total as u128).shl(96).divided(&above);
    let least = floor.small().unwrap() as u64 + !rest.is_zero() as u64;
    let steep = if logistic { 0.25 } else { 1.0 / (high - low) };
    let mut shift = steep * error + 2f64.powi(-49);
    if !logistic {
        shift += 2f64.powi(-50) * steep * low.abs().max(high.abs());
    }
    let slack = 2.0 * shift * (total - 2 * least) as f64 / least as f64;
    must(slack <= 1e-6, "coefficients too large")?;
    let own = matches!(channel.kind, Kind::Grr { t, u } if u == least && t == total - least);
    must(own && channel.inputs == 2, "another channel than the score's")?;
    Ok(Form::Score(Score { logistic, coefficients, defaults, intercept, low, high }))
}

impl Score {
    fn place(&self, numbers: &[f64]) -> f64 {
        let terms = self.coefficients.iter().zip(numbers).map(|(a, x)| a * x);
        let sum = exact_sum(&std::iter::once(self.intercept).chain(terms).collect::<Vec<_>>());
        if self.logistic {
            let small = (-sum.abs()).exp();
            return if sum >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
        }
        ((sum - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}
