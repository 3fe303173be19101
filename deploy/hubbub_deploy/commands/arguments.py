"""The arguments that commands share; a bad one is refused before anything is done."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from hubbub.small_file import read_small
from hubbub_aggregator.web import StreamCaps
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import reading

if TYPE_CHECKING:
    # Commands that need no server library must start without one.
    from hubbub.survey import Attribute
    from hubbub_deploy.cluster_settings import ClusterSettings
    from hubbub_deploy.settings import Setting
    from hubbub_lab.evaluation import Spelling


READER_VARIABLE: Final = "HUBBUB_READ_TOKEN"
"""The variable that holds the token of readers, where no file does."""
# For 16 random characters, 10,000 tries a second take longer than anybody lives.
_TOKEN: Final = re.compile(r"[!-~]{16,512}")


def positive(text: str) -> int:
    """Return a whole number above 0."""
    return _integer(text, 1)


def whole(text: str) -> int:
    """Return a whole number, 0 included."""
    return _integer(text, 0)


def port(text: str) -> int:
    """Return the number of a port; 0 for any."""
    return _integer(text, 0, 65_535)


def duration(text: str) -> int:
    """Return a length of time in seconds, given as survey files write it: 90s, 15m, 24h, 7d."""
    found = re.fullmatch(r"(\d{1,9})([smhd])", text, re.ASCII)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"must be a duration such as 90s, 15m, 24h or 7d, got {text!r}")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[found[2]]


def place(text: str) -> tuple[int, int]:
    """Return a partition and an offset in it, given as 1:4711."""
    partition, _, offset = text.partition(":")
    try:
        return whole(partition), whole(offset)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be PARTITION:OFFSET, got {text!r}") from None


def add_skip(parser: argparse.ArgumentParser) -> None:
    """Add the option that passes over records."""
    parser.add_argument(
        "--skip",
        action="append",
        type=place,
        default=[],
        metavar="PARTITION:OFFSET",
        help="pass over a record that cannot be applied, for good; may be repeated",
    )


def add_people(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a table of people is read."""
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ATTRIBUTE=COLUMN",
        help="where an attribute's column has another name; may be repeated",
    )
    add_spelling(parser)
    parser.add_argument("--clip", action="store_true", help="move numbers outside the domain to its end")


def add_dictionary(parser: argparse.ArgumentParser) -> None:
    """Add the option of the dictionaries that surveys name by their digests."""
    parser.add_argument(
        "--dictionary",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="a dictionary that a survey names, as `survey dictionary` wrote it; may be repeated",
    )


def take_dictionaries(
    paths: Iterable[Path], attributes: Collection[Attribute], needed: Collection[str]
) -> None:
    """Look the texts of attributes up in the dictionaries of some files from now on.

    Args:
        paths: The files.
        attributes: What surveys ask for.
        needed: Ids of those that have values.

    Raises:
        DeployError: If a file cannot be read, is no dictionary or none of theirs, or one that is needed is
            not given.
    """
    from hubbub.errors import ParameterError  # noqa: PLC0415 - few surveys have one
    from hubbub.survey import MAX_SIZE, DictionaryDomain  # noqa: PLC0415 - see above

    asked = {each.id: each.domain for each in attributes if isinstance(each.domain, DictionaryDomain)}
    for path in paths:
        with reading(f"dictionary {path}"):
            data = read_small(path, limit=8 * MAX_SIZE)
        try:
            found = DictionaryDomain.of(data)
        except ParameterError as error:
            raise DeployError(f"{path}: must be a dictionary: {error}") from None
        same = [each.domain for each in attributes if each.domain == found]
        if not same:
            digests = ", ".join(sorted(each.digest.hex() for each in asked.values())) or "none is named"
            raise DeployError(
                f"{path}: its digest must be one that a survey names ({digests}), got {found.digest.hex()}"
            )
        for domain in same:
            cast(DictionaryDomain, domain).take(found)
    for name, domain in asked.items():
        if domain.hashes is None and name in needed:
            raise DeployError(
                f"--dictionary must give that of attribute {name!r}, whose digest is {domain.digest.hex()}, "
                "got none"
            )


