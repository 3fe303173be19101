"""A cluster behind TLS, passwords and access lists, from upload to release, with forgers and strangers.

    python bench/secured.py

It runs `test_a_cluster_that_asks_everybody_counts_seals_and_releases`, which is too long for every run of the
tests: a broker with TLS, SCRAM and access lists, a Redis with TLS and a password, and collector, aggregator
and dashboard as processes, each with the rights of docs/kafka.md alone. It exits with 1 if it does not pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEST = "tests/integration/test_kafka_secured.py"
NAME = "test_a_cluster_that_asks_everybody_counts_seals_and_releases"
SEEN = """\
200 reports are accepted by the collector, counted by the aggregator and released by the dashboard.
Written with the collector's name: 20 rounds' seals without a signature and with a wrong one, a record that
is none, a survey that does not compile and one that does, into two partitions: 84 dead letters, and no other
number moved. Written with the aggregator's name: refused by the broker.
Collector, aggregator, dashboard and `dead-letters` of a user without rights: each ends with an error that
names the topic."""


def main() -> int:
    """Run the test, say what it has seen, and return the exit status."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{TEST}::{NAME}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HUBBUB_TEST_LONG": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    last = next((line for line in reversed(done.stdout.splitlines()) if " in " in line), "nothing ran")
    print(last)
    if done.returncode or "1 passed" not in last:
        print(done.stdout[-3000:])
        return 1
    print(SEEN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
