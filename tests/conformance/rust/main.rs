//! A second implementation of Hubbub's wire, from docs/wire.md: a line of a case in, a line of its result out.

mod big;
mod channel;
mod draw;
mod ed25519;
mod filter;
mod items;
mod orbits;
mod pack;
mod parts;
mod pool;
mod sha2;
mod slots;
mod survey;
mod wire;

use draw::{Source, Symbol};
use filter::Filter;
use pack::{hex, must, read, Answer, Value};
use std::io::{BufRead, Write};
use survey::{Survey, MAX_ROTATION};

fn certify(data: &[u8]) -> Answer<String> {
    let survey = Survey::read(data)?;
    Ok(format!("certified {} {:016x}", hex(&survey.digest), survey.certified.to_bits()))
}

fn words(symbol: &Symbol) -> String {
    match symbol {
        Symbol::Number(y) => y.to_string(),
        Symbol::Set(bytes) => hex(bytes),
    }
}

/// The input of a value, the symbol, the random bytes that took, and the upload of it; a dictionary may stand last.
fn answer(parts: &[Vec<u8>]) -> Answer<String> {
    let [survey, values, id, round, random, dictionary @ ..] = parts else { return Err("another number of parts") };
    let mut survey = Survey::read(survey)?;
    dictionary.iter().try_for_each(|data| survey.take(data))?;
    let (values, round, mut source) = (read(values)?, read(round)?, Source::of(random));
    let input = survey.input(values.array()?, round.int(0, (1 << 31) - 1)? as u64, &mut source)?;
    let symbol = survey.channel.draw(&input, &mut source)?;
    let (said, input) = (words(&symbol), input.words(survey.channel.inputs));
    let body = wire::upload(&survey.digest, id, &round, symbol)?;
    Ok(format!("answer {input} {said} {} {}", source.used, hex(&body)))
}

/// The weights of a symbol for every input.
fn weights(parts: &[Vec<u8>]) -> Answer<String> {
    let [survey, symbol] = parts else { return Err("another number of parts") };
    let survey = Survey::read(survey)?;
    let column = survey.channel.column(&wire::symbol(&read(symbol)?)?)?;
    Ok(column.iter().fold("weights".to_string(), |line, w| format!("{line} {w}")))
}

fn step(filter: &mut Filter, step: &Value) -> Answer<&'static str> {
    let fields = step.array()?;
    let ticket = |n: &Value| n.int(0, 1 << 32);
    match (fields.first().ok_or("no step")?.int(0, 4)?, &fields[1..]) {
        (0, [queries]) => Ok(if filter.reserve(queries.array()?)? { "yes" } else { "no" }),
        (1, [n, symbol]) => filter.record(ticket(n)?, &wire::symbol(symbol)?).map(|_| "yes"),
        (2, [n]) => filter.cancel(ticket(n)?).map(|_| "yes"),
        (3, [key]) => filter.close(key.int(0, 1 << 32)?).map(|_| "yes"),
        (4, [n, symbol, keys]) => {
            let joined = filter.resolve(ticket(n)?, &wire::symbol(symbol)?, keys)?;
            Ok(if joined { "joined" } else { "apart" })
        }
        _ => Err("an unknown step"),
    }
}

/// Committed and lost units after every step.
fn filter(parts: &[Vec<u8>], full: bool) -> Answer<String> {
    let [budget, surveys, steps] = parts else { return Err("another number of parts") };
    let (surveys, steps) = (read(surveys)?, read(steps)?);
    let listed = surveys.array()?.iter().map(|bytes| Survey::read(bytes.binary()?));
    let listed = listed.collect::<Answer<Vec<Survey>>>()?;
    let mut filter = Filter::of(read(budget)?.float()?, full, listed)?;
    let mut line = "filter".to_string();
    for each in steps.array()? {
        let word = step(&mut filter, each).unwrap_or("refused");
        line += &format!(" {word}:{}:{}", filter.committed(), filter.loss());
    }
    Ok(line)
}

/// The slots of some cycles in a row.
fn slots(parts: &[Vec<u8>]) -> Answer<String> {
    let [seed, drawn] = parts else { return Err("another number of parts") };
    let drawn = read(drawn)?;
    let [rotation, first, many] = drawn.array_of(3)? else { unreachable!() };
    let rotation = rotation.int(2, MAX_ROTATION)? as u64;
    let (first, many) = (first.int(0, (1 << 32) - 100)?, many.int(0, 99)?);
    let mut line = "slots".to_string();
    for cycle in first..first + many {
        line += &format!(" {}", slots::slot(seed, u32::try_from(cycle).map_err(|_| "a cycle")?, rotation)?);
    }
    Ok(line)
}

fn result(kind: &str, parts: &[Vec<u8>]) -> Answer<String> {
    match kind {
        "answer" | "looked-up" => {
            must(parts.len() == if kind == "answer" { 5 } else { 6 }, "another number of parts")?;
            return answer(parts);
        }
        "weights" => return weights(parts),
        "filter" => return filter(parts, true),
        "simplified" => return filter(parts, false),
        "slots" => return slots(parts),
        "signed" => {
            let [key, list] = parts else { return Err("another number of parts") };
            return wire::signed(key, list);
        }
        _ => must(parts.len() == 1, "another number of parts")?,
    }
    match kind {
        "survey" => certify(&parts[0]),
        "upload" => wire::reports(&parts[0]),
        "response" => wire::response(&parts[0]),
        "record" => wire::record(&parts[0]),
        "list" => wire::plain(&parts[0]),
        "payload" => wire::payload(&parts[0]),
        _ => Err("an unknown kind of case"),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().map(|b| (b as char).to_digit(16).expect("hex") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn main() {
    let why = std::env::args().any(|word| word == "--why");
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let mut words = line.split('\t');
        let kind = words.next().unwrap_or("");
        let parts: Vec<Vec<u8>> = words.map(unhex).collect();
        let found = match result(kind, &parts) {
            Ok(text) => text,
            Err(rule) if why => format!("refused: {rule}"),
            Err(_) => "refused".to_string(),
        };
        writeln!(out, "{found}").expect("a result");
    }
}
