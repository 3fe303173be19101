/**
 * Sets of the cells of two attributes that tell how these go together, and nothing of either.
 *
 * @module
 */

import { must } from '../msgpack.js';
import { Sets } from './sets.js';

const ALL = 2 ** 32;

/** Sets of which every row and every column holds one share. */
export class LatinSets extends Sets {
  /** @param {number[]} shape readings of the attributes @param {bigint} size @param {bigint} held @param {bigint} classes */
  constructor(shape, size, held, classes) {
    super(shape.reduce((a, b) => a * b, 1), size, held);
    const whole = shape.length === 2 && shape.every((r) => BigInt(r) % classes === 0n);
    must(whole && (size * classes) % BigInt(this.inputs) === 0n, 'whole classes of two attributes');
    this.shape = shape;
    this.classes = Number(classes);
    this.band = (this.size * this.classes) / this.inputs;
  }

  limits() {
    const picks = this.shape.flatMap((r) => Array.from({ length: r - 1 }, (_, i) => r - i));
    return [ALL, ...[...picks, this.band * (this.classes - this.band)].map((m) => ALL - (ALL % m))];
  }

  /** @param {number} x @param {number[]} words */
  chosen(x, words) {
    const { band, classes } = this;
    let at = 1;
    const [rows, columns] = this.shape.map((r) => {
      const found = Array.from({ length: r }, (_, i) => i % classes);
      for (let last = r - 1; last > 0; last--) {
        const pick = words[at++] % (last + 1);
        [found[pick], found[last]] = [found[last], found[pick]];
      }
      return found;
    });
    const sums = rows.flatMap((row) => columns.map((column) => row + column));
    const due = words[0] < this.held ? words[at] % band : band + (words[at] % (classes - band));
    return sums.map((sum) => (sum + due - sums[x] + 2 * classes) % classes < band);
  }

  /** @param {number[]} cells @param {number} n */
  agrees(cells, n) {
    const [rows, columns] = this.shape;
    const [inRow, inColumn] = [new Array(rows).fill(0), new Array(columns).fill(0)];
    cells.forEach((many, i) => {
      inRow[Math.floor(i / columns)] += many;
      inColumn[i % columns] += many;
    });
    const due = n * this.size;
    return inRow.every((many) => many * rows === due) && inColumn.every((many) => many * columns === due);
  }
}
