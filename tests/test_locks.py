"""The locks: what the demo installs is what the tests install, in the same versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pinned(lock: str) -> dict[str, set[str]]:
    """Name -> versions (one for each Python or system that needs its own) of a lock."""
    out: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==([^ ]+)", (ROOT / lock).read_text(), re.M):
        out.setdefault(name, set()).add(version)
    return out


@pytest.mark.parametrize("lock", ["requirements-demo.lock", "deploy/compose/requirements.lock"])
def test_what_is_installed_first_keeps_its_version_when_the_tests_install(lock: str) -> None:
    everything = pinned("requirements.lock")
    assert len(pinned(lock)) > 20
    assert {name: found for name, found in pinned(lock).items() if found != everything.get(name)} == {}


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_a_lock_names_no_host_and_no_path(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert not re.search(r"^--|://| @ |/(?:root|home|tmp|work)/", text, re.M)
