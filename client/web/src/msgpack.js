/**
 * MessagePack: any value is read, and written in its shortest form.
 *
 * An integer is a BigInt and a float a Number, so that 1 and 1.0 differ and nothing is lost beyond 2^53. Nil is null,
 * binary a Uint8Array, a map a list of pairs in their order (class Pairs).
 *
 * @module
 */

/** @typedef {null | boolean | bigint | number | string | Uint8Array | Pairs} Leaf */
/** @typedef {Leaf | Values} Value */
/** @typedef {Value[]} Values */

/** Bytes that break a rule; the message says which. */
export class Refused extends Error {
  /** @param {string} rule */
  constructor(rule) {
    super(rule);
    this.name = 'Refused';
  }
}

/**
 * Refuse what a rule does not allow.
 *
 * @param {boolean} holds
 * @param {string} rule
 * @returns {asserts holds}
 */
export function must(holds, rule) {
  if (!holds) throw new Refused(rule);
}

/** A map: its keys and values in the order of the bytes. */
export class Pairs {
  /** @param {[string | Uint8Array, Value][]} items */
  constructor(items) {
    this.items = items;
  }
}

export const MAX_DEPTH = 500;
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const ENCODER = new TextEncoder();

export class Reader {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.at = 0;
  }

  /** @param {number} n */
  take(n) {
    must(n <= this.data.length - this.at, 'cut short');
    this.at += n;
    return this.at - n;
  }

  /** @param {number} bytes at most 4; @returns {number} */
  count(bytes) {
    const at = this.take(bytes);
    if (bytes === 1) return this.view.getUint8(at);
    return bytes === 2 ? this.view.getUint16(at) : this.view.getUint32(at);
  }

  /** @param {number} n */
  bytes(n) {
    const at = this.take(n);
    return this.data.slice(at, at + n);
  }

  /** @param {number} n */
  text(n) {
    const at = this.take(n);
    try {
      return UTF8.decode(this.data.subarray(at, at + n));
    } catch {
      throw new Refused('text that is not UTF-8');
    }
  }

  /** @param {number} n @param {number} depth */
  array(n, depth) {
    must(n <= this.data.length - this.at, 'cut short');
    /** @type {Value[]} */
    const items = [];
    for (let i = 0; i < n; i++) items.push(this.value(depth + 1));
    return items;
  }

  /** @param {number} n @param {number} depth */
  map(n, depth) {
    must(2 * n <= this.data.length - this.at, 'cut short');
    /** @type {[string | Uint8Array, Value][]} */
    const items = [];
    for (let i = 0; i < n; i++) {
      const key = this.value(depth + 1);
      must(typeof key === 'string' || key instanceof Uint8Array, 'a key that is not text');
      items.push([key, this.value(depth + 1)]);
    }
    return new Pairs(items);
  }

  /** @param {number} depth @returns {Value} */
  value(depth) {
    must(depth <= MAX_DEPTH, 'nested too deep');
    const head = this.count(1);
    if (head <= 0x7f) return BigInt(head);
    if (head <= 0x8f) return this.map(head & 15, depth);
    if (head <= 0x9f) return this.array(head & 15, depth);
    if (head <= 0xbf) return this.text(head & 31);
    if (head >= 0xe0) return BigInt(head - 0x100);
    const { view } = this;
    switch (head) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return this.bytes(this.count(1 << (head - 0xc4)));
      case 0xca: return view.getFloat32(this.take(4));
      case 0xcb: return view.getFloat64(this.take(8));
      case 0xcc: case 0xcd: case 0xce: return BigInt(this.count(1 << (head - 0xcc)));
      case 0xcf: return view.getBigUint64(this.take(8));
      case 0xd0: return BigInt(view.getInt8(this.take(1)));
      case 0xd1: return BigInt(view.getInt16(this.take(2)));
      case 0xd2: return BigInt(view.getInt32(this.take(4)));
      case 0xd3: return view.getBigInt64(this.take(8));
      case 0xd9: case 0xda: case 0xdb: return this.text(this.count(1 << (head - 0xd9)));
      case 0xdc: case 0xdd: return this.array(this.count(2 << (head - 0xdc)), depth);
      case 0xde: case 0xdf: return this.map(this.count(2 << (head - 0xde)), depth);
      default: throw new Refused('an extension');
    }
  }
}

/**
 * Return the value that the bytes are, all of them.
 *
 * @param {Uint8Array} data
 * @returns {Value}
 * @throws {Refused} They are no one value of MessagePack.
 */
export function read(data) {
  const reader = new Reader(data);
  const value = reader.value(0);
  must(reader.at === data.length, 'bytes after the end');
  return value;
}

/** Bytes that grow. */
class Writer {
  constructor() {
    this.data = new Uint8Array(256);
    this.view = new DataView(this.data.buffer);
    this.at = 0;
  }

