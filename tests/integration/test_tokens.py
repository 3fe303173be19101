"""Tokens over real HTTP: device, issuer and gateway, each with its own file, and the counts behind them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import rsa
from devices import FAST_SETUP, HEALTH, HEALTH_SURVEY, VISIT_COUNT, VISITS_SURVEY, Clock
from starlette.applications import Starlette
from surveys import START_S

from hubbub.numeric import SYSTEM
from hubbub.tokens import (
    Token,
    blind,
    challenge_digest,
    decode_token,
    encode_request,
    finalize,
    public_of,
    token_input,
)
from hubbub.wire.report import Report, decode_response, encode_report, encode_upload
from hubbub.wire.token_upload import decode_token_upload, encode_token_upload
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.release import SteadyClock
from hubbub_aggregator.runners.counters import LogCounter
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_client import Agent, TokenIssuer, Tokens, TransportError
from hubbub_client.upload.uploader import Response
from hubbub_collector.gateway import create_app
from hubbub_collector.permits import Issuer, Permits
from hubbub_collector.server import create_server
from hubbub_collector.token_issuer import Grants, IssuerSettings, create_issuer_app
from hubbub_deploy.commands.issuer import trusted
from hubbub_lab.errors import LabError
from hubbub_lab.simulation import Session, TokenPool, Traffic
from hubbub_topic.sqlite import SqliteLog

pytestmark = pytest.mark.integration

NAME = "tokens.example"
QUANTITY = 5
DAY = 86_400
CREDENTIALS = [f"device-{number}-{secrets.token_hex(8)}" for number in range(3)]


@contextlib.contextmanager
def served(app: Starlette) -> Iterator[str]:
    server = create_server(app, port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    waiting = threading.Event()
    while not server.started:
        assert thread.is_alive()
        waiting.wait(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def secret() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class World:
    """An issuer and a gateway that takes its tokens, by one clock."""

    folder: Path
    clock: Clock
    secret: rsa.RSAPrivateKey
    issuer_url: str
    url: str
    log: SqliteLog
    app: Starlette

    def issuer(self, credential: str = CREDENTIALS[0]) -> TokenIssuer:
        key = base64.urlsafe_b64encode(public_of(self.secret).spki).decode()
        return TokenIssuer(self.issuer_url, NAME, key, credential, quantity=QUANTITY)

    def agent(self, name: str = "a", credential: str = CREDENTIALS[0]) -> Agent:
        tokens = Tokens(self.folder / f"{name}.tokens", self.issuer(credential))
        return Agent(
            self.folder / f"{name}.db", self.url, budget=9.0, clock=self.clock, tokens=tokens, **FAST_SETUP
        )

    def post(self, body: bytes, **headers: str) -> urllib3.BaseHTTPResponse:
        return urllib3.request("POST", f"{self.url}/v1/reports", body=body, headers=headers, retries=False)

    def outcomes(self, *pairs: tuple[Report, bytes]) -> list[str]:
        answer = self.post(encode_token_upload([(encode_report(report), token) for report, token in pairs]))
        assert answer.status == 200, answer.data
        return list(decode_response(answer.data))

    def token(self, number: int = 0, digest: bytes = HEALTH_SURVEY.digest, name: str = NAME) -> Token:
        """A token made with the issuer's key itself, for what the test says."""
        key = public_of(self.secret)
        nonce, bound = secrets.token_bytes(32), challenge_digest(name, digest, number)
        message = token_input(nonce, bound, key.id)
        hidden = blind(key, message, SYSTEM)
        numbers = self.secret.private_numbers()
        signed = pow(int.from_bytes(hidden.message, "big"), numbers.d, key.modulus)
        authenticator = finalize(key, message, signed.to_bytes(256, "big"), hidden.inverse)
        return Token(nonce, bound, key.id, authenticator)

    def issuers(self) -> dict[str, list[int]]:
        """Return accepted, duplicate and over quota by issuer that a fresh count of the log gives."""
        found: dict[str, list[int]] = {}
        for partition in range(4):
            state = PartitionState()
            state.place(self.log.partition_map, partition)
            state.commit(apply_many(state, self.log.read(partition, 0, 100)))
            for known in state.rounds.values():
                for name, tally in known.issuers.items():
                    sums = found.get(name, [0, 0, 0])
                    found[name] = [a + b for a, b in zip(sums, tally.numbers, strict=True)]
        return found

    def counted(self) -> Counter[tuple[str, int]]:
        """Return the number of reports that a fresh count of the log gives each verdict, by round."""
        found: Counter[tuple[str, int]] = Counter()
        path = self.folder / f"store-{secrets.token_hex(4)}.sqlite"
        with closing(SqliteStore(path, log_identity=self.log.identity, partitions=4)) as store:
            counter = LogCounter(self.log, store)
            while any(counter.advance(partition) for partition in range(4)):
                pass
            for state in counter.states.values():
                for (_, number), known in state.rounds.items():
                    for verdict in ("accepted", "duplicate", "invalid", "late", "early"):
                        found[verdict, number] += getattr(known.verdicts, verdict)
        return +found


