r"""Write src/printable.js: which characters are printable in Unicode 14, as lengths of runs in turn.

    python3.11 tools/printable.py > src/printable.js

An engine's own `\p{...}` has its own Unicode, and two devices that take different titles split a population.
Python 3.11 has Unicode 14.
"""

from __future__ import annotations

import sys
import unicodedata

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
# Persian, Sinhala and families of emoji are spelt with them.
JOINERS = "\u200c\u200d"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
WIDTH = 100


def base36(n: int) -> str:
    """Return a number's digits and letters, as parseInt(text, 36) reads them."""
    out = ""
    while n:
        n, digit = divmod(n, 36)
        out = DIGITS[digit] + out
    return out or "0"


def runs() -> list[int]:
    """Return the lengths of runs of characters that are not printable, then printable, and so on."""
    out, state, length = [], False, 0
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        shown = character in JOINERS or unicodedata.category(character) not in HIDDEN
        if shown != state:
            out.append(length)
            state, length = shown, 0
        length += 1
    return [*out, length]


def main() -> None:
    """Print the module."""
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this Python must have Unicode 14.0.0, got {unicodedata.unidata_version}")
    words = " ".join(base36(length) for length in runs())
    lines = [words[i : i + WIDTH] for i in range(0, len(words), WIDTH)]
    text = " +\n".join(f"  '{line}'" for line in lines)
    print(
        f"""/**
 * Which characters are printable in Unicode 14. Written by tools/printable.py.
 *
 * @module
 */

/** Lengths of runs, in base 36: not printable, printable, and so on. */
const RUNS =
{text};

/** @type {{number[]}} */
const ENDS = [];
for (const run of RUNS.split(' ')) ENDS.push((ENDS.at(-1) ?? 0) + parseInt(run, 36));

/**
 * Return whether every character of a text is printable.
 *
 * @param {{string}} text
 */
export function printable(text) {{
  for (const character of text) {{
    const code = /** @type {{number}} */ (character.codePointAt(0));
    let low = 0;
    for (let high = ENDS.length - 1; low < high; ) {{
      const middle = (low + high) >> 1;
      if (code < ENDS[middle]) high = middle;
      else low = middle + 1;
    }}
    if (low % 2 === 0) return false;
  }}
  return true;
}}"""
    )


if __name__ == "__main__":
    main()
