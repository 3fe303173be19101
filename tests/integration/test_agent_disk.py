"""A disk that is full or read-only, a ledger that is damaged: nothing is sent that is not in the ledger."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import full_disk
import pytest
from devices import DAY_S, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, opener
from surveys import START_S

from hubbub_client import ClientError, LedgerLockedError
from hubbub_client.ledger.ledger import Ledger

pytestmark = pytest.mark.integration


def run(folder: Path, kind: str) -> dict:
    command = [sys.executable, full_disk.__file__, str(folder), kind]
    if kind == "tmpfs":
        command = ["unshare", "-m", *command]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(found: dict) -> None:
    assert found["failures"] >= 5  # the disk was full, often
    assert found["answers"] >= 50  # and not always
    for broken in ("sent_not_written", "written_not_sent", "two_noises", "wrong_symbol"):
        assert found[broken] == 0, broken
    assert found["committed"] <= full_disk.BUDGET


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_file_that_may_not_grow_loses_and_repeats_nothing(tmp_path: Path) -> None:
    check(run(tmp_path, "limit"))


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return False
    mount = f"mount -t tmpfs -o size=64k none {folder}"
    return (
        subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, check=False).returncode == 0
    )


def test_a_full_and_then_a_read_only_disk_loses_and_repeats_nothing(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("needs the right to mount a small file system")
    found = run(tmp_path, "tmpfs")
    check(found)
    assert "ledger" in found["read_only"] and found["sent_read_only"] == 0


def test_a_damaged_ledger_is_refused_or_reads_as_it_was(tmp_path: Path) -> None:
    """300 times some bytes of the file are changed: it opens to the same account and answers, or not at all.

    What SQLite's own checks and the chain cannot see are free pages and the rows that carry no budget (the
    outbox, the back-off), so the account is what is compared.
    """
    clock, collector = Clock(START_S + 10), Collector()
    with opener(tmp_path, clock, collector) as make:
        agent = make()
        agent.set("visits", 3)
        agent.enrol(HEALTH_SURVEY)
        agent.enrol(VISITS_SURVEY)
        agent.answer()
        clock.now_s += DAY_S
        agent.answer()
        before = agent.status()
        rows = agent._ledger.transcript()
        agent.close()
        intact = (tmp_path / "ledger.db").read_bytes()
        chance = random.Random(5)  # noqa: S311 - places
        refused = 0
        for _ in range(300):
            data = bytearray(intact)
            start = chance.randrange(len(data))
            for place in range(start, min(len(data), start + chance.choice([1, 16, 512, 4096]))):
                data[place] = chance.randrange(256)
            (tmp_path / "ledger.db").write_bytes(data)
            (tmp_path / "ledger.db-wal").unlink(missing_ok=True)
            try:
                agent = make()
                found = agent.status()
                assert agent._ledger.transcript() == rows
                assert (found.loss, found.committed) == (before.loss, before.committed)
            except ClientError:
                refused += 1
            finally:
                agent.close()
        assert refused >= 60


def test_two_processes_never_hold_one_ledger(tmp_path: Path) -> None:
    """Six processes want the ledger at once and again and again; each that gets it adds one attribute."""
    code = (
        "import sys, time\nfrom hubbub_client.errors import LedgerLockedError\n"
        "from hubbub_client.ledger.ledger import Ledger\n"
        "won = 0\n"
        "while won < 5:\n"
        "    try: ledger = Ledger(sys.argv[1], budget=1.0)\n"
        "    except LedgerLockedError: time.sleep(0.002); continue\n"
        "    ledger.add_attribute(f'{sys.argv[2]}-{won}', b'spec'); ledger.close(); won += 1\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    path = tmp_path / "ledger.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, path, str(i)], env=environment, stderr=subprocess.PIPE, text=True
        )
        for i in range(6)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, errors
    ledger = Ledger(path, budget=1.0)
    assert len(ledger.attributes()) == 30
    with pytest.raises(LedgerLockedError):
        Ledger(path, budget=1.0)
    ledger.close()
