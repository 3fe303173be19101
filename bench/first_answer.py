"""A device's first answer from a cold start: time and memory of a new process.

    python bench/first_answer.py [RUNS]

A new process imports the agent, makes its ledger, reads a list of surveys from a file and answers what is
due, on a real disk. With a pinned key the list is signed. Figures are medians of RUNS processes (default 15):
seconds from the start of Python to the answer by the clock and of the processor, and the most memory that was
ever resident. The largest parts are measured in processes of their own, by what importing each adds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness import integers, survey_text

from hubbub.survey import Survey, SurveyList, public_text
from hubbub.wire import encode_surveys

RUNS = 15
DAYS = 30
MEASURED = """
def most(word="VmHWM"):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(word)) * 1024 / 1e6
"""
FIRST = """
import sys, time
folder, key, answers = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
from hubbub_client import Agent, Policy
from hubbub.survey import Attribute
policy = Policy(require_opt_in="no")
now = 1767225600 + 1000
with Agent(folder + "/ledger.db", "http://127.0.0.1:9", budget=500.0, policy=policy, survey_key=key,
           clock=lambda: now) as agent:
    with open(folder + "/list", "rb") as file:
        found = agent.read_surveys(file.read())
    for survey in found:
        agent.register(Attribute.integer(survey.attribute.id, 0, 90, kind=survey.attribute.kind))
        agent.set(survey.attribute.id, 40)
        assert agent.enrol(survey).accepted
    assert len(agent.answer()) == answers
print(time.process_time(), most())
"""
PARTS = {
    "Python": "",
    "NumPy": "import numpy",
    "msgpack and SQLite": "import msgpack, sqlite3",
    "hashlib (the system's OpenSSL)": "import hashlib",
    "the agent": "from hubbub_client import Agent",
    "cryptography, for a signed list": "import cryptography.hazmat.primitives.asymmetric.ed25519",
}


def surveys(days: int) -> list[Survey]:
    """Return seven daily and three weekly evolving surveys, seven daily and three weekly static ones."""
    found = []
    for number in range(20):
        weekly = number % 10 >= 7
        kind = "evolving" if number < 10 else "static"
        found.append(
            Survey.parse(
                survey_text(
                    f"q-{number}",
                    integers(0, 90),
                    epsilon=0.01 if kind == "evolving" else 1.0,
                    attribute=f"a-q-{number}",
                    kind=kind,
                    devices=20_000,
                    period="7d" if weekly else "1d",
                    rounds=max(1, days // 7) if weekly else days,
                    lateness="7d",
                )
            )
        )
    return found


def first(asked: int, key: Ed25519PrivateKey | None) -> tuple[float, float, float]:
    """Return seconds of the clock and of the processor, and MB, of one first answer."""
    with tempfile.TemporaryDirectory() as folder:
        canonical = tuple(survey.canonical for survey in surveys(DAYS)[:asked])
        start = 1767225600
        signed = SurveyList(1, start, start + 86_400, canonical)
        listed = encode_surveys(canonical) if key is None else signed.signed(key)
        (Path(folder) / "list").write_bytes(listed)
        words = [folder, "" if key is None else public_text(key), str(asked)]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", MEASURED + FIRST, *words], capture_output=True, text=True, check=True
        )
        took = time.perf_counter() - began
    cpu, memory = map(float, done.stdout.split())
    return took, cpu, memory


def added() -> dict[str, float]:
    """Return MB that each part adds to those before it."""
    imports, found, before = "", {}, 0.0
    for name, line in PARTS.items():
        imports += line + "\n"
        code = MEASURED + imports + 'print(most("VmRSS"))'
        memory = median(
            float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
            for _ in range(5)
        )
        found[name], before = memory - before, memory
    return found


def main() -> int:
    """Print a row for each case, then one for each part."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print("| first answer | by the clock | processor time | memory at the most |\n|---|---|---|---|")
    for asked in (1, 20):
        for key, named in ((None, "no pinned key"), (Ed25519PrivateKey.generate(), "a signed list")):
            rows = [first(asked, key) for _ in range(runs)]
            clock, cpu, memory = (median(column) for column in zip(*rows, strict=True))
            what = f"{asked} survey{'s' * (asked > 1)}, {named}"
            print(f"| {what} | {clock:.2f} s | {cpu:.2f} s | {memory:.1f} MB |")
    print("\n| part | MB it adds |\n|---|---|")
    for name, memory in added().items():
        print(f"| {name} | {memory:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
