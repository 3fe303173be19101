"""Recounts beside an archive: whole, for good, and shown only where they say what they are."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from hubbub_aggregator.errors import ArchiveError, DivergedError
from hubbub_aggregator.release import METHOD
from hubbub_aggregator.stores import RecountFolder

DIGEST = "0123456789abcdef" * 2


def recount(*without: str, number: int = 1, devices: int = 300, digest: str = DIGEST) -> dict[str, Any]:
    return {
        "survey": {"id": "visits", "version": 1, "digest": digest, "title": "Visits"},
        "method": METHOD,
        "round": number,
        "sealed": True,
        "devices": devices,
        "recount": {"without_issuers": list(without)},
    }


def test_a_recount_is_kept_once_and_other_bytes_of_its_name_are_refused(tmp_path: Path) -> None:
    folder = RecountFolder(tmp_path)
    path = folder.put(recount("leaky.example.org"))
    assert path == folder.put(recount("leaky.example.org"))
    assert path.name.startswith(f"{DIGEST}-round-1-without-leaky.example.org-")
    before = path.read_bytes()
    with pytest.raises(DivergedError, match="must be this recount, got other bytes; they stay"):
        folder.put(recount("leaky.example.org", devices=301))
    assert path.read_bytes() == before
    assert folder.files() == [path]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_recounts_come_by_survey_in_order_and_names_that_read_alike_are_kept_apart(tmp_path: Path) -> None:
    folder = RecountFolder(tmp_path)
    assert folder.by_survey() == {}
    other = "f" * 32
    made = [
        recount("a/b"),
        recount("a/b", "leaky"),
        recount("a:b"),
        recount("a/b", number=2),
        recount("n" * 255, digest=other),
    ]
    for document in reversed(made):
        folder.put(document)
    assert folder.by_survey() == {DIGEST: made[:4], other: made[4:]}
    assert folder.of_round((bytes.fromhex(DIGEST), 1)) == [made[3]]
    assert RecountFolder(tmp_path).by_survey() == folder.by_survey()
    assert folder.count(bytes.fromhex(DIGEST)) == 4
    folder.erase(bytes.fromhex(DIGEST))
    assert folder.by_survey() == {other: made[4:]}


def test_a_file_that_is_no_recount_is_not_shown_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = RecountFolder(tmp_path)
    good = folder.put(recount("leaky"))
    data = good.read_bytes()
    renamed = good.with_name(good.name.replace("round-1", "round-2"))
    renamed.write_bytes(data)
    older = folder.put(recount("leaky", number=3) | {"method": 7})
    released = {key: value for key, value in recount("x").items() if key != "recount"}
    bad: dict[str, bytes] = {
        "cut.json": data[:-3],
        "empty.json": b"",
        "text.json": b"\xff\xfe",
        "list.json": b"[1]",
        "deep.json": b"[" * 100_000,
        "release.json": json.dumps(released).encode(),
    }
    for name, body in bad.items():
        (folder.path / name).write_bytes(body)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert folder.by_survey() == {DIGEST: [recount("leaky")]}
    said = [record.getMessage().split(" ")[0] for record in caplog.records]
    assert sorted(said) == sorted([*bad, renamed.name, older.name])
    good.write_bytes(data.replace(b"300", b"3e2"))  # the same number in other bytes
    assert folder.by_survey() == {}


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "recounts").write_text("a file")
    with pytest.raises(ArchiveError, match="recounts: a recount cannot be written: File exists"):
        RecountFolder(tmp_path).put(recount("leaky"))
    assert RecountFolder(tmp_path).by_survey() == {}