@pytest.fixture
def world(tmp_path: Path, secret: rsa.RSAPrivateKey) -> Iterator[World]:
    clock = Clock(START_S + 100.0)
    (tmp_path / "credentials").write_text(
        "\n".join(hashlib.sha256(word.encode()).hexdigest() for word in CREDENTIALS)
    )
    settings = IssuerSettings(key=secret, credentials=tmp_path / "credentials", quantity=QUANTITY)
    permits = Permits(issuers=(Issuer(NAME, public_of(secret)),))
    with (
        closing(Grants(tmp_path / "grants.sqlite")) as grants,
        SqliteLog(tmp_path / "log.sqlite", 4) as log,
    ):
        app = create_app(log, [HEALTH_SURVEY, VISITS_SURVEY], clock=clock, permits=permits)
        with served(create_issuer_app(settings, grants, clock=clock)) as issuer_url, served(app) as url:
            yield World(tmp_path, clock, secret, issuer_url, url, log, app)


def test_the_log_says_whose_token_each_report_came_with(world: World) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    permits = Permits(
        issuers=(
            Issuer(NAME, public_of(world.secret)),
            Issuer("other.example", public_of(other), quota=4),
        )
    )
    app = create_app(world.log, [HEALTH_SURVEY, VISITS_SURVEY], clock=world.clock, permits=permits)

    def pair(world: World, name: str) -> tuple[Report, bytes]:
        token = world.token(name=name)
        return Report(HEALTH_SURVEY.digest, 0, token.report_id, 1), token.encoded

    with served(app) as url:
        here = replace(world, url=url)
        mine = [pair(here, NAME) for _ in range(3)]
        assert here.outcomes(*mine, mine[0]) == ["accepted"] * 4
        theirs = [pair(replace(here, secret=other), "other.example") for _ in range(40)]
        assert here.outcomes(*theirs, mine[1]) == ["accepted"] * 41
    found = world.issuers()
    assert found[NAME] == [3, 2, 0]
    # Partitions take a report each; of 40 reports, none is without any but once in 10^5 runs.
    assert found["other.example"] == [4, 0, 36]


def test_simulated_liars_send_as_many_reports_as_stolen_credentials_get_tokens(world: World) -> None:
    """Two honest devices, twenty liars, one stolen credential: five tokens, all of them for one round."""
    held = np.array(["good", "fair"], dtype=object)
    session = Session(
        world.url,
        [HEALTH_SURVEY],
        {HEALTH.id: held},
        traffic=Traffic(fakes=10.0),
        budget=99.0,
        seed=3,
        clock=world.clock,
        wait=lambda _: None,
        tokens=TokenPool(world.issuer(), CREDENTIALS, 2),
    )
    session.enrol()
    ((sent,), counts) = next(session.rounds(1))
    assert (sent.honest, sent.forged, sent.without_token) == (2, QUANTITY, 0)
    assert counts.outcomes == {"accepted": 2 + QUANTITY}
    assert world.counted() == Counter({("accepted", 0): 2 + QUANTITY})
    assert world.issuers() == {NAME: [2 + QUANTITY, 0, 0]}
    with pytest.raises(LabError, match="one for each of 4 devices"):
        TokenPool(world.issuer(), CREDENTIALS, 4)


def enrolled(agent: Agent) -> Agent:
    agent.register(HEALTH)
    agent.register(VISIT_COUNT)
    agent.set("visits", 3)
    for survey in (HEALTH_SURVEY, VISITS_SURVEY):
        assert agent.enrol(survey).accepted
    return agent


