"""What a device reads of a collector's list: no more than fits, and nothing that it cannot read."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

from surveys import LABELS, VISITS

from hubbub.survey import in_list_order
from hubbub.survey.survey import Survey
from hubbub_client.surveys.schedule import LEAST_LISTED, MAX_LISTED, UNREADABLE, decode_listed_surveys

GOLDEN = Path(__file__).parents[2] / "golden"
SMALL = Survey.parse(LABELS)


def huge(version: int) -> bytes:
    """A survey of 131,070 values in some 150 bytes."""
    text = VISITS.split("[mechanism]", maxsplit=1)[0] + '[mechanism]\nname = "grr"'
    text = text.replace("high = 20", "high = 131069").replace("version = 1", f"version = {version}")
    return Survey.parse(text).canonical


def test_surveys_that_cannot_be_read_are_left_out() -> None:
    assert decode_listed_surveys([b"?", SMALL.canonical, b"", SMALL.canonical[:-1]]) == (SMALL,)


def test_a_short_list_of_huge_surveys_is_not_read_to_its_end() -> None:
    listed = [huge(version) for version in range(1, 21)]
    assert len(b"".join(listed)) < 4096
    tracemalloc.start()
    found = decode_listed_surveys([*listed, SMALL.canonical])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [survey.version for survey in found] == list(range(1, 1 + MAX_LISTED // 131_071))
    assert peak < 40 * 2**20


def hashed(version: int, high: int = 2**20 - 2) -> bytes:
    """A survey of 2^20 hashed candidates in some 180 bytes."""
    text = VISITS.split("[mechanism]", maxsplit=1)[0] + '[mechanism]\nname = "local_hashing"'
    text = text.replace("high = 20", f"high = {high}").replace("version = 1", f"version = {version}")
    return Survey.parse(text).canonical


def test_a_survey_of_hashes_counts_by_its_maps_and_pushes_no_other_out() -> None:
    pool = hashed(1)
    pools = [replace(Survey.from_canonical(pool), version=version).canonical for version in range(2, 12)]
    rest = [SMALL.canonical, *(huge(version) for version in range(2, 2 + (MAX_LISTED - 2**17) // 131_071))]
    assert len(decode_listed_surveys([pool, *rest])) == 1 + len(rest)
    tracemalloc.start()
    found = decode_listed_surveys([pool, *pools])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each.channel.inputs for each in found] == [2**20] * 11
    assert peak < 2**20  # 11 maps of their inputs would be 88 MiB


def test_what_older_devices_cannot_read_stands_last_in_a_list() -> None:
    wide, narrow = (Survey.from_canonical(hashed(1, high)) for high in (2**20 - 2, 2**17 - 2))
    assert in_list_order([wide, SMALL, narrow]) == [SMALL, narrow, wide]
    site = replace(SMALL, version=2, ledgers=("durable", "site-data"))
    absent = Survey.from_canonical((GOLDEN / "key-value.bin").read_bytes())
    spun = replace(Survey.parse(VISITS.replace("static", "evolving")), rotation=2)
    assert in_list_order([wide, absent, site, spun, narrow]) == [narrow, spun, site, absent, wide]


def test_a_list_of_rubbish_is_not_read_to_its_end() -> None:
    rubbish = [b"?"] * (MAX_LISTED // UNREADABLE)
    assert decode_listed_surveys([*rubbish[1:], SMALL.canonical]) == (SMALL,)
    assert decode_listed_surveys([*rubbish, b"?", SMALL.canonical]) == ()


def test_a_list_of_very_many_small_surveys_is_read_so_far(monkeypatch) -> None:
    """32 MiB hold 180,000 of them, whose reading would take minutes."""
    monkeypatch.setattr("hubbub_client.surveys.schedule.MAX_LISTED", 20 * LEAST_LISTED)
    assert SMALL.channel.inputs < LEAST_LISTED
    assert decode_listed_surveys([SMALL.canonical] * 1000) == (SMALL,) * 20
