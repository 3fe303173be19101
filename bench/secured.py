"""A cluster behind TLS, passwords and access lists, from upload to release, and each right taken away.

    python bench/secured.py

It runs two tests that are too long for every run:
`test_a_cluster_that_asks_everybody_counts_seals_and_releases` (a broker with TLS, SCRAM and access lists, a
Redis with TLS and a password, and collector, aggregator and dashboard as processes, each with the rights of
docs/kafka-security.md alone), and
`test_each_right_taken_away_from_each_process_is_refused_in_a_clear_line`, whose rows it prints. It exits with
1 if one does not pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/integration/test_kafka_secured.py::test_a_cluster_that_asks_everybody_counts_seals_and_releases",
    "tests/integration/test_kafka_rights.py"
    "::test_each_right_taken_away_from_each_process_is_refused_in_a_clear_line",
)
SEEN = """\
200 reports are accepted by the collector, counted by the aggregator and released by the dashboard.
Written with the collector's name: 20 rounds' seals without a signature and with a wrong one, a record that
is none, a survey that does not compile and one that does, into two partitions: 84 dead letters, and no other
number moved. Written with the aggregator's name: refused by the broker.
Collector, aggregator, dashboard and `dead-letters` of a user without rights: each ends with an error that
names the topic.

| process | without | what it does | what it says |
|---|---|---|---|"""


def main() -> int:
    """Run the tests, say what they have seen, and return the exit status."""
    rows = []
    for test in TESTS:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", test],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"HUBBUB_TEST_LONG": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        if done.returncode or "1 passed" not in done.stdout:
            print(done.stdout[-3000:])
            return 1
        rows += [line.removeprefix("ROW ") for line in done.stdout.splitlines() if line.startswith("ROW ")]
    print(SEEN)
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
