//! Reports, uploads, lists and records: what is written, and what is refused.

use crate::draw::Symbol;
use crate::ed25519::verify;
use crate::pack::{elements, fit, hex, must, read, write, Answer, Value};
use crate::sha2::sha256;
use crate::survey::MAX_BYTES;

const MAX_ROUND: i128 = (1 << 31) - 1;
const MAX_SYMBOL: i128 = (1 << 32) - 1;
const MAX_SYMBOL_BYTES: usize = 1 << 15;
const MAX_SURVEYS: usize = 4096;
const MAX_TALLIES: i128 = 1 << 31;

/// A number or a set, as reports hold it.
pub fn symbol(value: &Value) -> Answer<Symbol> {
    match value {
        Value::Binary(set) => {
            must((1..=MAX_SYMBOL_BYTES).contains(&set.len()), "a set of 1 to 2^15 bytes")?;
            Ok(Symbol::Set(set.clone()))
        }
        number => Ok(Symbol::Number(number.int(0, MAX_SYMBOL)? as u64)),
    }
}

pub fn upload(digest: &[u8], id: &[u8], round: &Value, symbol: Symbol) -> Answer<Vec<u8>> {
    round.int(0, MAX_ROUND)?;
    let symbol = match symbol {
        Symbol::Number(y) => Value::Int(y as i128),
        Symbol::Set(bytes) => Value::Binary(bytes),
    };
    let report = Value::Array(vec![Value::Binary([digest, id].concat()), round.clone(), symbol]);
    let mut body = vec![];
    write(&mut body, &Value::Array(vec![Value::Int(1), Value::Array(vec![report])]));
    Ok(body)
}

fn report(data: &[u8]) -> Answer<String> {
    let value = read(data)?;
    let fields = value.array_of(3)?;
    let identity = fields[0].binary()?;
    must(identity.len() == 32, "an identity of 32 bytes")?;
    let round = fields[1].int(0, MAX_ROUND)?;
    let answer = match symbol(&fields[2])? {
        Symbol::Number(y) => y.to_string(),
        Symbol::Set(bytes) => hex(&bytes),
    };
    Ok(format!("{}:{round}:{answer}", hex(identity)))
}

/// Every report of an upload, or "invalid" where an element is none.
pub fn reports(data: &[u8]) -> Answer<String> {
    let frame = elements(data, 2)?;
    must(frame.len() == 2, "an array of two")?;
    read(frame[0])?.int(1, 1)?;
    let each = elements(frame[1], 1724)?;
    let words = each.into_iter().map(|e| report(e).unwrap_or("invalid".into()));
    Ok(["upload".to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" "))
}

fn binaries(value: &Value, most: usize) -> Answer<Vec<&[u8]>> {
    let items = value.array()?;
    must(items.len() <= MAX_SURVEYS, "at most 4,096")?;
    let found = items.iter().map(|item| item.binary()).collect::<Answer<Vec<&[u8]>>>()?;
    must(found.iter().all(|bytes| bytes.len() <= most), "a binary too long")?;
    Ok(found)
}

fn digests(surveys: &[&[u8]]) -> Vec<Vec<u8>> {
    surveys.iter().map(|canonical| sha256(canonical)[..16].to_vec()).collect()
}

fn words(digests: &[Vec<u8>]) -> String {
    digests.iter().map(|d| format!(" {}", hex(d))).collect()
}

/// The digests of a plain list.
pub fn plain(data: &[u8]) -> Answer<String> {
    let value = read(data)?;
    let fields = value.array_of(2)?;
    fields[0].int(1, 1)?;
    Ok(format!("plain{}", words(&digests(&binaries(&fields[1], data.len())?))))
}

/// What the payload of a signed list says; its signature is not looked at.
pub fn payload(data: &[u8]) -> Answer<String> {
    let value = read(data)?;
    let mut again = vec![];
    write(&mut again, &value);
    must(again == data, "another encoding")?;
    let fields = value.array_of(6)?;
    fields[0].int(1, 1)?;
    let sequence = fields[1].int(1, (1 << 53) - 1)?;
    let issued = fields[2].int(0, 1 << 40)?;
    let expires = fields[3].int(issued + 1, (issued + 366 * 86_400).min(1 << 40))?;
    let asked = digests(&binaries(&fields[4], MAX_BYTES)?);
    let cancelled: Vec<Vec<u8>> = binaries(&fields[5], 16)?.iter().map(|d| d.to_vec()).collect();
    must(cancelled.iter().all(|d| d.len() == 16), "digests of 16 bytes")?;
    let mut all = [asked.clone(), cancelled.clone()].concat();
    all.sort();
    must(all.windows(2).all(|pair| pair[0] != pair[1]), "a survey twice")?;
    Ok(format!("list {sequence} {issued} {expires}{} cancelled{}", words(&asked), words(&cancelled)))
}

