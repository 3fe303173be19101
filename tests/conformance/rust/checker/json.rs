//! JSON that keeps the text of its numbers.

use crate::pack::{must, Answer};

pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

pub fn read(data: &[u8]) -> Answer<Json> {
    let mut reader = Reader { data, at: 0 };
    let found = reader.value(0)?;
    must(reader.peek() == 0 && reader.at == data.len(), "bytes after the end")?;
    Ok(found)
}

impl Reader<'_> {
    /// The next byte that is no space; 0 at the end.
    fn peek(&mut self) -> u8 {
        while self.at < self.data.len() && b" \t\r\n".contains(&self.data[self.at]) {
            self.at += 1;
        }
        self.data.get(self.at).copied().unwrap_or(0)
    }

    fn take(&mut self, byte: u8) -> Answer<()> {
        must(self.peek() == byte, "no JSON")?;
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, value: Json) -> Answer<Json> {
        must(self.data[self.at..].starts_with(word.as_bytes()), "no JSON")?;
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Answer<Json> {
        must(depth < 100, "nested too deep")?;
        match self.peek() {
            b'n' => self.word("null", Json::Null),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'"' => Ok(Json::Text(self.text()?)),
            b'[' => {
                let mut items = vec![];
                self.listed(b'[', b']', |reader| Ok(items.push(reader.value(depth + 1)?)))?;
                Ok(Json::Array(items))
            }
            b'{' => {
                let mut items = vec![];
                self.listed(b'{', b'}', |reader| {
                    let key = reader.text()?;
                    reader.take(b':')?;
                    items.push((key, reader.value(depth + 1)?));
                    Ok(())
                })?;
                Ok(Json::Object(items))
            }
            _ => {
                let from = self.at;
                while self.data.get(self.at).is_some_and(|b| b"+-.eE0123456789".contains(b)) {
                    self.at += 1;
                }
                let text = std::str::from_utf8(&self.data[from..self.at]).map_err(|_| "no JSON")?;
                must(text.parse::<f64>().is_ok_and(f64::is_finite), "no number")?;
                Ok(Json::Number(text.to_string()))
            }
        }
    }

    fn listed(&mut self, open: u8, close: u8, mut item: impl FnMut(&mut Self) -> Answer<()>) -> Answer<()> {
        self.take(open)?;
        if self.peek() != close {
            item(self)?;
            while self.peek() == b',' {
                self.at += 1;
                item(self)?;
            }
        }
        self.take(close)
    }

    fn text(&mut self) -> Answer<String> {
        self.take(b'"')?;
        let (mut units, mut found) = (vec![], vec![]);
        loop {
            let byte = *self.data.get(self.at).ok_or("cut short")?;
            self.at += 1;
            if byte == b'\\' && self.data.get(self.at) == Some(&b'u') {
                let digits = self.data.get(self.at + 1..self.at + 5).ok_or("cut short")?;
                let digits = std::str::from_utf8(digits).map_err(|_| "no JSON")?;
                units.push(u16::from_str_radix(digits, 16).map_err(|_| "no JSON")?);
                self.at += 5;
                continue;
            }
            let text = String::from_utf16(&units).map_err(|_| "half a character")?;
            found.extend(text.as_bytes());
            units.clear();
            match byte {
                b'"' => return String::from_utf8(found).map_err(|_| "text that is not UTF-8"),
                b'\\' => {
                    let place = b"\"\\/bfnrt".iter().position(|b| Some(b) == self.data.get(self.at));
                    found.push(b"\"\\/\x08\x0c\n\r\t"[place.ok_or("no JSON")?]);
                    self.at += 1;
                }
                byte => found.push(byte),
            }
        }
    }
}

impl Json {
    pub fn get(&self, key: &str) -> Answer<&Json> {
        let Json::Object(items) = self else { return Err("no object") };
        // Of a key that is there twice the last one counts, as most readers have it.
        items.iter().rev().find(|(own, _)| own == key).map(|(_, value)| value).ok_or("a key is missing")
    }

    pub fn items(&self) -> Answer<&[Json]> {
        if let Json::Array(items) = self { Ok(items) } else { Err("no array") }
    }

    /// A number; none for null.
    pub fn number(&self) -> Answer<Option<f64>> {
        match self {
            Json::Null => Ok(None),
            Json::Number(text) => Ok(text.parse().ok()),
            _ => Err("no number"),
        }
    }

    pub fn whole(&self) -> Option<i128> {
        if let Json::Number(text) = self { text.parse().ok() } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }
}
