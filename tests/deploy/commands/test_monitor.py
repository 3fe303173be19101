"""`hubbub monitor`: every lie that witnesses cannot see is named by whoever reads entries and server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from surveys import LABELS

from hubbub import Survey
from hubbub import transparency as tlog
from hubbub_deploy.commands.monitor import monitor
from hubbub_deploy.transparency import SeenLog

SURVEY = Survey.parse(LABELS)
START_S, END_S = SURVEY.start_s, SURVEY.round_end_s(0) + SURVEY.lateness_s
HOUR_S = 3_600.0
SEALED = b'{"accounting":{"accepted":300}}'


class Server:
    """A server's read API, with one survey and the releases that it shows."""

    def __init__(self, sealed: Sequence[bytes], canonical: bytes = SURVEY.canonical) -> None:
        self._sealed, self._canonical = sealed, canonical

    def canonical(self) -> bytes:
        return self._canonical

    def rounds(self) -> list[dict[str, Any]]:
        return [{"round": number, "sealed": True} for number in range(1, len(self._sealed) + 1)]

    def sealed(self, number: int) -> bytes:
        return self._sealed[number - 1]


def release(data: bytes = SEALED, number: int = 1, digest: bytes = SURVEY.digest) -> tlog.Entry:
    return tlog.Entry("release", (digest, number, tlog.hash_of(data)))


def counted(n: int = 300) -> tlog.Entry:
    return tlog.Entry("counted", (SURVEY.digest, 1, n, 0, bytes(32), bytes(32)))


def listed(sequence: int, issued_s: int, about: int = 0) -> tlog.Entry:
    return tlog.Entry("list", (sequence, bytes([about]) * 32, issued_s, issued_s + 100_000))


ASKED = tlog.survey_entry(SURVEY.canonical)


def seen(entries: Sequence[tlog.Entry | bytes]) -> SeenLog:
    datas = [each if isinstance(each, bytes) else each.data for each in entries]
    nodes: dict[tuple[int, int], bytes] = {}
    for size, data in enumerate(datas):
        for level, place, found in tlog.grown(lambda *at: nodes[at], size, tlog.leaf_hash(data)):
            nodes[level, place] = found
    root = tlog.root_of(lambda *at: nodes[at], len(datas))
    return SeenLog(tlog.Witnessed(tlog.Checkpoint("log.example", len(datas), root), {}), datas)


def told(
    entries: Sequence[tlog.Entry | bytes],
    servers: Sequence[Server],
    *,
    before: Sequence[tlog.Entry] | None = None,
    looked_s: float = START_S - 9,
    now_s: float = END_S + 25 * HOUR_S,
) -> list[str]:
    log, look = seen(entries), None
    if before is not None:
        earlier = seen(before)
        look = monitor._Look(len(before), earlier.root(len(before)).hex(), looked_s)
    wrong = [*log.faults, *monitor._rewritten(log, look)]
    wrong += monitor._lists(log, look, 24 * HOUR_S)
    return [*wrong, *monitor._server(log, servers, look, now_s, 24 * HOUR_S)]  # type: ignore[arg-type]  # as much of it


def test_an_honest_server_beside_its_log_is_in_order() -> None:
    entries = [listed(1, START_S - 50), ASKED, release(), listed(2, START_S), counted()]
    assert told(entries, [Server([SEALED])], before=entries[:2]) == []
    assert told(entries[:3], [Server([SEALED])], now_s=END_S + 60) == []
    # Within its hours a release may be on its way.
    assert told(entries[:2], [Server([SEALED])], now_s=END_S + 60) == []
    assert told([ASKED, release(), tlog.Entry("erased", (SURVEY.digest,))], []) == []


OTHER = b'{"another":"release"}'


@pytest.mark.parametrize(
    ("entries", "servers", "before", "words"),
    [
        ([ASKED, release(), release(OTHER)], [Server([SEALED])], None, "second release"),
        ([listed(1, 5), listed(1, 5, 1), ASKED, release()], [Server([SEALED])], None, "second list"),
        ([ASKED, b"\x93", release()], [Server([SEALED])], None, "cannot be read"),
        ([ASKED, release(OTHER)], [Server([SEALED])], None, "another release than entry 1"),
        ([ASKED], [Server([SEALED])], None, "its release is not in the log"),
        ([ASKED], [Server([])], None, "held back"),
        ([ASKED, release()], [Server([])], None, "the server has none"),
        ([ASKED, release()], [], None, "the server has none of them"),
        ([release()], [Server([SEALED])], None, "is not in the log"),
        ([release(), ASKED], [Server([SEALED])], None, "back-dated"),
        ([listed(2, 50), listed(1, 40), ASKED, release()], [Server([SEALED])], None, "dated before"),
        ([listed(1, 50), listed(2, 40), ASKED, release()], [Server([SEALED])], None, "dated before"),
        ([listed(1, 50), ASKED], [Server([SEALED])], [ASKED], "rewritten"),
        ([ASKED], [Server([SEALED])], [ASKED, release()], "rolled back"),
        ([ASKED, release()], [Server([SEALED])], None, "does not list the answers"),
        ([ASKED, release(), counted(299)], [Server([SEALED])], None, "lists 299 answers, 300 were counted"),
        ([ASKED, release(), counted(), counted(299)], [Server([SEALED])], None, "second counted"),
    ],
)
def test_a_lie_is_named(
    entries: list[tlog.Entry | bytes], servers: list[Server], before: list[tlog.Entry] | None, words: str
) -> None:
    assert any(words in line for line in told(entries, servers, before=before))


def test_a_survey_that_was_put_in_after_it_began_is_named() -> None:
    entries = [listed(1, START_S - 50), ASKED, release()]
    late = told(entries, [Server([SEALED])], before=entries[:1], looked_s=START_S + 60)
    assert [line for line in late if "was not there when its first round had begun" in line]


def test_a_list_that_is_older_than_a_look_that_did_not_see_it_is_named() -> None:
    entries = [ASKED, listed(1, START_S)]
    looked_s = START_S + 30 * HOUR_S
    late = told(entries, [], before=entries[:1], looked_s=looked_s)
    assert [line for line in late if "dated before a look that did not see it" in line]


def test_entries_that_are_not_those_of_the_checkpoint_are_refused() -> None:
    witnessed = seen([ASKED]).witnessed
    with pytest.raises(tlog.NotLoggedError, match="must be those of its checkpoint"):
        SeenLog(witnessed, [release().data])