  /** @param {number} n */
  room(n) {
    if (this.at + n > this.data.length) {
      const grown = new Uint8Array(2 * (this.at + n));
      grown.set(this.data);
      this.data = grown;
      this.view = new DataView(grown.buffer);
    }
    this.at += n;
    return this.at - n;
  }

  /** @param {number} n */
  byte(n) {
    const at = this.room(1);  // first: it may replace the data
    this.data[at] = n;
  }

  /** @param {number} head @param {number} n @param {number} bytes */
  count(head, n, bytes) {
    this.byte(head);
    const at = this.room(bytes);
    if (bytes === 1) this.view.setUint8(at, n);
    else if (bytes === 2) this.view.setUint16(at, n);
    else this.view.setUint32(at, n);
  }

  /**
   * @param {number} n
   * @param {number} short first byte of the form that holds the count itself, 0 for none
   * @param {number} most the largest count of that form
   * @param {number} eight first byte of the form with a count of 8 bits, 0 for none; 16 and 32 bits follow it
   */
  head(n, short, most, eight, sixteen = eight + 1) {
    if (short && n <= most) this.byte(short | n);
    else if (eight && n <= 0xff) this.count(eight, n, 1);
    else if (n <= 0xffff) this.count(sixteen, n, 2);
    else this.count(sixteen + 1, n, 4);
  }

  /** @param {Uint8Array} bytes */
  raw(bytes) {
    const at = this.room(bytes.length);
    this.data.set(bytes, at);
  }

  /** @param {bigint} n */
  integer(n) {
    if (n >= 0n && n <= 127n) this.byte(Number(n));
    else if (n >= 0n && n <= 0xffffffffn) this.head(Number(n), 0, 0, 0xcc);
    else if (n >= -32n && n < 0n) this.byte(Number(n) & 0xff);
    else if (n >= -128n && n < 0n) this.count(0xd0, Number(n) & 0xff, 1);
    else if (n >= -0x8000n && n < 0n) this.count(0xd1, Number(n) & 0xffff, 2);
    else if (n >= -0x80000000n && n < 0n) this.count(0xd2, Number(n) >>> 0, 4);
    else {
      this.byte(n < 0n ? 0xd3 : 0xcf);
      const at = this.room(8);
      this.view.setBigUint64(at, BigInt.asUintN(64, n));
    }
  }

  /** @param {Value} value */
  value(value) {
    if (value === null) this.byte(0xc0);
    else if (typeof value === 'boolean') this.byte(value ? 0xc3 : 0xc2);
    else if (typeof value === 'bigint') this.integer(value);
    else if (typeof value === 'number') {
      this.byte(0xcb);
      const at = this.room(8);
      this.view.setFloat64(at, value);
    } else if (typeof value === 'string') {
      const bytes = ENCODER.encode(value);
      this.head(bytes.length, 0xa0, 31, 0xd9);
      this.raw(bytes);
    } else if (value instanceof Uint8Array) {
      this.head(value.length, 0, 0, 0xc4);
      this.raw(value);
    } else if (Array.isArray(value)) {
      this.head(value.length, 0x90, 15, 0, 0xdc);
      for (const each of value) this.value(each);
    } else {
      this.head(value.items.length, 0x80, 15, 0, 0xde);
      for (const [key, each] of value.items) {
        this.value(key);
        this.value(each);
      }
    }
  }
}

/**
 * Return the shortest form of a value; floats take eight bytes.
 *
 * @param {Value} value
 * @returns {Uint8Array}
 */
export function write(value) {
  const writer = new Writer();
  writer.value(value);
  return writer.data.slice(0, writer.at);
}

/** @param {Uint8Array} a @param {Uint8Array} b */
export function equal(a, b) {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** @param {Value} value @returns {Value[]} */
export function array(value) {
  must(Array.isArray(value), 'no array');
  return value;
}

/** @param {Value} value @param {number} n @returns {Value[]} */
export function arrayOf(value, n) {
  must(Array.isArray(value) && value.length === n, 'no array');
  return value;
}

/** @param {Value} value @param {bigint} low @param {bigint} high @returns {bigint} */
export function integer(value, low, high) {
  must(typeof value === 'bigint' && low <= value && value <= high, 'no integer');
  return value;
}

/** @param {Value} value @param {number} low @param {number} high both ends below 2^53; @returns {number} */
export function whole(value, low, high) {
  return Number(integer(value, BigInt(low), BigInt(high)));
}

/** @param {Value} value @returns {number} */
export function float(value) {
  must(typeof value === 'number' && Number.isFinite(value), 'no float');
  return value;
}

/** @param {Value} value @returns {string} */
export function text(value) {
  must(typeof value === 'string', 'no text');
  return value;
}

/** @param {Value} value @returns {Uint8Array} */
export function binary(value) {
  must(value instanceof Uint8Array, 'no binary');
  return value;
}
