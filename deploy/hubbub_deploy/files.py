"""The files that processes keep to themselves, and those that a command writes once for its user."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hubbub.small_file import read_small, unreadable
from hubbub_authoring.files import survey_of, survey_text
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from hubbub import Survey
    from hubbub_authoring.design import Study

ARCHIVE_FILE: Final = "archive.sqlite"
"""The file of sealed releases in the folder of a node or a dashboard."""


SLOW_S: Final = 1.0
"""Seconds of compiling from which a command says how to do it once."""

_WIPED: Final = "\r\x1b[2K"
"""Signs that empty the line of a terminal."""

MAX_WORDS_CHARACTERS: Final = 4_096
"""Characters of a line of words, such as credentials: an HTTP header takes no longer one."""


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Make the files and folders created within readable and writable by their owner alone.

    It holds for the whole process: enter it before threads are started. Files that exist keep their mode;
    SQLite gives a database's mode to the files that it makes beside it later.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def load_survey(path: Path) -> Survey:
    """Return the survey in a file, TOML or compiled; - is TOML from stdin.

    What "auto" takes is said in a line on stderr, and how to compile once where that takes long.

    Raises:
        SurveyError: If it cannot be read, or is no valid survey.
        ParameterError: If stdin holds no text.
    """
    return load_survey_and_text(path)[0]


def load_survey_and_text(path: Path) -> tuple[Survey, str | None]:
    """Return the survey in a file and its TOML, None of a compiled one; see `load_survey`."""
    began = time.perf_counter()
    survey, text = compiled(path)
    seconds = time.perf_counter() - began
    said = said_of_auto(survey)
    if seconds > SLOW_S and str(path) != "-" and text is not None:
        once = shlex.join(["survey", "compile", str(path), "--out", str(path.with_suffix(".bin"))])
        said.append(f"took {seconds:.1f} s to compile: `hubbub {once}` does it once")
    if said:
        print(f"{path}: {'; '.join(said)}", file=sys.stderr)
    return survey, text


def compiled(path: Path) -> tuple[Survey, str | None]:
    """Return what `load_survey_and_text` does, and say of "auto" only how far it is."""
    from hubbub import Survey  # noqa: PLC0415 - commands that load none start without it
    from hubbub.survey import read_compiled  # noqa: PLC0415 - see above

    if str(path) != "-" and read_compiled(path) is not None:
        return Survey.load(path), None
    text = survey_text(path)
    with comparing() as study:
        return survey_of(text, "stdin" if str(path) == "-" else str(path), compare=study), text


def one_round_each(surveys: Sequence[Survey]) -> None:
    """Refuse surveys that ask for values of two rounds: a CSV holds those of one.

    Raises:
        DeployError: If one does.
    """
    for survey in surveys:
        if survey.form.lag:
            raise DeployError(f"survey {survey.id} must ask for the values of one round, got a transition")


def said_of_auto(survey: Survey) -> list[str]:
    """Return what "auto" takes, in words; nothing where the file names its mechanism."""
    if survey.choice is None:
        return []
    return [f"auto takes {survey.choice.compared[0].label}, of {len(survey.choice.compared)} compared"]


@contextlib.contextmanager
def comparing() -> Iterator[Study]:
    """Give a study that says on a terminal which mechanism it is at, in a line that it wipes out."""
    from hubbub_authoring.design import Study  # noqa: PLC0415 - commands that compile nothing start without it

    shown = sys.stderr.isatty()

    def told(name: str, place: int, known: int) -> None:
        if shown:
            print(f"{_WIPED}auto: comparing {name}, {place} of {known}", end="", file=sys.stderr, flush=True)

    try:
        yield Study(told)
    finally:
        if shown:
            print(_WIPED, end="", file=sys.stderr, flush=True)


def words(path: Path) -> list[str]:
    """Return the words of a file of ASCII, one or some a line, however many there are.

    Raises:
        OSError: If it cannot be read, or a line is longer than `MAX_WORDS_CHARACTERS`.
        UnicodeDecodeError: If it is no ASCII.
    """
    found: list[str] = []
    with path.open(encoding="ascii") as file:
        while line := file.readline(MAX_WORDS_CHARACTERS + 1):
            if len(line) > MAX_WORDS_CHARACTERS:
                raise OSError(errno.EFBIG, f"more than {MAX_WORDS_CHARACTERS:,} characters in a line")
            found.extend(line.split())
    return found


def refuse_unwritable(path: Path, *, kind: Literal["file", "folder"]) -> None:
    """Refuse a place where nothing can be written, before long work whose result goes there.

    Args:
        path: The file, whose folder must be there, or the folder, which is made with those above it.
        kind: Which of the two it is.

    Raises:
        DeployError: If it cannot be written as things stand.
    """
    if kind == "file" and path.is_dir():
        number = errno.EISDIR
    else:
        above = path if kind == "folder" else path.parent
        while kind == "folder" and not above.exists() and above != above.parent:
            above = above.parent
        if not above.exists():
            number = errno.ENOENT
        elif not above.is_dir():
            number = errno.ENOTDIR
        else:
            number = 0 if os.access(above, os.W_OK | os.X_OK) else errno.EACCES
    if number:
        raise DeployError(f"{path}: cannot be written: {os.strerror(number)}")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise a DeployError for whatever keeps a file or a folder from being written within."""
    try:
        yield
    except OSError as error:
        raise DeployError(f"{path}: cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def reading(subject: object) -> Iterator[None]:
    """Raise a DeployError for whatever keeps a file of text from being read within, without a word of it."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise DeployError(f"{subject} cannot be read: {unreadable(error)}") from None


def create(path: Path, data: bytes, *, mode: int) -> None:
    """Write a file that must not be there yet; nobody else could ever read it, if the mode says so.

    Args:
        path: Where.
        data: All of it.
        mode: The file's permissions, before the process's umask.

    Raises:
        DeployError: If there is something of that name, or it cannot be written.
    """
    with writing(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            raise DeployError(f"{path} is there already, and is not overwritten") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Put a whole file in the place of another: a server never reads half of it.

    Raises:
        DeployError: If it cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise DeployError(f"{path}: cannot be written: {error.strerror}") from None


def create_signing_key(path: Path) -> Ed25519PrivateKey:
    """Return a new key, whose file nobody else can read.

    Raises:
        DeployError: If there is something of that name, or it cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = Ed25519PrivateKey.generate()
    create(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)
    return key


def load_signing_key(path: Path) -> Ed25519PrivateKey:
    """Return the key in a file of `hubbub survey keygen`.

    Raises:
        DeployError: If it cannot be read, or is another kind of key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        key = load_pem_private_key(read_small(path), password=None)
    except OSError as error:
        raise DeployError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise DeployError(f"{path} must be an Ed25519 private key in PEM without a password")
    return key
