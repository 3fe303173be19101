"""The issuer's record of grants: no device has the tokens of a period twice, whatever a clock says."""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub_collector.errors import PeriodOverError
from hubbub_collector.token_issuer import Grants


@pytest.fixture
def grants(tmp_path: Path) -> Iterator[Grants]:
    with closing(Grants(tmp_path / "grants.sqlite")) as opened:
        yield opened


def test_a_clock_that_was_ahead_once_grants_nobody_twice(grants: Grants) -> None:
    today, ahead = 20_000, 20_365
    assert grants.grant(today, b"a", b"first") == "new"
    assert grants.grant(ahead, b"b", b"of the year to come") == "new"
    assert grants.grant(today, b"a", b"second") == "used"
    assert grants.grant(today, b"a", b"first") == "again"
    assert grants.grant(today, b"b", b"first") == "new"


def test_a_period_whose_grants_are_gone_is_over(grants: Grants, tmp_path: Path) -> None:
    for period in (7, 8, 9):
        assert grants.grant(period, b"a", b"first") == "new"
    with pytest.raises(PeriodOverError, match="period must be later than 7"):
        grants.grant(7, b"a", b"second")
    # Read from the file, not remembered: and in that of an earlier version every row below the last but one.
    with closing(Grants(tmp_path / "grants.sqlite")) as again, pytest.raises(PeriodOverError):
        again.grant(7, b"b", b"first")
    assert grants.grant(8, b"a", b"second") == "used"


def test_a_file_of_an_earlier_version_has_lost_all_but_its_last_two_periods(tmp_path: Path) -> None:
    with closing(Grants(tmp_path / "grants.sqlite")) as grants:
        assert grants.grant(9, b"a", b"first") == "new"
        grants._db.execute("DROP TABLE swept")
    with closing(Grants(tmp_path / "grants.sqlite")) as grants:
        with pytest.raises(PeriodOverError, match="period must be later than 7"):
            grants.grant(7, b"a", b"first")
        assert grants.grant(8, b"a", b"first") == "new"


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from([b"a", b"b"]), st.booleans()), max_size=40))
def test_no_period_is_granted_twice_to_a_device(asked: list[tuple[int, bytes, bool]]) -> None:
    found: Counter[tuple[int, bytes]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "grants.sqlite")
        grants = Grants(path)
        for period, who, restart in asked:
            if restart:
                grants.close()
                grants = Grants(path)
            with suppress(PeriodOverError):
                found[period, who] += grants.grant(period, who, secrets.token_bytes(32)) == "new"
        grants.close()
    assert max(found.values(), default=0) <= 1
