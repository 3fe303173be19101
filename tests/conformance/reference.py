"""The answers of this repository's own code to the cases of the conformance pack: the words of its result.

A case is a kind and its parts, all of them bytes. docs/conformance.md has the kinds, their parts and the
words; `rust/` says the same from docs/wire.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from typing import cast

from hubbub import Survey, wire
from hubbub.errors import HubbubError, WireError
from hubbub.filter import BayesianFilter, Joint, Likelihood, Query
from hubbub.mechanisms import SampledParts
from hubbub.survey import MAX_ROTATION, Bundle, DictionaryDomain, signed_list
from hubbub.survey.score import Score
from hubbub.testing import RecordedSource
from hubbub.wire import packing
from hubbub_client.surveys import SEED_BYTES, scheduled_answer_of, slot_in_cycle
from hubbub_client.surveys.schedule import part_of
from hubbub_lab.filters import SimplifiedFilter

REFUSED = "refused"
REFUSALS = ("invalid", "early", "late", "over_quota")
MAX_REPORTS = 1724
MAX_KEY = 2**32
UNITS_PER_NAT = 2**40

Parts = Sequence[bytes]


def result(kind: str, parts: Parts) -> str:
    """The words of a case's result; "refused" where a part breaks a rule of docs/wire.md."""
    try:
        return _KINDS[kind](*parts)
    except HubbubError:
        return REFUSED


def _certified(canonical: bytes) -> str:
    survey = Survey.from_canonical(canonical)
    return f"certified {survey.digest.hex()} {struct.pack('>d', survey.channel.epsilon).hex()}"


def _words(symbol: int | bytes) -> str:
    return symbol.hex() if isinstance(symbol, bytes) else str(symbol)


def _values(data: bytes) -> list[object]:
    values = packing.array(packing.unpack(data, "values"), "values")
    if any(type(value) not in (type(None), bool, int, float, str, bytes, list, dict) for value in values):
        raise WireError("values must be no extensions")
    return values


def _answer(canonical: bytes, values: bytes, identifier: bytes, number: bytes, random: bytes) -> str:
    return _answered(Survey.from_canonical(canonical), values, identifier, number, random)


def _looked_up(canonical: bytes, *parts: bytes) -> str:
    *rest, dictionary = parts
    survey, found = Survey.from_canonical(canonical), DictionaryDomain.of(dictionary)
    for attribute in survey.attributes:
        if isinstance(attribute.domain, DictionaryDomain):
            attribute.domain.take(found)
    return _answered(survey, *rest)


def _answered(survey: Survey, values: bytes, identifier: bytes, number: bytes, random: bytes) -> str:
    held = _values(values)
    number_of = packing.integer(packing.unpack(number, "round"), "round", 0, 2**31 - 1)
    if len(held) != len(survey.form.reads):
        raise WireError("values must be one per value that is read")
    source = RecordedSource(random)
    place, symbol = _drawn(survey, held, number_of, source)
    report = wire.encode_report(wire.Report(survey.digest, number_of, identifier, symbol))
    used = len(random) - len(source.left)
    return f"answer {place} {_words(symbol)} {used} {wire.encode_upload([report]).hex()}"