def test_a_device_fetches_tokens_and_its_reports_are_counted(world: World) -> None:
    with enrolled(world.agent()) as agent:
        agent.answer()
        waiting = agent.upload()
        assert (waiting.settled, waiting.waiting, waiting.failure) == ({}, 2, "no token yet")
        assert agent.fetch_tokens()
        assert not agent.fetch_tokens()  # once a period
        done = agent.upload()
        assert sorted(done.settled.values()) == ["accepted", "accepted"]
        assert done.waiting == 0
        # Tokens for the rounds of tomorrow came with them: five were asked for, two rounds wait.
        world.clock.now_s += DAY
        agent.answer()
        assert sorted(agent.upload().settled.values()) == ["accepted", "accepted"]
    assert world.counted() == {("accepted", 0): 2, ("accepted", 1): 2}
    assert world.app.state.gateway.metrics.tokens_of("taken") == {NAME: 4}


def test_a_second_use_of_a_token_is_a_duplicate(world: World) -> None:
    token = world.token()
    first = Report(HEALTH_SURVEY.digest, 0, token.report_id, 0)
    other = Report(HEALTH_SURVEY.digest, 0, token.report_id, 1)
    assert world.outcomes((first, token.encoded), (other, token.encoded)) == ["accepted"] * 2
    assert world.outcomes((other, token.encoded)) == ["accepted"]
    assert world.counted() == {("accepted", 0): 1, ("duplicate", 0): 2}


