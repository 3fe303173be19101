"""A device whose ledger lies on a slow disk: every fsync takes 0.2 s longer, by strace.

    python bench/chaos/slow_ledger.py

An agent answers and uploads thirty rounds. It exits with 1 if a report was sent that is not written, one is
written that was not sent, an id came with two symbols, a symbol is not the one in the transcript, or no fsync
was held up.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HARNESS = Path(__file__).parents[2] / "tests" / "harness"
sys.path.insert(0, str(HARNESS))

ROUNDS = 30
FSYNC_S = 0.2


def device(folder: str) -> None:
    """Run the process of the agent; print what it found as JSON."""
    from devices import Clock, Collector  # noqa: PLC0415 - found by the line above
    from full_disk import SURVEY, open_agent  # noqa: PLC0415 - as above
    from surveys import START_S  # noqa: PLC0415 - as above

    clock, collector = Clock(START_S), Collector()
    agent = open_agent(Path(folder), clock, collector)
    waits = []
    for number in range(ROUNDS):
        clock.now_s = SURVEY.round_start_s(number)
        began = time.monotonic()
        agent.answer()
        waits.append(time.monotonic() - began)
        agent.upload()
    written = {answer.id: answer for answer in agent._ledger.answers()}
    symbols: dict[bytes, set[int]] = {}
    for report in collector.received:
        symbols.setdefault(report.id, set()).add(report.symbol)
    recorded = {row.slot: row.symbol for row in agent._ledger.transcript() if row.kind == "record"}
    agent.close()
    found = {
        "answers": len(written),
        "sent_not_written": len(symbols.keys() - written.keys()),
        "written_not_sent": len(written.keys() - symbols.keys()),
        "two_noises": sum(len(seen) > 1 for seen in symbols.values()),
        "wrong_symbol": sum(
            seen != {recorded[written[i].round]} for i, seen in symbols.items() if i in written
        ),
        "median_answer_s": round(sorted(waits)[ROUNDS // 2], 3),
    }
    print(json.dumps(found))


def main(words: list[str]) -> int:
    """Run the device under strace; return 1 where anything is lost, doubled or untested."""
    if words:
        device(words[0])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "strace.txt"
        hold_up = f"inject=fsync,fdatasync:delay_enter={int(FSYNC_S * 1e6)}"
        line = ["strace", "-f", "-o", str(said), "-e", "trace=fsync,fdatasync", "-e", hold_up]
        (Path(folder) / "ledger").mkdir()
        done = subprocess.run(
            [*line, sys.executable, __file__, str(Path(folder) / "ledger")],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        found = json.loads(done.stdout.splitlines()[-1])
        held_up = said.read_text().count("DELAYED")
    print(
        f"said  an answer takes {found['median_answer_s']} s in the median, {FSYNC_S} s more for each fsync"
    )
    print(f"{held_up} fsyncs held up; {found}")
    wrong = sum(
        found[name] for name in ("sent_not_written", "written_not_sent", "two_noises", "wrong_symbol")
    )
    return int(wrong > 0 or found["answers"] != ROUNDS or not held_up)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