def _drawn(
    survey: Survey, held: list[object], number: int, source: RecordedSource
) -> tuple[str, int | bytes]:
    """The input in words, and the symbol; a bundle's source begins with the seed of the device."""
    form, channel = survey.form, survey.channel
    if isinstance(form, Bundle) and isinstance(channel, SampledParts):
        part = part_of(survey, source.token_bytes(SEED_BYTES), scheduled_answer_of(survey, number))
        indices = [a.index_of(value) for a, value in zip(form.attributes, held, strict=True)]
        cell = channel.cell_of(part, form.readings_of(indices))
        return f"{part}:{cell}", channel.answer(part, cell, source=source)
    place = survey.input_of(*held, source=source)
    symbol = channel.perturb(place, source=source)
    return (place.to_bytes((channel.inputs + 7) // 8, "little").hex() if form.of_sets else str(place)), symbol


def _symbol(value: object) -> int | bytes:
    if isinstance(value, bytes):
        if not 1 <= len(value) <= 2**15:
            raise WireError("a set must have 1 to 2^15 bytes")
        return value
    return packing.integer(value, "symbol", 0, 2**32 - 1)


def _column(survey: Survey, symbol: int | bytes) -> list[int]:
    if not survey.channel.admits(symbol):
        raise WireError("a symbol must be the channel's")
    column: list[int] = _law(survey).column(symbol).tolist()
    return column


def _law(survey: Survey) -> Likelihood:
    """The weights that the filter reads: of sets and bundles those of the two readings that stand for all."""
    form, channel = survey.form, survey.channel
    law = form.likelihood(channel) if form.of_sets or form.samples_parts else channel
    return cast(Likelihood, law)


def _weights(canonical: bytes, symbol: bytes) -> str:
    survey = Survey.from_canonical(canonical)
    column = _column(survey, _symbol(packing.unpack(symbol, "symbol")))
    return " ".join(["weights", *map(str, column)])


def _slots(seed: bytes, drawn: bytes) -> str:
    asked = packing.array(packing.unpack(drawn, "slots"), "slots", 3)
    if len(seed) != SEED_BYTES:
        raise WireError("a seed must have 32 bytes")
    rotation = packing.integer(asked[0], "rotation", 2, MAX_ROTATION)
    first, many = packing.integer(asked[1], "cycle", 0, 2**32 - 100), packing.integer(asked[2], "many", 0, 99)
    return " ".join(["slots", *(str(slot_in_cycle(seed, first + i, rotation)) for i in range(many))])


def _upload(data: bytes) -> str:
    found = []
    for each in wire.decode_upload(data, max_reports=MAX_REPORTS):
        if isinstance(each, wire.Malformed):
            found.append("invalid")
        else:
            found.append(f"{(each.digest + each.id).hex()}:{each.round}:{_words(each.symbol)}")
    return " ".join(["upload", *found])


def _plain(data: bytes) -> str:
    return " ".join(["plain", *(signed_list.digest_of(each).hex() for each in wire.decode_surveys(data))])


def _payload(data: bytes) -> str:
    # An envelope with any signature: `read_unverified` does not look at it.
    listed, _ = signed_list.read_unverified(packing.pack(["hubbub-survey-list", data, bytes(64)]))
    assert listed is not None
    return _listed(listed)


def _signed(key: bytes, data: bytes) -> str:
    return _listed(signed_list.open_signed(data, [key]).listed)


def _listed(listed: signed_list.SurveyList) -> str:
    asked = [signed_list.digest_of(each).hex() for each in listed.surveys]
    terms = [str(listed.sequence), str(listed.issued_s), str(listed.expires_s)]
    return " ".join(["list", *terms, *asked, "cancelled", *(each.hex() for each in listed.cancelled)])


def _response(data: bytes) -> str:
    return " ".join(["response", *wire.decode_response(data)])


def _record(data: bytes) -> str:
    record = wire.decode_record(data)
    if isinstance(record, wire.SurveyRecord):
        return f"survey {hashlib.sha256(record.canonical).digest()[:16].hex()}"
    if isinstance(record, wire.SealRecord):
        return f"seal {record.digest.hex()} {record.round}"
    found = [f"reports {record.minute} {record.unknown}"]
    for each in record.segments:
        kind = -each.symbols.shape[1] if each.symbols.ndim == 2 else each.symbols.dtype.itemsize
        tallies = ",".join(str(each.refused.get(reason, 0)) for reason in REFUSALS)
        found.append(
            f"{each.digest.hex()}:{each.round}:{each.ids.hex()}:{kind}:{each.symbols.tobytes().hex()}:"
            f"{each.attempts}:{tallies}"
        )
    return " ".join(found)


def _filtered(kind: type[BayesianFilter]) -> Callable[..., str]:
    def steps_of(budget: bytes, surveys: bytes, steps: bytes) -> str:
        listed = [
            Survey.from_canonical(packing.binary(each, "survey"))
            for each in packing.array(packing.unpack(surveys, "surveys"), "surveys")
        ]
        account = kind(packing.real(packing.unpack(budget, "budget"), "budget"))
        found, asked = ["filter"], {}
        for step in packing.array(packing.unpack(steps, "steps"), "steps"):
            try:
                word = _step(account, listed, asked, step)
            except HubbubError:
                word = REFUSED
            units = [round(nats * UNITS_PER_NAT) for nats in (account.committed, account.loss)]
            found.append(f"{word}:{units[0]}:{units[1]}")
        return " ".join(found)

    return steps_of


def _step(account: BayesianFilter, surveys: list[Survey], asked: dict[int, Survey], step: object) -> str:
    fields = packing.array(step, "step")
    if not fields:
        raise WireError("a step must have a kind")
    kind = packing.integer(fields[0], "step", 0, 4)
    packing.array(fields, "step", {1: 3, 4: 4}.get(kind, 2))
    if kind == 0:
        return "yes" if _reserve(account, surveys, asked, packing.array(fields[1], "queries")) else "no"
    key = packing.integer(fields[1], "step", 0, MAX_KEY)
    if kind == 3:
        account.close(key)
    elif kind == 2:
        account.cancel(key)
    else:
        symbol = _symbol(fields[2])
        if key in account.pending:
            _column(asked[key], symbol)
        if kind == 4:
            return _resolve(
                account, asked, key, symbol, packing.integers(fields[3], "coordinates", 0, MAX_KEY)
            )
        account.record(key, symbol)
    return "yes"


def _resolve(
    account: BayesianFilter, asked: dict[int, Survey], key: int, symbol: int | bytes, keys: list[int]
) -> str:
    """Record a bundle's answer with what is known of the values that its part read, or apart from it."""
    survey = asked.get(key) if key in account.pending else None
    if survey is None or not isinstance(survey.channel, SampledParts) or not isinstance(symbol, bytes):
        raise WireError("a bundle must wait for its answer")
    part = survey.channel.part_of(symbol)
    members = survey.channel.parts[part].members
    if len(keys) != len(members):
        raise WireError("a part must have a coordinate per attribute")
    coordinate = Joint(*keys) if len(keys) > 1 else keys[0]
    mapping = cast(Bundle, survey.form).part_mapping(members)
    query = None if mapping is None else Query(coordinate, survey.channel.oracles[part], mapping)
    return account.resolve(key, query, symbol, own=survey.channel.set_of(symbol))


def _reserve(
    account: BayesianFilter, surveys: list[Survey], asked: dict[int, Survey], queries: list[object]
) -> bool:
    found, read = [], []
    for query in queries:
        keys, number = packing.array(query, "query", 2)
        survey = surveys[packing.integer(number, "survey", 0, len(surveys) - 1)]
        own = packing.integers(keys, "coordinates", 0, MAX_KEY)
        # A value of two readings, or what a round reads of one attribute twice, is one coordinate.
        one = survey.form.of_sets or survey.form.samples_parts or survey.form.lag > 0
        if isinstance(survey.form, Score) or len(own) != (1 if one else len(survey.attributes)):
            raise WireError("a query must have a coordinate per attribute, and be of no score")
        mapping = None if one else survey.mapping
        found.append(Query(Joint(*own) if len(own) > 1 else own[0], _law(survey), mapping))
        read.append(survey)
    tickets = account.reserve_all(found)
    asked.update(zip(tickets or (), read, strict=False))
    return tickets is not None


_KINDS: dict[str, Callable[..., str]] = {
    "survey": _certified,
    "answer": _answer,
    "looked-up": _looked_up,
    "weights": _weights,
    "slots": _slots,
    "upload": _upload,
    "list": _plain,
    "payload": _payload,
    "signed": _signed,
    "response": _response,
    "record": _record,
    "filter": _filtered(BayesianFilter),
    "simplified": _filtered(SimplifiedFilter),
}
