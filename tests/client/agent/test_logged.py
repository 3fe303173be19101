"""Devices that pin a log take only lists that a quorum saw in it this month."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from surveys import VISITS

from hubbub import Survey
from hubbub import transparency as tlog
from hubbub.survey import SurveyList, public_text
from hubbub.wire import encode_surveys, pack
from hubbub_client import Agent, ClientError, ListRefusedError
from hubbub_client.agent.signed_lists import MAX_AGE_S, out_of_log
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.upload import Response

PRIVATE = [Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32) for place in range(1, 6)]
LOG = tlog.NoteKey("log.example", tlog.LOG_KEY, PRIVATE[0].public_key().public_bytes_raw())
WITNESSES = tuple(
    tlog.NoteKey(f"w{place}.example", tlog.WITNESS_KEY, PRIVATE[place].public_key().public_bytes_raw())
    for place in (1, 2, 3)
)
POLICY, SIGNER = tlog.LogPolicy(LOG, WITNESSES, 2), PRIVATE[4]
SURVEY = Survey.parse(VISITS)
NOW_S = SURVEY.start_s
LISTED = SurveyList(1, NOW_S - 60, NOW_S + 86_400, (SURVEY.canonical,), ()).signed(SIGNER)
OTHER = SurveyList(1, NOW_S - 60, NOW_S + 90_000, (SURVEY.canonical,), ()).signed(SIGNER)


def logged(listed: bytes = LISTED, *, served: bytes = LISTED, seen: int = 2, ago_s: int = 0) -> bytes:
    """A list as /v2/surveys has it, out of a log of one entry."""
    data = tlog.list_entry(listed).data
    text = tlog.Checkpoint(LOG.name, 1, tlog.leaf_hash(data)).text
    lines = [
        key.sign(text, private, NOW_S - ago_s) for key, private in zip(WITNESSES, PRIVATE[1:], strict=False)
    ]
    note = text + "\n" + LOG.sign(text, PRIVATE[0]) + "".join(lines[:seen])
    return pack(["hubbub-logged-list", served, tlog.proof_text(0, [], note).encode()])


class Collector:
    """A collector that serves one list, and says what it was asked for."""

    def __init__(self, body: bytes) -> None:
        self.body, self.asked = body, list[str]()

    def get(self, path: str) -> Response:
        self.asked.append(path)
        return Response(200, self.body)

    def post(self, path: str, body: bytes) -> Response:
        raise AssertionError(path)

    def close(self) -> None:
        pass


def fetched(tmp_path: Path, body: bytes, log: tlog.LogPolicy | None = POLICY) -> tuple[list[str], list[str]]:
    collector = Collector(body)
    key = public_text(SIGNER)
    with Agent(
        tmp_path / "l.db",
        "http://x",
        budget=4.0,
        http=collector,
        clock=lambda: NOW_S,
        survey_key=key,
        log=log,
    ) as agent:
        return [survey.id for survey in agent.fetch_surveys()], collector.asked


def test_a_logged_list_is_taken_and_without_a_log_nothing_changes(tmp_path: Path) -> None:
    assert fetched(tmp_path, logged()) == ([SURVEY.id], ["/v2/surveys"])
    assert fetched(tmp_path, LISTED, None) == ([SURVEY.id], ["/v1/surveys"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda: LISTED, "unlogged"),
        (lambda: logged(OTHER), "unlogged"),  # of two lists of one number the log has the other
        (lambda: logged(served=encode_surveys([SURVEY.canonical])), "unsigned"),
        (lambda: logged(seen=1), "unwitnessed"),
        (lambda: logged(ago_s=MAX_AGE_S + 1), "stale_checkpoint"),
        (lambda: pack(["hubbub-logged-list", LISTED, b""]), "unlogged"),
        (lambda: pack(["hubbub-logged-list", LISTED]), "unlogged"),
    ],
)
def test_any_other_list_is_refused_and_says_why(
    tmp_path: Path, body: Callable[[], bytes], reason: str
) -> None:
    with pytest.raises(ListRefusedError) as refused:
        fetched(tmp_path, body())
    assert refused.value.reason == reason


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ListRefusedError):
        out_of_log(data, POLICY, now_s=NOW_S)


def test_a_log_without_a_survey_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="must come with survey_key"):
        Agent(tmp_path / "l.db", "http://x", budget=4.0, http=Collector(b""), log=POLICY)


def test_a_log_that_was_longer_before_is_refused_after_a_restart(tmp_path: Path) -> None:
    assert fetched(tmp_path, logged())[0] == [SURVEY.id]
    with closing(Ledger(tmp_path / "l.db", budget=None)) as ledger:
        assert ledger.log_size(LOG.public) == 1
        ledger.see_log(LOG.public, 2)
    with pytest.raises(ListRefusedError, match="must have 2 entries") as refused:
        fetched(tmp_path, logged())
    assert refused.value.reason == "log_rolled_back"
