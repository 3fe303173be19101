"""The values of settings: the command line comes before the environment, the environment before the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from hubbub.errors import SurveyError
from hubbub.small_file import read_small
from hubbub_authoring.files import decode
from hubbub_collector import CollectorError, GatewaySettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.settings.options import NodeOptions
from hubbub_deploy.settings.table import GATEWAY, NODE, Setting

PREFIX: Final = "HUBBUB_"
Origin: TypeAlias = str
"""The source of a value: a file, a variable, a flag, or "default"."""

# Variables that are no setting of a row: addresses and secrets, a device's, compose.yaml's, the notebook's.
_OTHERS: Final = frozenset(
    PREFIX + name
    for name in (
        *("KAFKA", "REDIS", "KAFKA_PASSWORD", "READ_TOKEN", "STRICT", "URL", "SURVEY", "SURVEYS", "IMAGE"),
        *("REPLICATION", "COLLECTOR_PORTS", "DASHBOARD_PORT", "CLUSTER_ID", "KAFKA_IMAGE", "REDIS_IMAGE"),
    )
)
_TESTS: Final = "HUBBUB_TEST_"


@dataclass(frozen=True, slots=True)
class Sourced:
    """The values of settings, and where each came from.

    Attributes:
        values: Key -> value, of those that somebody gave.
        origins: Key -> where it came from.
    """

    values: dict[str, object]
    origins: dict[str, Origin]


def read_file(path: Path) -> dict[str, object]:
    """Return the keys and values of a settings file.

    Raises:
        DeployError: If it cannot be read, or is no TOML of modest depth.
    """
    try:
        return decode(read_small(path).decode("utf-8"), str(path))
    except OSError as error:
        raise DeployError(f"{path}: must be a readable file, got {error.strerror!r}") from error
    except UnicodeDecodeError as error:
        raise DeployError(f"{path}: must be TOML, got {str(error)!r}") from error
    except SurveyError as error:
        raise DeployError(str(error)) from error


def refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    """Raise if a variable that begins with HUBBUB_ is none that any process reads: it may be misspelt.

    Raises:
        DeployError: If there is one; the message does not hold its value.
    """
    known = {row.variable for row in (*GATEWAY, *NODE)} | _OTHERS
    ours = (name for name in environment if name.startswith(PREFIX) and not name.startswith(_TESTS))
    if unknown := sorted(name for name in ours if name not in known):
        raise DeployError(
            f"variables that begin with {PREFIX} must be known (docs/operations.md, Settings), "
            f"got {', '.join(unknown)}"
        )


def gather(
    rows: Iterable[Setting],
    *,
    path: Path | None,
    file: Mapping[str, object],
    environment: Mapping[str, str],
    flags: Mapping[str, object],
) -> Sourced:
    """Return what file, environment and command line give for the rows, the last before the first.

    Args:
        rows: The settings asked for; keys of the file that are none of them are passed over.
        path: The file, for origins; None without one.
        file: Its keys and values.
        environment: The environment; a variable that is empty counts as one that is not set.
        flags: Key -> value on the command line; None where it was not given.

    Raises:
        DeployError: If a variable holds no value of its setting.
    """
    found = Sourced({}, {})
    for row in rows:
        if (given := flags.get(row.key)) is not None:
            value, origin = given, row.flag
        elif text := environment.get(row.variable):
            value, origin = row.parse(text, row.variable), row.variable
        elif row.key in file:
            value, origin = file[row.key], str(path)
        else:
            continue
        found.values[row.key], found.origins[row.key] = value, origin
    return found


def node_settings(
    path: Path | None, *, environment: Mapping[str, str] = os.environ, flags: Mapping[str, object]
) -> tuple[NodeOptions, GatewaySettings, Sourced]:
    """Return a node's settings, its gateway's, and where each value came from.

    Args:
        path: Its settings file (TOML); None without one.
        environment: The environment.
        flags: Key -> value on the command line; None where it was not given.

    Raises:
        DeployError: If the file cannot be read, a key or a variable that begins with HUBBUB_ is unknown, or
            a value has the wrong type or range.
    """
    refuse_unknown_variables(environment)
    file = {} if path is None else read_file(path)
    rows = (*NODE, *GATEWAY)
    try:
        if unknown := sorted(file.keys() - {row.key for row in rows}):
            known = ", ".join(row.key for row in rows)
            raise DeployError(f"settings of a node must be among {known}, got {', '.join(unknown)}")
        found = gather(rows, path=path, file=file, environment=environment, flags=flags)
        own, gateway = (
            {row.key: found.values[row.key] for row in table if row.key in found.values}
            for table in (NODE, GATEWAY)
        )
        return NodeOptions.from_mapping(own), GatewaySettings.from_mapping(gateway), found
    except (DeployError, CollectorError) as error:
        raise DeployError(str(error) if path is None else f"{path}: {error}") from None