def test_what_issuer_and_collector_write_down_together_fits_every_device(world: World) -> None:
    """The transcripts of real devices: whoever has both sides finds a blinding factor for every pair of them.

    The factor is drawn uniformly and thrown away, so every matching of devices to tokens has one probability.
    The control: with a factor that is kept, the one true pair stands out.
    """
    issued: dict[str, tuple[bytes, bytes]] = {}
    spent: list[Token] = []
    intake: Any = world.app.intake  # type: ignore[attr-defined]
    submit = intake._submit

    def noted(writer: object, body: bytes, is_gone: object) -> object:
        spent.extend(decode_token(token) for _, token in decode_token_upload(body, max_reports=99))
        return submit(writer, body, is_gone)

    intake._submit = noted
    kept: list[tuple[bytes, int]] = []
    for name, credential in zip("ab", CREDENTIALS, strict=False):
        with enrolled(world.agent(name, credential)) as agent:
            agent.answer()
            tokens = agent._tokens
            assert tokens is not None
            post = tokens._http.post

            def told(
                path: str, body: bytes, name: str = name, post: Any = post, wallet: Any = tokens.wallet
            ) -> Response:
                answer: Response = post(path, body)
                issued[name] = body, answer.body
                kept.extend((one.request, one.inverse) for one in wallet.asked(START_S // DAY))
                return answer

            tokens._http.post = told  # type: ignore[method-assign]
            agent.fetch_tokens()
            agent.upload()
    n = public_of(world.secret).modulus
    assert (len(issued), len(spent)) == (2, 4)
    # Lengths and heads are one for all; nothing that the collector sees was shown to the issuer.
    assert {(len(body), len(answer)) for body, answer in issued.values()} == {
        (259 * QUANTITY, 256 * QUANTITY)
    }
    for body, answer in issued.values():
        for token in spent:
            parts = (token.nonce, token.challenge_digest, token.authenticator, token.report_id)
            assert not any(part in body + answer for part in parts)
        for place in range(QUANTITY):
            blinded = int.from_bytes(body[259 * place + 3 : 259 * (place + 1)], "big")
            signature = int.from_bytes(answer[256 * place : 256 * (place + 1)], "big")
            for token in spent:
                authenticator = int.from_bytes(token.authenticator, "big")
                factor = signature * pow(authenticator, -1, n) % n
                assert pow(authenticator * factor, 65537, n) == blinded
    true = [
        token
        for request, inverse in kept
        for token in spent
        if pow(int.from_bytes(token.authenticator, "big") * pow(inverse, -1, n), 65537, n)
        == int.from_bytes(request[3:], "big")
    ]
    assert len(true) == len(spent)


def test_what_a_token_does_not_admit_is_refused_and_not_written(world: World) -> None:
    good, spare = world.token(), world.token(1)
    elsewhere, stranger = world.token(digest=VISITS_SURVEY.digest), world.token(name="another.example")
    forged = Token(good.nonce, good.challenge_digest, good.key_id, spare.authenticator)
    foreign = Token(good.nonce, good.challenge_digest, bytes(32), good.authenticator)

    def report(token: Token, number: int = 0) -> Report:
        return Report(HEALTH_SURVEY.digest, number, token.report_id, 0)

    wrong = [
        (report(spare), spare.encoded),  # of round 1
        (report(elsewhere), elsewhere.encoded),  # of another survey
        (report(stranger), stranger.encoded),  # of another issuer's name
        (report(forged), forged.encoded),
        (report(good), foreign.encoded),  # of an unknown key
        (Report(HEALTH_SURVEY.digest, 0, secrets.token_bytes(16), 0), good.encoded),  # of another report
        (report(good), b"no token"),
    ]
    assert world.outcomes(*wrong[:3], (report(good), good.encoded), *wrong[3:]) == [
        *["invalid"] * 3,
        "accepted",
        *["invalid"] * 4,
    ]
    assert world.outcomes(*wrong) == ["invalid"] * 7
    assert world.counted() == {("accepted", 0): 1}
    refused = {"other_round": 6, "forged": 2, "unknown_key": 2, "other_id": 2, "malformed": 2}
    assert world.app.state.gateway.metrics.tokens_of("refused") == refused


def test_reports_without_tokens_are_refused_as_a_whole(world: World) -> None:
    plain = encode_upload([encode_report(Report(HEALTH_SURVEY.digest, 0, bytes(16), 0))])
    answer = world.post(plain)
    assert answer.status == 401
    assert b"must carry a token" in answer.data
    for body in (b"\x92\x02", b"\x92\x02\xc0", b"\x92\x02\x91\x01\x01"):
        assert world.post(body).status == 400, body
    assert world.outcomes() == []
    assert list(decode_response(world.post(b"\x92\x02\x91\x01").data)) == ["invalid"]
    assert world.counted() == {}


def test_a_device_gets_its_quantity_once_a_period_and_a_lost_answer_again(world: World) -> None:
    bodies: list[bytes] = []

    def asked(tokens: Tokens, *, lose: bool) -> None:
        http = tokens._http
        post = http.post

        def told(path: str, body: bytes) -> object:
            bodies.append(body)
            answer = post(path, body)
            if lose:
                raise TransportError("lost")
            return answer

        http.post = told  # type: ignore[method-assign, assignment]

    with closing(Tokens(world.folder / "w", world.issuer())) as tokens:
        asked(tokens, lose=True)
        with pytest.raises(TransportError, match="lost"):
            tokens.fetch([], now_s=world.clock.now_s or 0)
    with closing(Tokens(world.folder / "w", world.issuer())) as tokens:
        asked(tokens, lose=False)
        assert tokens.fetch([], now_s=world.clock.now_s or 0)
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) == 259 * QUANTITY
    with (
        closing(Tokens(world.folder / "v", world.issuer())) as tokens,
        pytest.raises(TransportError, match="got 429"),
    ):
        tokens.fetch([], now_s=world.clock.now_s or 0)
    with (
        closing(Tokens(world.folder / "u", world.issuer("nobody"))) as tokens,
        pytest.raises(TransportError, match="got 401"),
    ):
        tokens.fetch([], now_s=world.clock.now_s or 0)


def test_the_issuer_wants_the_whole_quantity(world: World) -> None:
    key = public_of(world.secret)
    request = encode_request(key, blind(key, bytes(98), SYSTEM).message)
    url, headers = f"{world.issuer_url}/v1/tokens", {"Authorization": f"Bearer {CREDENTIALS[2]}"}
    for number in (0, 1, QUANTITY - 1, QUANTITY + 1):
        answer = urllib3.request("POST", url, body=request * number, headers=headers)
        assert answer.status == 400, number
        assert b"must be for 5 tokens, 1295 bytes" in answer.data
    answer = urllib3.request("POST", url, body=request * QUANTITY, headers=headers)
    assert (answer.status, len(answer.data)) == (200, 256 * QUANTITY)
    # The RFC's directory says where to ask, and with which key.
    told = urllib3.request("GET", f"{world.issuer_url}/.well-known/private-token-issuer-directory").json()
    assert told["issuer-request-uri"] == "/v1/tokens"
    assert base64.urlsafe_b64decode(told["token-keys"][0]["token-key"]) == key.spki


def test_a_report_keeps_its_token_through_a_restart_and_a_dead_collector(world: World) -> None:
    with enrolled(world.agent()) as agent:
        agent.answer()
        agent.fetch_tokens()
    sent: list[bytes] = []

    class Dead:
        def get(self, path: str) -> object:
            raise TransportError("down")

        def post(self, path: str, body: bytes) -> object:
            sent.append(body)
            raise TransportError("down")

        def close(self) -> None:
            pass

    for _ in range(2):
        tokens = Tokens(world.folder / "a.tokens", world.issuer())
        with Agent(
            world.folder / "a.db", "", budget=9.0, clock=world.clock, tokens=tokens, http=Dead(), **FAST_SETUP
        ) as agent:
            assert agent.upload().failure == "unreachable"
        world.clock.now_s += 3600
    assert sent[0] == sent[1]
    pairs = decode_token_upload(sent[0], max_reports=9)
    assert len({token for _, token in pairs}) == 2
    with world.agent() as agent:
        assert sorted(agent.upload().settled.values()) == ["accepted", "accepted"]


def test_an_upload_password_is_asked_for(tmp_path: Path) -> None:
    password = secrets.token_hex(12)
    permits = Permits(password=password)
    assert password not in repr(permits)
    clock = Clock(START_S + 100.0)
    with SqliteLog(tmp_path / "log.sqlite", 4) as log:
        app = create_app(log, [HEALTH_SURVEY], clock=clock, permits=permits)
        with served(app) as url:
            body = encode_upload([encode_report(Report(HEALTH_SURVEY.digest, 0, bytes(16), 0))])
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": password}):
                answer = urllib3.request("POST", f"{url}/v1/reports", body=body, headers=headers)
                assert answer.status == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            for word, settled in (("x" * 20, 0), (password, 1)):
                with Agent(
                    tmp_path / f"{settled}.db",
                    url,
                    budget=9.0,
                    clock=clock,
                    upload_password=word,
                    **FAST_SETUP,
                ) as agent:
                    agent.register(HEALTH)
                    agent.enrol(HEALTH_SURVEY)
                    agent.answer()
                    assert len(agent.upload().settled) == settled


def test_an_issuer_whose_clock_leaps_gives_no_tokens_and_says_why(
    tmp_path: Path, secret: rsa.RSAPrivateKey
) -> None:
    (tmp_path / "credentials").write_text(hashlib.sha256(CREDENTIALS[0].encode()).hexdigest())
    settings = IssuerSettings(key=secret, credentials=tmp_path / "credentials", quantity=1)
    now, up, key = Clock(START_S + 0.5 * DAY), Clock(1000.0), public_of(secret)

    def ask(url: str) -> int:
        body = encode_request(key, blind(key, secrets.token_bytes(98), SYSTEM).message)
        headers = {"Authorization": f"Bearer {CREDENTIALS[0]}"}
        return urllib3.request("POST", f"{url}/v1/tokens", body=body, headers=headers, retries=False).status

    def health(url: str) -> tuple[int, list[str]]:
        answer = urllib3.request("GET", f"{url}/healthz", retries=False)
        return answer.status, list(answer.json())

    with closing(Grants(tmp_path / "grants.sqlite")) as grants:
        clock = trusted(SteadyClock(now, up))
        with served(create_issuer_app(settings, grants, clock=clock)) as url:
            assert (ask(url), ask(url), health(url)) == (200, 429, (200, ["status"]))
            now.now_s += 365 * DAY
            assert (ask(url), health(url)) == (503, (503, ["status", "clock"]))
            assert b"hubbub_issuer_healthy 0.0" in urllib3.request("GET", f"{url}/metrics").data
            assert urllib3.request("GET", f"{url}/metrics/", redirect=False).status == 404
            now.now_s -= 365 * DAY
            assert (ask(url), health(url)) == (429, (200, ["status"]))
            for _ in range(2):
                now.now_s += DAY
                up.now_s += DAY
                assert ask(url) == 200
            now.now_s -= 2 * DAY  # whose grants are gone
            assert (ask(url), health(url)) == (503, (503, ["status", "clock"]))
            now.now_s += 2 * DAY
            up.now_s += 3 * DAY
            assert ask(url) == 429
