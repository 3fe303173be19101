"""A survey file, or the standard input: its text, and the survey of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.errors import ParameterError
from hubbub.small_file import read_small, unreadable
from hubbub.survey import MAX_FILE_BYTES, Survey
from hubbub_authoring.files.toml import PlannedTerms, parse, read

if TYPE_CHECKING:
    from hubbub_authoring.design import Comparison


def survey_text(path: Path) -> str:
    """Return the TOML text of a survey file; - is stdin.

    Raises:
        SurveyError: If the file cannot be read.
        ParameterError: If stdin holds no text, or was read before: it holds one survey.
    """
    if str(path) != "-":
        return read(path)
    try:
        text = read_small(path, limit=MAX_FILE_BYTES).decode("utf-8")
    except OSError as error:
        raise ParameterError(f"stdin cannot be read: {unreadable(error)}") from None
    except UnicodeDecodeError as error:
        raise ParameterError(f"stdin must be TOML in UTF-8, got {error.reason}") from None
    if not text:
        raise ParameterError("stdin must hold a survey, once, got nothing more")
    return text


def survey_of(text: str, file: str, *, compare: Comparison, planned: PlannedTerms | None = None) -> Survey:
    """Return the survey of TOML text, as `Survey.parse` does; "auto" compares mechanisms as it is told.

    Args:
        text: TOML.
        file: What errors call it.
        compare: How "auto" compares mechanisms, such as a `Study`.
        planned: Terms in place of the file's; None: as it says.

    Raises:
        SurveyError: If the text is no valid survey.
    """
    return Survey(**parse(text, file, compare=compare, planned=planned), file=file)
