"""A signed list is served byte for byte, read anew when replaced, and must fit what the gateway serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.survey.signed_list import SurveyList
from hubbub.wire.report import encode_surveys
from hubbub_collector.errors import CollectorError
from hubbub_collector.gateway import ListFile

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
HEALTH, VISIT = Survey.parse(LABELS), Survey.parse(VISITS)


def listed(sequence: int, *surveys: Survey, cancelled: tuple[Survey, ...] = ()) -> bytes:
    canonicals = tuple(survey.canonical for survey in surveys)
    return SurveyList(sequence, 1, 2, canonicals, tuple(survey.digest for survey in cancelled)).signed(KEY)


def test_a_list_is_served_as_it_is_and_a_newer_one_without_a_restart(tmp_path: Path, capsys) -> None:
    path = tmp_path / "list.bin"
    path.write_bytes(listed(1, HEALTH))
    file = ListFile(path, {HEALTH.digest})
    assert file.current == listed(1, HEALTH)
    newer = tmp_path / "newer"
    newer.write_bytes(listed(2, HEALTH, cancelled=(VISIT,)))
    newer.replace(path)
    assert file.current == listed(2, HEALTH, cancelled=(VISIT,))
    assert file.cancelled == (VISIT.digest,)
    for bad in (b"half", listed(3, HEALTH, VISIT)):
        newer.write_bytes(bad)
        newer.replace(path)
        for _ in range(2):
            assert file.current == listed(2, HEALTH, cancelled=(VISIT,))
        assert capsys.readouterr().err.count("still served") == 1
    path.unlink()
    assert file.current == listed(2, HEALTH, cancelled=(VISIT,))
    path.write_bytes(listed(4, HEALTH))
    assert file.current == listed(4, HEALTH)


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (None, "must be readable"),
        (b"\x00", "must be a signed list"),
        (encode_surveys([HEALTH.canonical]), "got a plain one"),
        (listed(1, HEALTH, VISIT), f"must name served surveys only, got {VISIT.digest.hex()}"),
    ],
)
def test_a_list_that_does_not_fit_is_refused_at_the_start(tmp_path: Path, data, rule) -> None:
    path = tmp_path / "list.bin"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(CollectorError, match=rule):
        ListFile(path, {HEALTH.digest})
