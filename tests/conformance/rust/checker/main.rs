//! A checker of releases, from docs/checking.md: a line of a case in, its result and what was not checked out.
#![allow(dead_code)] // The modules of the second implementation also draw, which no checker does.

mod asked;
mod ends;
mod exact;
mod json;
mod release;
mod scores;
#[path = "../big.rs"]
mod big;
#[path = "../channel.rs"]
mod channel;
#[path = "../draw.rs"]
mod draw;
#[path = "../items.rs"]
mod items;
#[path = "../orbits.rs"]
mod orbits;
#[path = "../pack.rs"]
mod pack;
#[path = "../parts.rs"]
mod parts;
#[path = "../pool.rs"]
mod pool;
#[path = "../sha2.rs"]
mod sha2;
#[path = "../slots.rs"]
mod slots;
#[path = "../survey.rs"]
mod survey;

use std::io::{BufRead, Write};

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().map(|b| (b as char).to_digit(16).expect("hex") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn result(line: &str) -> pack::Answer<String> {
    let parts: Vec<Vec<u8>> = line.split('\t').skip(1).map(unhex).collect();
    let [survey, counts, document] = &parts[..] else { return Err("another number of parts") };
    let checked = release::check(survey, counts, document)?;
    let words = checked.differences.first().map_or("same".to_string(), |(path, _)| format!("differs {path}"));
    Ok(format!("{words}\t{}", checked.unchecked.join(", ")))
}

fn main() {
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let found = result(&line.expect("a line")).unwrap_or_else(|rule| format!("refused {rule}\t"));
        writeln!(out, "{found}").expect("a result");
    }
}
