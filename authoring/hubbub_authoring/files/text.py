"""The text of a survey file, or of the standard input."""

from __future__ import annotations

from pathlib import Path

from hubbub.errors import ParameterError
from hubbub.small_file import read_small, unreadable
from hubbub.survey import MAX_FILE_BYTES
from hubbub_authoring.files.toml import read


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
