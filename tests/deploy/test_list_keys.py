"""A pin is a key that somebody can have, and not everybody. A list lives a year at most."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from devices import Clock, Collector, opener

from hubbub.errors import ListError, ParameterError
from hubbub.survey.signed_list import (
    DOMAIN,
    MAGIC,
    MAX_LIFE_S,
    SurveyList,
    is_key,
    open_signed,
    public_key,
    public_text,
)
from hubbub.wire import packing
from hubbub_client import Agent, ClientError, ListRefusedError
from hubbub_deploy.cli import main

P = 2**255 - 19
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
DAY_S = 86_400


def field_root(n: int) -> int | None:
    """A square root modulo P, by trying both candidates (P = 5 mod 8)."""
    for root in (pow(n, (P + 3) // 8, P), pow(n, (P + 3) // 8, P) * pow(2, (P - 1) // 4, P) % P):
        if root * root % P == n % P:
            return root
    return None


def torsion() -> list[bytes]:
    """Every encoding of the eight points of small order, those that no encoder writes included.

    Orders 1 and 2 have y = 1 and -1, order 4 has y = 0. Twice a point of order 8 has y = 0, so x^2 = -y^2 and
    the curve -x^2 + y^2 = 1 + d x^2 y^2 is d t^2 + 2 t - 1 = 0 in t = y^2.
    """
    d = -121665 * pow(121666, -1, P) % P
    root = field_root(1 + d)
    assert root is not None
    ys = {0, 1, P - 1}
    for sign in (1, -1):
        y = field_root((-1 + sign * root) * pow(d, -1, P) % P)
        if y is not None:
            ys |= {y, P - y}
    assert len(ys) == 5
    texts = [y.to_bytes(32, "little") for y in ys | {y + P for y in ys if y + P < 2**255}]
    return [text[:31] + bytes([text[31] | high]) for text in texts for high in (0, 0x80)]


def test_openssl_takes_a_signature_that_anybody_can_make_for_a_key_of_small_order() -> None:
    """Why it matters: with the identity for a key, R = the identity and S = 0 sign every message."""
    identity = (1).to_bytes(32, "little")
    Ed25519PublicKey.from_public_bytes(identity).verify(identity + bytes(32), b"anything")


@pytest.mark.parametrize("key", torsion(), ids=lambda key: key.hex()[:8] + key.hex()[-2:])
def test_a_key_of_small_order_is_no_pin(key: bytes, tmp_path: Path) -> None:
    assert not is_key(key)
    with pytest.raises(ParameterError, match="Ed25519"):
        public_key(key.hex())
    with pytest.raises(ClientError, match="Ed25519"):
        Agent(tmp_path / "ledger.db", "http://c.invalid", budget=1.0, survey_key=key.hex())
    assert not (tmp_path / "ledger.db").exists()


def test_a_forged_list_of_a_small_key_is_refused_even_where_the_key_was_not_read_from_text() -> None:
    identity = (1).to_bytes(32, "little")
    payload = SurveyList(1, 5, 6, ()).payload
    with pytest.raises(ListError) as caught:
        open_signed(packing.pack([MAGIC, payload, identity + bytes(32)]), [identity])
    assert caught.value.reason == "wrong_signature"


def test_keys_that_somebody_has_are_pins_and_half_of_all_numbers_are_no_points() -> None:
    for i in range(60):
        key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(bytes([i])).digest())
        assert public_key(public_text(key)) == key.public_key().public_bytes_raw()
    drawn = [hashlib.sha256(bytes([i, 1])).digest() for i in range(200)]
    # Binomial(200, 1/2) of fixed digests: 50 to 150 leaves out 1e-12.
    assert 50 < sum(map(is_key, drawn)) < 150


def signed(issued_s: int, expires_s: int, sequence: int = 1) -> bytes:
    payload = packing.pack([1, sequence, issued_s, expires_s, [], []])
    return packing.pack([MAGIC, payload, KEY.sign(DOMAIN + payload)])


def test_a_list_lives_a_year_at_most() -> None:
    assert MAX_LIFE_S == 366 * DAY_S
    SurveyList(1, 5, 5 + MAX_LIFE_S, ())
    with pytest.raises(ParameterError, match="list expires"):
        SurveyList(1, 5, 6 + MAX_LIFE_S, ())
    with pytest.raises(ListError) as caught:
        open_signed(signed(5, 6 + MAX_LIFE_S), [public_key(public_text(KEY))])
    assert caught.value.reason == "unreadable"


def test_a_list_that_is_issued_in_centuries_is_not_taken_until_then(tmp_path: Path) -> None:
    """Its year begins when a device can first see it: a date ahead of every clock lengthens no life."""
    clock = Clock(1_000.0)
    with opener(tmp_path, clock, Collector()) as make:
        agent = make(survey_key=public_text(KEY))
        ahead = signed(1_000 + 300 * MAX_LIFE_S, 1_001 + 300 * MAX_LIFE_S)
        with pytest.raises(ListRefusedError) as caught:
            agent.read_surveys(ahead)
        assert caught.value.reason == "clock_not_trusted"
        # A clock that is a day behind a list of a whole year is no fault of the list.
        assert agent.read_surveys(signed(1_000 + DAY_S, 1_000 + DAY_S + MAX_LIFE_S)) == ()
        with pytest.raises(ListRefusedError) as caught:
            agent.read_surveys(signed(1_001 + DAY_S, 1_001 + DAY_S + MAX_LIFE_S, sequence=2))
        assert caught.value.reason == "clock_not_trusted"
        clock.now_s = 1_001.0
        assert agent.read_surveys(signed(1_001 + DAY_S, 1_001 + DAY_S + MAX_LIFE_S, sequence=2)) == ()


@pytest.mark.parametrize(("days", "code"), [("366", 0), ("366.1", 1), ("100000", 1)])
def test_no_longer_list_is_signed(days: str, code: int, tmp_path: Path, capsys) -> None:
    key = tmp_path / "key"
    assert main(["survey", "keygen", "--out", str(key)]) == 0
    capsys.readouterr()
    found = main(["survey", "sign", "--key", str(key), "--out", str(tmp_path / "list"), "--days", days])
    assert found == code
    assert (code == 0) == (tmp_path / "list").exists()
    if code:
        assert "--days must be above 0 and at most 366" in capsys.readouterr().err


def test_a_list_that_no_device_takes_is_not_written(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    survey = Path(__file__).parents[1] / "golden" / "survey-visits.toml"
    assert main(["survey", "keygen", "--out", "key.pem"]) == 0
    sign = ["survey", "sign", str(survey), "--key", "key.pem", "--out", "l"]
    assert main(sign) == 0
    size = Path("l").stat().st_size
    monkeypatch.setattr("hubbub.survey.MAX_LIST_BYTES", size)  # a list of survey and number is as long
    assert main(sign) == 0
    monkeypatch.setattr("hubbub.survey.MAX_LIST_BYTES", size - 1)
    Path("l").unlink()
    capsys.readouterr()
    assert main(sign) == 1
    assert f"l must have at most {size - 1:,} bytes, or no device takes it" in capsys.readouterr().err
    assert not Path("l").exists()