def add_result(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a result beside its truth is printed."""
    parser.add_argument("--all", action="store_true", help="print every value, not only the most frequent")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_spelling(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a CSV is written."""
    parser.add_argument(
        "--delimiter", default=",", help=r"between the fields of a CSV, \t for a tab (default: a comma)"
    )
    parser.add_argument(
        "--encoding", default="utf-8", help="of a CSV, such as cp1252 or utf-16 (default: %(default)s)"
    )
    parser.add_argument(
        "--decimal", default=".", help="before the fraction of a number in a CSV, . or , (default: a point)"
    )


def spelling(options: argparse.Namespace) -> Spelling:
    """Return what the options of `add_spelling` say.

    Raises:
        DeployError: If one of them breaks its rule.
    """
    from hubbub_lab.evaluation import Spelling  # noqa: PLC0415 - others need no tables

    return Spelling(delimiter=options.delimiter, encoding=options.encoding, decimal=options.decimal)


def columns(pairs: Iterable[str]) -> dict[str, str]:
    """Return attribute id -> column, given as ATTRIBUTE=COLUMN.

    Raises:
        DeployError: If one is given otherwise, or an attribute has two.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        attribute, sign, column = pair.partition("=")
        if not sign:
            raise DeployError(f"--column must be ATTRIBUTE=COLUMN, got {pair!r}")
        if found.setdefault(attribute, column) != column:
            raise DeployError(
                f"--column must name one column for {attribute}, got {found[attribute]!r} and {column!r}"
            )
    return found


def add_plain_http(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets a device speak plain http to other machines."""
    parser.add_argument(
        "--plain-http",
        action="store_const",
        const="anywhere",
        default="local",
        help="take http:// to other machines, too: everybody on the way reads it (default: to this one)",
    )


def add_streams(parser: argparse.ArgumentParser) -> None:
    """Add the caps on streams of changes to a command that serves the page."""
    usual = StreamCaps()
    parser.add_argument(
        "--streams",
        type=positive,
        default=usual.total,
        metavar="N",
        help="pages with a stream of changes at once; the others poll (default: %(default)s)",
    )
    parser.add_argument(
        "--client-streams",
        type=positive,
        default=usual.client,
        metavar="N",
        help="of them from one address; behind a proxy all pages are one (default: %(default)s)",
    )


def stream_caps(options: argparse.Namespace) -> StreamCaps:
    """Return the caps that the options of `add_streams` give."""
    return StreamCaps(options.streams, options.client_streams)


def add_read_token(
    parser: argparse.ArgumentParser, text: str = "file of the token that readers of page and API must know"
) -> None:
    """Add the option of the read token to a command that serves the page, or reads its API."""
    parser.add_argument(
        "--read-token-file",
        type=Path,
        metavar="FILE",
        help=f"{text} (or {READER_VARIABLE}); none: anyone may read",
    )


def read_token(options: argparse.Namespace) -> str | None:
    """Return the token, None where anyone may read.

    Raises:
        DeployError: If the file cannot be read, or the token is short or has spaces. The message does not
            hold it.
    """
    path: Path | None = options.read_token_file
    if path is not None:
        with reading(f"read token file {path}"):
            token, place = read_small(path).decode("utf-8").strip(), str(path)
    elif READER_VARIABLE in os.environ:
        token, place = os.environ[READER_VARIABLE].strip(), READER_VARIABLE
    else:
        return None
    if _TOKEN.fullmatch(token) is None:
        raise DeployError(
            f"read token in {place} must be 16 to 512 visible ASCII characters without spaces, "
            f"got {len(token)} characters"
        )
    return token


def _integer(text: str, low: int, high: float = math.inf) -> int:
    rule = f"must be an integer of at least {low}" + (f" and at most {high}" if high < math.inf else "")
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{rule}, got {text!r}")
    return number


def share(text: str) -> float:
    """Return a share: a number from 0 to 1."""
    return _number(text, "must be a number from 0 to 1", lambda number: 0.0 <= number <= 1.0)


def rate(text: str) -> float:
    """Return a finite rate above 0."""
    return _number(text, "must be a finite number above 0", lambda number: 0.0 < number < math.inf)


def _number(text: str, rule: str, keeps: Callable[[float], bool]) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not keeps(number):
        raise argparse.ArgumentTypeError(f"{rule}, got {text!r}")
    return number


def seconds(text: str) -> float:
    """Return a finite time of at least 0."""
    return _number(text, "must be a finite number of at least 0", lambda number: 0.0 <= number < math.inf)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the argument of the cluster's settings file, which comes first."""
    parser.add_argument("settings", type=Path, metavar="SETTINGS", help="the cluster's settings (TOML)")


def load_settings(path: Path, options: argparse.Namespace | None = None) -> ClusterSettings:
    """Return the settings of a cluster, with those that the flags of `add_rows` give.

    Raises:
        DeployError: If the file cannot be read or is no settings file.
    """
    from hubbub_deploy.cluster_settings import ClusterSettings  # noqa: PLC0415 - see above

    return ClusterSettings.load(path, flags=None if options is None else vars(options))


def add_rows(parser: argparse.ArgumentParser, title: str, rows: Iterable[Setting]) -> None:
    """Add a flag for each setting; one that is not given is None, so that file and environment have a say."""
    group = parser.add_argument_group(title, "as in docs/operations.md, Settings")
    for row in rows:
        group.add_argument(
            row.flag,
            type=partial(_setting, row),
            choices=row.words or None,
            metavar=None if row.words else row.kind.upper(),
            help=f"{row.text} (default: {row.default})".replace("%", "%%"),
        )


def _setting(row: Setting, text: str) -> int | float | str:
    try:
        return row.parse(text, "it")
    except DeployError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("it ")) from None


def add_address(parser: argparse.ArgumentParser, default: int) -> None:
    """Add host and port of a server."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=port, default=default, help="default: %(default)s; 0 for any")


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add the form of logs on stderr."""
    parser.add_argument(
        "--log",
        choices=("text", "json"),
        default="text",
        help="logs as text or one JSON object per line (default: %(default)s)",
    )