/// What a signed list says, if the key signed it.
pub fn signed(key: &[u8], data: &[u8]) -> Answer<String> {
    let value = read(data)?;
    let fields = value.array_of(3)?;
    must(fields[0].text()? == "hubbub-survey-list", "no signed list")?;
    let (inside, signature) = (fields[1].binary()?, fields[2].binary()?);
    let key = key.try_into().map_err(|_| "a key of 32 bytes")?;
    let signature = signature.try_into().map_err(|_| "a signature of 64 bytes")?;
    verify(key, &[b"hubbub survey list\0", inside].concat(), signature)?;
    payload(inside)
}

/// The outcomes of an upload.
pub fn response(data: &[u8]) -> Answer<String> {
    let value = read(data)?;
    let fields = value.array_of(2)?;
    fields[0].int(1, 1)?;
    let outcomes = fields[1].array()?;
    must(outcomes.len() <= 1 << 16, "too many outcomes")?;
    let words = outcomes.iter().map(Value::text).collect::<Answer<Vec<&str>>>()?;
    let known = ["accepted", "invalid", "early", "late", "unknown", "over_quota"];
    must(words.iter().all(|word| known.contains(word)), "an unknown outcome")?;
    Ok([vec!["response"], words].concat().join(" "))
}

/// A record of the log in words.
pub fn record(data: &[u8]) -> Answer<String> {
    let value = read(data)?;
    let fields = value.array()?;
    must(fields.len() >= 2, "version and kind")?;
    fields[0].int(1, 1)?;
    match fields[1].int(0, 2)? {
        0 => Ok(format!("survey {}", hex(&sha256(value.array_of(3)?[2].binary()?)[..16]))),
        2 => {
            let fields = value.array_of(4)?;
            let digest = fields[2].binary()?;
            must(digest.len() == 16, "a digest of 16 bytes")?;
            Ok(format!("seal {} {}", hex(digest), fields[3].int(0, MAX_ROUND)?))
        }
        _ => batch(value.array_of(5)?),
    }
}

fn batch(fields: &[Value]) -> Answer<String> {
    let minute = fields[2].int(0, (1 << 32) - 1)?;
    let unknown = fields[3].int(0, MAX_TALLIES)?;
    let items = fields[4].array()?;
    must(items.len() <= 1 << 14, "too many segments")?;
    let (mut out, mut tallies) = (format!("reports {minute} {unknown}"), unknown);
    for item in items {
        let (text, attempts) = segment(item.array_of(7)?)?;
        out += &text;
        tallies += attempts;
    }
    must(tallies <= MAX_TALLIES, "tallies of at most 2^31")?;
    Ok(out)
}

fn segment(fields: &[Value]) -> Answer<(String, i128)> {
    let (digest, ids, column) = (fields[0].binary()?, fields[2].binary()?, fields[4].binary()?);
    must(digest.len() == 16, "a digest of 16 bytes")?;
    let round = fields[1].int(-1, MAX_ROUND)?;
    let kind = fields[3].int(-(MAX_SYMBOL_BYTES as i128), 4)?;
    must(kind < 0 || [1, 2, 4].contains(&kind), "a width of 1, 2, 4 or of sets")?;
    let width = fit(kind.unsigned_abs());
    let n = column.len() / width;
    must(column.len() % width == 0 && ids.len() == 16 * n, "a symbol for every id")?;
    must(round >= 0 || n == 0, "no reports of no round")?;
    let attempts = fields[5].int(0, MAX_TALLIES)?;
    let refused = fields[6].array_of(4)?.iter().map(|n| n.int(0, MAX_TALLIES));
    let refused = refused.collect::<Answer<Vec<i128>>>()?;
    must(attempts == n as i128 + refused.iter().sum::<i128>(), "attempts must add up")?;
    let tallies = refused.iter().map(i128::to_string).collect::<Vec<_>>().join(",");
    let (digest, ids, column) = (hex(digest), hex(ids), hex(column));
    Ok((format!(" {digest}:{round}:{ids}:{kind}:{column}:{attempts}:{tallies}"), attempts))
}
