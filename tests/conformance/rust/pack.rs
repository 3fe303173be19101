//! MessagePack: any value is read, and written in its shortest form.

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Nil,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Binary(Vec<u8>),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

pub type Refusal = &'static str;
pub type Answer<T> = Result<T, Refusal>;

const MAX_DEPTH: usize = 500;

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

/// The value that the bytes are, all of them.
pub fn read(data: &[u8]) -> Answer<Value> {
    let mut reader = Reader { data, at: 0 };
    let value = reader.value(0)?;
    if reader.at == data.len() { Ok(value) } else { Err("bytes after the end") }
}

/// The bytes of the elements of an array that is all of the data, its elements not looked into.
pub fn elements(data: &[u8], most: usize) -> Answer<Vec<&[u8]>> {
    let mut reader = Reader { data, at: 0 };
    let length = reader.array_head()?;
    if length > most as u64 {
        return Err("too many elements");
    }
    let mut found = vec![];
    for _ in 0..length {
        let start = reader.at;
        reader.skip(0)?;
        found.push(&data[start..reader.at]);
    }
    if reader.at == data.len() { Ok(found) } else { Err("bytes after the end") }
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: u64) -> Answer<&'a [u8]> {
        let rest = &self.data[self.at..];
        must(n <= rest.len() as u64, "cut short")?;
        self.at += fit(n);
        Ok(&rest[..fit(n)])
    }

    fn number(&mut self, bytes: u64) -> Answer<u64> {
        Ok(self.take(bytes)?.iter().fold(0, |n, &b| n << 8 | b as u64))
    }

    fn signed(&mut self, bytes: u64) -> Answer<Value> {
        let shift = 64 - 8 * bytes;
        Ok(Value::Int(((self.number(bytes)? << shift) as i64 >> shift) as i128))
    }

    fn array_head(&mut self) -> Answer<u64> {
        match self.number(1)? as u8 {
            head @ 0x90..=0x9f => Ok(head as u64 & 15),
            0xdc => self.number(2),
            0xdd => self.number(4),
            _ => Err("no array"),
        }
    }

    fn text(&mut self, n: u64) -> Answer<Value> {
        let bytes = self.take(n)?.to_vec();
        String::from_utf8(bytes).map(Value::Text).map_err(|_| "text that is not UTF-8")
    }

    fn array(&mut self, n: u64, depth: usize) -> Answer<Value> {
        let mut items = vec![];
        for _ in 0..n {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, n: u64, depth: usize) -> Answer<Value> {
        let mut items = vec![];
        for _ in 0..n {
            let key = self.value(depth + 1)?;
            if !matches!(key, Value::Text(_) | Value::Binary(_)) {
                return Err("a key that is not text");
            }
            items.push((key, self.value(depth + 1)?));
        }
        Ok(Value::Map(items))
    }

    fn value(&mut self, depth: usize) -> Answer<Value> {
        if depth > MAX_DEPTH {
            return Err("nested too deep");
        }
        let head = self.number(1)? as u8;
        Ok(match head {
            0x00..=0x7f => Value::Int(head as i128),
            0xe0..=0xff => Value::Int(head as i8 as i128),
            0x80..=0x8f => self.map(head as u64 & 15, depth)?,
            0x90..=0x9f => self.array(head as u64 & 15, depth)?,
            0xa0..=0xbf => self.text(head as u64 & 31)?,
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Bool(head == 0xc3),
            0xc4..=0xc6 => {
                let n = self.number(1 << (head - 0xc4))?;
                Value::Binary(self.take(n)?.to_vec())
            }
            0xca => Value::Float(f32::from_bits(self.number(4)? as u32) as f64),
            0xcb => Value::Float(f64::from_bits(self.number(8)?)),
            0xcc..=0xcf => Value::Int(self.number(1 << (head - 0xcc))? as i128),
            0xd0..=0xd3 => self.signed(1 << (head - 0xd0))?,
            0xd9..=0xdb => {
                let n = self.number(1 << (head - 0xd9))?;
                self.text(n)?
            }
            0xdc | 0xdd => {
                let n = self.number(2 << (head - 0xdc))?;
                self.array(n, depth)?
            }
            0xde | 0xdf => {
                let n = self.number(2 << (head - 0xde))?;
                self.map(n, depth)?
            }
            _ => return Err("an extension"),
        })
    }

    /// Pass over one well-formed value, an extension too.
    fn skip(&mut self, depth: usize) -> Answer<()> {
        if depth > MAX_DEPTH {
            return Err("nested too deep");
        }
        let head = self.number(1)? as u8;
        let (bytes, items) = match head {
            0x80..=0x8f => (0, 2 * (head as u64 & 15)),
            0x90..=0x9f => (0, head as u64 & 15),
            0xa0..=0xbf => (head as u64 & 31, 0),
            0xc1 => return Err("an unused byte"),
            0xc4..=0xc6 => (self.number(1 << (head - 0xc4))?, 0),
            0xc7..=0xc9 => (1 + self.number(1 << (head - 0xc7))?, 0),
            0xca | 0xcb => (4 << (head - 0xca), 0),
            0xcc..=0xcf => (1 << (head - 0xcc), 0),
            0xd0..=0xd3 => (1 << (head - 0xd0), 0),
            0xd4..=0xd8 => (1 + (1 << (head - 0xd4)), 0),
            0xd9..=0xdb => (self.number(1 << (head - 0xd9))?, 0),
            0xdc | 0xdd => (0, self.number(2 << (head - 0xdc))?),
            0xde | 0xdf => (0, 2 * self.number(2 << (head - 0xde))?),
            _ => (0, 0),
        };
        self.take(bytes)?;
        for _ in 0..items {
            self.skip(depth + 1)?;
        }
        Ok(())
    }
}

