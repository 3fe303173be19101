"""The fleet: many devices as columns, their ledgers, and their uploads over HTTP."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from surveys import DISEASES, LABELS, START_S, VISITS

from hubbub.errors import ParameterError
from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub.wire import report as wire
from hubbub_client import AttributeRefusedError, Limits, TransportError
from hubbub_lab.simulation import DeviceSimulator

HEALTH, VISITS_SURVEY, DISEASES_SURVEY = (Survey.parse(text) for text in (LABELS, VISITS, DISEASES))
DAY_S = 86_400
NOW_S = START_S + 10.0
PATIENT = Limits(gap_s=0.0, base_s=0.001, cap_s=0.002, retry_after_cap_s=0.01)


def fleet_of(
    devices: int, *surveys: Survey, budget: float = 20.0, seed: int = 7, **settings
) -> DeviceSimulator:
    fleet = DeviceSimulator(devices, budget=budget, source=seeded(seed), **settings)
    for survey in surveys:
        fleet.register(survey.attribute)
        assert fleet.enrol(survey, now_s=NOW_S).accepted.all()
    return fleet


def test_a_round_gives_one_column_per_survey_with_fresh_ids() -> None:
    fleet = fleet_of(500, HEALTH, VISITS_SURVEY, DISEASES_SURVEY)
    columns = fleet.answer(now_s=NOW_S)
    assert [column.survey for column in columns] == [HEALTH, VISITS_SURVEY, DISEASES_SURVEY]
    assert len({row.tobytes() for column in columns for row in column.ids}) == 1500
    for column in columns:
        assert column.round == 0
        assert column.devices.tolist() == list(range(500))
        assert column.ids.shape == (500, 16) and column.ids.dtype == np.uint8
        assert column.symbols.max() < column.survey.channel.outputs
    assert fleet.answer(now_s=NOW_S) == ()
    assert fleet.answer(now_s=NOW_S - DAY_S) == ()


def test_a_static_answer_is_sent_again_under_fresh_ids_and_costs_nothing() -> None:
    fleet = fleet_of(300, VISITS_SURVEY)
    (first,) = fleet.answer(now_s=NOW_S)
    loss, committed = fleet.loss, fleet.committed
    (second,) = fleet.answer(now_s=NOW_S + DAY_S)
    assert (second.round, fleet.answer(now_s=NOW_S + 2 * DAY_S)) == (1, ())
    np.testing.assert_array_equal(first.symbols, second.symbols)
    assert not {row.tobytes() for row in first.ids} & {row.tobytes() for row in second.ids}
    np.testing.assert_array_equal(fleet.loss, loss)
    np.testing.assert_array_equal(fleet.committed, committed)


def test_an_evolving_answer_is_drawn_anew_and_paid_every_round() -> None:
    fleet = fleet_of(300, HEALTH)
    assert fleet.committed == pytest.approx(3.0, abs=1e-5)
    drawn = []
    for day in range(3):
        drawn.append(fleet.answer(now_s=NOW_S + day * DAY_S)[0].symbols)
        assert fleet.loss == pytest.approx(day + 1.0, abs=1e-5)
        assert fleet.committed == pytest.approx(3.0, abs=1e-5)
    assert (drawn[0] != drawn[1]).any() and (drawn[1] != drawn[2]).any()


def test_a_round_that_went_by_stays_reserved() -> None:
    fleet = fleet_of(20, HEALTH)
    fleet.answer(now_s=NOW_S + 2 * DAY_S)
    assert fleet.answer(now_s=NOW_S + 3 * DAY_S) == ()
    assert fleet.loss == pytest.approx(1.0, abs=1e-5)
    assert fleet.committed == pytest.approx(3.0, abs=1e-5)


@pytest.mark.parametrize(
    ("survey", "settings", "reason"),
    [
        (HEALTH, {"budget": 2.9}, "over_budget"),
        (HEALTH, {"max_epsilon": 0.9}, "over_policy"),
        (Survey.parse(LABELS.replace('"poor"', '"bad"')), {}, "domain_mismatch"),
        (Survey.parse(LABELS.replace('id = "health"', 'id = "mood"')), {}, "unknown_attribute"),
        (Survey.parse(LABELS.replace("2026-01-01", "2025-12-01")), {}, "expired"),
    ],
)
def test_enrolment_is_refused_with_the_agents_reasons(survey, settings, reason) -> None:
    fleet = DeviceSimulator(3, **{"budget": 9.0, **settings})
    fleet.register(HEALTH.attribute)
    enrolment = fleet.enrol(survey, now_s=NOW_S)
    assert (enrolment.reason, enrolment.accepted.tolist()) == (reason, [False] * 3)
    assert not fleet.committed.any()
    assert fleet.answer(now_s=NOW_S) == ()


def test_enrolling_again_reserves_nothing_again() -> None:
    fleet = fleet_of(5, HEALTH, budget=3.0)
    again = fleet.enrol(HEALTH, now_s=NOW_S)
    assert again.accepted.all() and again.reason is None
    assert fleet.committed == pytest.approx(3.0, abs=1e-5)


def test_values_reach_the_channel_and_missing_ones_as_missing() -> None:
    def sharp(text: str) -> Survey:  # wrong with a probability of at most 1e-6
        for key in ("epsilon", "boost_epsilon"):
            for old in ("1.0", "2.0", "3.0"):
                text = text.replace(f"\n{key} = {old}", f"\n{key} = 17.0")
        return Survey.parse(text)

    fleet = fleet_of(4, sharp(LABELS), budget=60.0)
    fleet.set("health", ["poor", None, "excellent", "no such label"])
    assert fleet.answer(now_s=NOW_S)[0].symbols.tolist() == [3, 4, 0, 4]
    fleet = fleet_of(4, sharp(VISITS))
    fleet.set("visits", np.array([20.0, np.nan, 0.0, 21.0]))
    assert fleet.answer(now_s=NOW_S)[0].symbols.tolist() == [20, 21, 0, 21]


def test_static_values_are_pinned_by_the_first_answer() -> None:
    fleet = fleet_of(3, VISITS_SURVEY)
    fleet.set("visits", [1, 2, 3])
    fleet.set("visits", [3, 2, None])
    fleet.answer(now_s=NOW_S)
    fleet.set("visits", [3, 2, None])
    with pytest.raises(AttributeRefusedError, match="pinned"):
        fleet.set("visits", [1, 2, 3])


def test_a_seed_repeats_a_run_and_the_system_does_not() -> None:
    def run(seed: int | None) -> bytes:
        fleet = (
            DeviceSimulator(50, budget=9.0)
            if seed is None
            else DeviceSimulator(50, budget=9.0, source=seeded(seed))
        )
        fleet.register(HEALTH.attribute)
        fleet.enrol(HEALTH, now_s=NOW_S)
        (column,) = fleet.answer(now_s=NOW_S)
        return column.symbols.tobytes() + column.ids.tobytes()

    assert run(1) == run(1)
    assert len({run(1), run(2), run(None), run(None)}) == 4


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least one device"):
        DeviceSimulator(0, budget=1.0)
    with pytest.raises(ParameterError, match="budget"):
        DeviceSimulator(1, budget=-1.0)
    fleet = fleet_of(3, HEALTH)
    with pytest.raises(ParameterError, match="one per device"):
        fleet.set("health", ["good"])
    with pytest.raises(AttributeRefusedError, match="registered first"):
        fleet.set("height", [1, 2, 3])
    with pytest.raises(AttributeRefusedError, match="first registered"):
        fleet.register(Attribute.integer("health", 0, 3, kind="evolving"))
    with pytest.raises(TransportError, match="must be http"):
        fleet.upload("collector:80")


def test_draining_gives_what_an_upload_would_have_sent() -> None:
    fleet = fleet_of(10, HEALTH)
    columns = fleet.answer(now_s=NOW_S)
    assert fleet.drain() == columns
    assert fleet.drain() == ()
    report = wire.decode_report(columns[0].report(4).data)
    assert report.id == columns[0].ids[4].tobytes() == columns[0].report(4).id
    assert (report.digest, report.round) == (HEALTH.digest, 0)
    assert report.symbol == columns[0].symbols[4]


Reply = Callable[[bytes, int], tuple[int, bytes, dict[str, str]]]


class Sink:
    """A collector that remembers every body and answers by a rule of (body, how often it came)."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.rule: Reply = lambda body, _: accepted(body)
        lock, seen = threading.Lock(), Counter()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_POST(self) -> None:
                assert self.path == "/v1/reports"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    sink.bodies.append(body)
                    seen[body] += 1
                    status, answer, headers = sink.rule(body, seen[body])
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def accepted(body: bytes) -> tuple[int, bytes, dict[str, str]]:
    count = len(wire.decode_upload(body, max_reports=100))
    return 200, wire.encode_response(["accepted"] * count), {}


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.close()


