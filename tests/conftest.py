"""What holds for every test: one hypothesis profile, and markers that follow from the folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure. In CI the same examples come every time; at a desk new ones do.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# Where a shell runs the tests in the background it has Ctrl-C ignored, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MARKED_FOLDERS = ("integration", "statistical")

# All else is marked quick: under a minute on two quiet cores. What is here takes more than some seconds.
NOT_QUICK = (
    *MARKED_FOLDERS,
    "bench",
    "deploy",
    "property",
    "core/design",
    "core/mechanisms",
    "core/privacy_profile",
    "aggregator/counting/test_dedup.py",
    "client/ledger/test_ledger.py",
    "client/surveys/test_list_memory.py",
    "client/test_agent_owner.py",
    "collector/test_writer.py",
    "core/filter/test_regression.py",
    "topic/test_sqlite_log.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by their folder, so that `-m "not integration"` never misses one that forgot to say so.

    Where tests run in several processes, those of one integration module stay together, with its servers.
    """
    tests = Path(__file__).parent
    for item in items:
        for folder in MARKED_FOLDERS:
            if item.path.is_relative_to(tests / folder):
                item.add_marker(folder)
        if not any(item.path.is_relative_to(tests / place) for place in NOT_QUICK):
            item.add_marker("quick")
        if item.path.is_relative_to(tests / "integration"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
