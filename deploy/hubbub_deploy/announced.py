"""The rule that a survey which a log has announced never changes under its id and version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubbub import Survey
from hubbub.wire import SurveyRecord, decode_record
from hubbub_deploy.errors import DeployError


def digests_of(records: Iterable[bytes]) -> dict[tuple[str, int], bytes]:
    """Return the digest of every id and version that a log's survey records name.

    Args:
        records: Records as they lie in the log; all but survey records are passed over.
    """
    found: dict[tuple[str, int], bytes] = {}
    for data in records:
        record = decode_record(data)
        if isinstance(record, SurveyRecord):
            survey = Survey.from_canonical(record.canonical)
            found.setdefault((survey.id, survey.version), survey.digest)
    return found


def refuse_changed(surveys: Iterable[Survey], known: Mapping[tuple[str, int], bytes]) -> None:
    """Raise if a survey was served before with other contents: what was counted would have two meanings.

    Args:
        surveys: Those to serve.
        known: Digest of every (id, version) that was announced.

    Raises:
        DeployError: If the log has announced another survey of the same id and version.
    """
    for survey in surveys:
        digest = known.get((survey.id, survey.version), survey.digest)
        if digest != survey.digest:
            raise DeployError(
                f"survey {survey.id!r} must have a new version when it changes: version {survey.version} was "
                f"served with digest {digest.hex()}, got {survey.digest.hex()}"
            )