def test_every_device_sends_one_upload_and_progress_is_told(sink: Sink) -> None:
    fleet = fleet_of(60, HEALTH, VISITS_SURVEY)
    columns = fleet.answer(now_s=NOW_S)
    told: list[tuple[int, int]] = []
    counts = fleet.upload(sink.url + "/", concurrency=4, progress=lambda *done: told.append(done))
    assert (counts.uploads, counts.reports, counts.retries, counts.given_up) == (60, 120, 0, ())
    assert counts.outcomes == {"accepted": 120}
    assert told[-1] == (60, 60)
    assert fleet.drain() == ()
    received = defaultdict(set)
    for body in sink.bodies:
        reports = wire.decode_upload(body, max_reports=8)
        assert [report.digest for report in reports] == [HEALTH.digest, VISITS_SURVEY.digest]
        for report in reports:
            received[report.digest].add((report.id, report.symbol))
    for column in columns:
        expected = {(row.tobytes(), int(s)) for row, s in zip(column.ids, column.symbols, strict=True)}
        assert received[column.survey.digest] == expected


def test_what_is_turned_away_is_sent_again_byte_for_byte(sink: Sink) -> None:
    turned_away = [(429, b"", {"Retry-After": "1"}), (503, b"later", {}), (200, b"not an answer", {})]
    sink.rule = lambda body, times: turned_away[times - 1] if times <= 3 else accepted(body)
    fleet = fleet_of(20, HEALTH)
    fleet.answer(now_s=NOW_S)
    counts = fleet.upload(sink.url, concurrency=4, limits=PATIENT)
    assert (counts.uploads, counts.retries) == (20, 60)
    assert counts.failures == {"status 429": 20, "status 503": 20, "unreadable answer": 20}
    assert set(Counter(sink.bodies).values()) == {4}
    assert len(set(sink.bodies)) == 20


