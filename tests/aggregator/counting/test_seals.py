"""Signed seals: what the sealer did not sign ends no round; logs from before there was a key stay good."""

from __future__ import annotations

import pytest
from counting_logs import MemoryLog, announcement, batch, report_id, segment
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, decode_record, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.seals import SealRules, seal_signer
from hubbub_aggregator.release.sealing import Sealer

HEALTH = Survey.parse(LABELS)
KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key().public_bytes_raw()


def seal(number: int, key: Ed25519PrivateKey | None, digest: bytes = HEALTH.digest) -> bytes:
    return encode_record(SealRecord(digest, number, b"" if key is None else seal_signer(key)(digest, number)))


def counted(rules: SealRules | None, *seals: bytes, announced: bool = True) -> PartitionState:
    state = PartitionState(seal_rules=rules)
    report = batch(segment(HEALTH, 0, [(report_id(1), 1)]))
    records = [*([announcement(HEALTH)] if announced else []), *seals, report]
    state.commit(apply_many(state, enumerate(records)))
    return state


def test_a_seal_that_the_sealer_did_not_sign_is_a_dead_letter_and_ends_nothing() -> None:
    stolen = SealRecord(HEALTH.digest, 0, seal_signer(KEY)(HEALTH.digest, 1))
    for forged in (seal(0, None), seal(0, OTHER), encode_record(stolen)):
        state = counted(SealRules((PUBLIC,)), forged)
        known = state.rounds[HEALTH.digest, 0]
        assert (state.dead, known.sealed_at, known.verdicts.accepted) == (1, None, 1)
        (letter,) = apply_many(
            PartitionState(surveys={HEALTH.digest: HEALTH}, seal_rules=SealRules((PUBLIC,))), [(0, forged)]
        ).dead_letters
        assert letter.reason == "forged seal"


def test_the_sealers_own_seal_ends_a_round_under_every_key_that_is_taken() -> None:
    both = (OTHER.public_key().public_bytes_raw(), PUBLIC)
    for rules in (None, SealRules((PUBLIC,)), SealRules(both)):
        state = counted(rules, seal(0, KEY))
        known = state.rounds[HEALTH.digest, 0]
        assert (state.dead, known.sealed_at, known.after_seal.late) == (0, 1, 1)


def test_seals_of_a_log_from_before_there_was_a_key_stay_good() -> None:
    end_s = HEALTH.round_end_s(0)
    assert counted(SealRules((PUBLIC,), end_s), seal(0, None)).rounds[HEALTH.digest, 0].sealed_at == 1
    for since_s in (0, end_s - 1):
        assert counted(SealRules((PUBLIC,), since_s), seal(0, None)).dead == 1
    assert counted(SealRules((PUBLIC,), end_s), seal(1, None)).dead == 1


def test_a_seal_of_an_unknown_survey_needs_a_signature() -> None:
    rules = SealRules((PUBLIC,), 2**40)
    assert counted(rules, seal(0, None), announced=False).dead == 1
    assert counted(rules, seal(0, KEY), announced=False).dead == 0


def test_the_sealer_signs_what_the_rules_take() -> None:
    log = MemoryLog()
    Sealer(log, sign=seal_signer(KEY)).seal([(HEALTH.digest, 3)])
    for records in log.records.values():
        found = decode_record(records[0])
        assert isinstance(found, SealRecord)
        assert SealRules((PUBLIC,)).admits(found, HEALTH)
        assert not SealRules((PUBLIC,)).admits(SealRecord(found.digest, 2, found.signature), HEALTH)


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_signature_of_another_length_is_no_seal(length: int) -> None:
    from hubbub.errors import WireError
    from hubbub.wire import pack

    with pytest.raises(WireError, match="seal signature"):
        decode_record(pack([1, 2, HEALTH.digest, 0, bytes(length)]))
