"""The reports that were sent, rebuilt byte for byte from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubbub import wire
from hubbub.survey import Survey
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.stored import StoredAnswer
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.schedule import scheduled_answer_of
from hubbub_client.upload.outcomes import SentReport


def sent_reports(
    answers: Iterable[StoredAnswer], rows: Iterable[TranscriptEntry], surveys: Mapping[bytes, Survey]
) -> tuple[SentReport, ...]:
    """Return every report for which the collector gave an outcome, by survey and round.

    A report is a function of survey, round, id and symbol, so its bytes need not be stored twice.

    Args:
        answers: Every answer.
        rows: The transcript.
        surveys: Every survey, by digest.

    Raises:
        LedgerCorruptError: If an answer has no row.
    """
    symbols = {(row.digest, row.slot, row.pin_version): row.symbol for row in rows if row.symbol is not None}
    found: list[SentReport] = []
    counted: set[tuple[bytes, int, int]] = set()
    for answer in answers:
        survey = surveys[answer.digest]
        key = (answer.digest, scheduled_answer_of(survey, answer.round), answer.pin_version)
        symbol = symbols.get(key)
        if symbol is None:
            raise LedgerCorruptError("an answer in the ledger has no row in its transcript")
        loss = 0.0
        if key not in counted:
            likelihood = survey.channel.log_likelihood(symbol)
            loss = float(likelihood.max() - likelihood.min())
        counted.add(key)
        if answer.outcome is None or answer.outcome == "withdrawn":
            continue
        data = wire.encode_report(wire.Report(answer.digest, answer.round, answer.id, symbol))
        outcome = answer.outcome
        found.append(SentReport(survey.id, answer.digest, answer.round, answer.id, data, outcome, loss))
    return tuple(found)