fn head(out: &mut Vec<u8>, short: Option<(u8, u64)>, forms: [u8; 3], n: u64) {
    let (eight, sixteen) = (forms[0], forms[1]);
    match (short, n) {
        (Some((first, most)), _) if n <= most => out.push(first | n as u8),
        (_, 0..=0xff) if eight != 0 => out.extend([eight, n as u8]),
        (_, 0..=0xffff) => {
            out.push(sixteen);
            out.extend((n as u16).to_be_bytes());
        }
        _ => {
            out.push(forms[2]);
            out.extend((n as u32).to_be_bytes());
        }
    }
}

fn write_int(out: &mut Vec<u8>, n: i128) {
    match n {
        0..=0xffff_ffff => head(out, Some((0, 127)), [0xcc, 0xcd, 0xce], n as u64),
        -32..=-1 => out.push(n as u8),
        -128..=-33 => out.extend([0xd0, n as u8]),
        -0x8000..=-129 => {
            out.push(0xd1);
            out.extend((n as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xd2);
            out.extend((n as i32).to_be_bytes());
        }
        _ => {
            out.push(if n < 0 { 0xd3 } else { 0xcf });
            out.extend((n as u64).to_be_bytes());
        }
    }
}

/// Append the shortest form of a value; floats take eight bytes.
pub fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.push(0xc0),
        Value::Bool(b) => out.push(0xc2 | *b as u8),
        Value::Int(n) => write_int(out, *n),
        Value::Float(x) => {
            out.push(0xcb);
            out.extend(x.to_bits().to_be_bytes());
        }
        Value::Text(s) => {
            head(out, Some((0xa0, 31)), [0xd9, 0xda, 0xdb], s.len() as u64);
            out.extend(s.as_bytes());
        }
        Value::Binary(b) => {
            head(out, None, [0xc4, 0xc5, 0xc6], b.len() as u64);
            out.extend(b);
        }
        Value::Array(items) => {
            head(out, Some((0x90, 15)), [0, 0xdc, 0xdd], items.len() as u64);
            items.iter().for_each(|item| write(out, item));
        }
        Value::Map(items) => {
            head(out, Some((0x80, 15)), [0, 0xde, 0xdf], items.len() as u64);
            for (key, item) in items {
                write(out, key);
                write(out, item);
            }
        }
    }
}

impl Value {
    pub fn array(&self) -> Answer<&[Value]> {
        if let Value::Array(items) = self { Ok(items) } else { Err("no array") }
    }

    pub fn array_of(&self, n: usize) -> Answer<&[Value]> {
        self.array().and_then(|items| if items.len() == n { Ok(items) } else { Err("another length") })
    }

    pub fn int(&self, low: i128, high: i128) -> Answer<i128> {
        match self {
            Value::Int(n) if (low..=high).contains(n) => Ok(*n),
            _ => Err("no integer within its limits"),
        }
    }

    /// An integer within its limits as a length or a place.
    pub fn index(&self, low: usize, high: usize) -> Answer<usize> {
        self.int(low as i128, high as i128).map(fit)
    }

    pub fn float(&self) -> Answer<f64> {
        match self {
            Value::Float(x) if x.is_finite() => Ok(*x),
            _ => Err("no finite float"),
        }
    }

    pub fn text(&self) -> Answer<&str> {
        if let Value::Text(s) = self { Ok(s) } else { Err("no text") }
    }

    pub fn binary(&self) -> Answer<&[u8]> {
        if let Value::Binary(b) = self { Ok(b) } else { Err("no binary") }
    }

    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }
}

/// Refuse what an array of limits or a rule does not allow.
pub fn must(holds: bool, rule: Refusal) -> Answer<()> {
    if holds { Ok(()) } else { Err(rule) }
}

/// A number that was bounded as a length or a place: where a `usize` has 32 bits nothing wraps in silence.
pub fn fit<T: TryInto<usize>>(n: T) -> usize {
    n.try_into().ok().expect("a length or a place that memory can have")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
