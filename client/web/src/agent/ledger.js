/**
 * The device's ledger: one database of the browser, changed by one strict transaction after another.
 *
 * What it holds is also in memory. A change is written only if the database still has the counter that memory has, so
 * that of two contexts which decided on the same state one is refused, and decides anew.
 *
 * @module
 */

const TABLES = ['device', 'attributes', 'consents', 'enrolments', 'transcript', 'answers', 'outbox', 'lists'];
const VERSION = 1;

/** @typedef {string | number} Key */
/** A table, a key, and the row to put there; undefined deletes. @typedef {[string, Key, any?]} Change */
/** @typedef {Record<string, Map<Key, any>>} Tables */

/** What a device refuses to do, or cannot; the message says why, `reason` in one word. */
export class DeviceError extends Error {
  /** @param {string} reason @param {string} message */
  constructor(reason, message) {
    super(message);
    this.name = 'DeviceError';
    this.reason = reason;
  }
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {unknown} error */
function unusable(error) {
  return new DeviceError('ledger', `the device's ledger cannot be used: ${error instanceof Error ? error.name : error}`);
}

export class Ledger {
  /** @type {Tables} */
  tables = {};
  counter = -1;

  /** @param {IDBDatabase} database */
  constructor(database) {
    this.database = database;
    // Another tab deletes or upgrades it: this one must not hold that up, and can write no more.
    database.onversionchange = () => database.close();
  }

  /**
   * Return the ledger of a name, made with a budget where there is none.
   *
   * @param {string} name
   * @param {number} budget
   */
  static async open(name, budget) {
    try {
      const request = indexedDB.open(name, VERSION);
      request.onupgradeneeded = () => {
        for (const table of TABLES) request.result.createObjectStore(table);
        const device = { budget, counter: 0, closed: { loss: 0, committed: 0 }, paused: false, backoff: null };
        /** @type {IDBTransaction} */ (request.transaction).objectStore('device').put(device, 'device');
      };
      const ledger = new Ledger(await done(request));
      await ledger.load();
      return ledger;
    } catch (error) {
      throw unusable(error);
    }
  }

  get device() {
    return this.tables.device.get('device');
  }

  /** Read all of it, as one transaction sees it. */
  async load() {
    const transaction = this.database.transaction(TABLES);
    const read = TABLES.map(async (table) => {
      const store = transaction.objectStore(table);
      const [keys, rows] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
      return [table, new Map(keys.map((key, i) => [key, rows[i]]))];
    });
    this.tables = Object.fromEntries(await Promise.all(read));
    this.counter = this.device.counter;
  }

  /** Return whether memory is what the database holds. */
  async isCurrent() {
    const found = await done(this.database.transaction('device').objectStore('device').get('device'));
    return found.counter === this.counter;
  }

  /**
   * Write all the changes in one transaction, on disk before it resolves; false, and nothing, if memory is behind.
   *
   * @param {Change[]} changes
   * @returns {Promise<boolean>}
   * @throws {DeviceError} It could not be written, and nothing of it was.
   */
  async commit(changes) {
    const counter = this.counter + 1;
    const own = changes.filter(([table]) => table === 'device').map(([, , row]) => row);
    /** @type {Change[]} */
    const all = [
      ...changes.filter(([table]) => table !== 'device'),
      ['device', 'device', Object.assign({}, this.device, ...own, { counter })],
    ];
    let behind = false;
    try {
      await new Promise((resolve, reject) => {
        const transaction = this.database.transaction(TABLES, 'readwrite', { durability: 'strict' });
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
        const request = transaction.objectStore('device').get('device');
        // It commits once this was looked at: what follows need not wait for it.
        request.onsuccess = () => {
          behind = request.result.counter !== this.counter;
          if (behind) transaction.abort();
        };
        for (const [table, key, row] of all) put(transaction.objectStore(table), key, row);
      });
    } catch (error) {
      if (behind) return false;
      throw unusable(error);
    }
    for (const [table, key, row] of all) {
      if (row === undefined) this.tables[table].delete(key);
      else this.tables[table].set(key, row);
    }
    this.counter = counter;
    return true;
  }

  close() {
    this.database.close();
  }
}

/** @param {IDBObjectStore} store @param {Key} key @param {any} row */
function put(store, key, row) {
  if (row === undefined) store.delete(key);
  else store.put(row, key);
}