def test_what_is_not_answered_in_time_waits_for_the_next_call(sink: Sink) -> None:
    fleet = fleet_of(30, HEALTH)
    (column,) = fleet.answer(now_s=NOW_S)
    unlucky = {column.report(row).id for row in (3, 11, 29)}
    answer_all = sink.rule

    def refuse_some(body: bytes, times: int) -> tuple[int, bytes, dict[str, str]]:
        (report,) = wire.decode_upload(body, max_reports=8)
        return (503, b"", {}) if report.id in unlucky else answer_all(body, times)

    sink.rule = refuse_some
    first = fleet.upload(sink.url, concurrency=4, patience_s=0.05, limits=PATIENT)
    assert (first.uploads, first.given_up) == (27, (3, 11, 29))
    sink.rule = answer_all
    second = fleet.upload(sink.url, concurrency=4, limits=PATIENT)
    assert (second.uploads, second.given_up) == (3, ())
    assert fleet.drain() == ()
    assert len(set(sink.bodies)) == 30


def test_a_body_that_will_never_be_taken_is_given_up_at_once(sink: Sink) -> None:
    sink.rule = lambda body, _: (400, b"", {})
    fleet = fleet_of(5, HEALTH)
    fleet.answer(now_s=NOW_S)
    counts = fleet.upload(sink.url, concurrency=2)
    assert (len(counts.given_up), len(sink.bodies)) == (5, 5)


def test_a_collector_that_is_not_there_is_an_outcome(sink: Sink) -> None:
    fleet = fleet_of(3, HEALTH)
    fleet.answer(now_s=NOW_S)
    sink.close()
    counts = fleet.upload(sink.url, concurrency=2, patience_s=0.02, limits=PATIENT)
    assert counts.given_up == (0, 1, 2)
    assert set(counts.failures) == {"unreachable"}


def test_a_device_with_many_reports_sends_several_uploads(sink: Sink) -> None:
    longer = LABELS.replace("rounds = 3", "rounds = 19").replace("epsilon = 1.0", "epsilon = 0.1")
    fleet = fleet_of(3, Survey.parse(longer))
    for day in range(19):
        fleet.answer(now_s=NOW_S + day * DAY_S)
    counts = fleet.upload(sink.url, concurrency=1)
    assert (counts.uploads, counts.reports) == (9, 57)
    sizes = Counter(len(wire.decode_upload(body, max_reports=100)) for body in sink.bodies)
    assert sizes == {8: 6, 3: 3}


def test_an_error_of_the_callers_progress_ends_the_upload(sink: Sink) -> None:
    fleet = fleet_of(50, HEALTH)
    fleet.answer(now_s=NOW_S)

    def broken(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet.upload(sink.url, concurrency=2, progress=broken)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hubbub-fleet")]


def test_a_lone_hash_costs_what_its_own_column_says() -> None:
    """Of 5 inputs in 16 points some buckets hold none: such a report says nothing, and costs nothing."""
    text = LABELS.replace('name = "grr"', 'name = "local_hashing"\nbuckets = 4')
    survey = Survey.parse(text.replace("evolving", "static"))
    fleet = DeviceSimulator(400, budget=2.0, source=seeded(4))
    fleet.register(survey.attribute)
    fleet.set(survey.attribute.id, ["good"] * 400)
    fleet.enrol(survey, now_s=START_S)
    (column,) = fleet.answer(now_s=START_S)
    spread = [np.ptp(np.log(survey.channel.column(int(symbol)))) for symbol in column.symbols]
    np.testing.assert_allclose(fleet.loss, spread, atol=1e-9)
    assert 0.0 in spread and max(spread) > 0.9
