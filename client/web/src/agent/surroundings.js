/**
 * Where a device runs: refused where its ledger would not even live as long as site data do.
 *
 * @module
 */

import { DeviceError } from './ledger.js';

/**
 * Refuse a page that has no locks, and, unless asked otherwise, a frame of another site.
 *
 * @param {boolean} ephemeral
 */
export function mustBeFirstParty(ephemeral) {
  if (!globalThis.isSecureContext || !navigator.locks || !globalThis.indexedDB) {
    throw new DeviceError('surroundings', 'a device needs a secure page with locks and a database');
  }
  if (!ephemeral && globalThis.top !== globalThis.self) {
    throw new DeviceError('framed', "a frame's site data are another ledger for every site that shows it");
  }
}

/** Ask the browser to keep the site's data, and return whether it does. */
export async function askToStay() {
  const { storage } = navigator;
  return (await storage?.persisted?.()) || (await storage?.persist?.()) || false;
}
