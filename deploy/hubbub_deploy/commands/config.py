"""`hubbub config check`: every setting of a process, its value, and where it came from."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Final

from hubbub_deploy.commands.arguments import add_rows
from hubbub_deploy.errors import DeployError
from hubbub_deploy.settings import GATEWAY, NODE, Sourced, node_settings, read_file

# Keys that only a cluster's file has.
_CLUSTERS: Final = frozenset({"kafka", "redis", "topic", "namespace", "group", "rebuild_s", "session_s"})
_PASSWORD: Final = re.compile(r"(?<=:)[^:/@]*(?=@)|(?<=password=)[^&]*")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    config = commands.add_parser("config", help="check the settings of a node or a cluster")
    verbs = config.add_subparsers(dest="verb", required=True, metavar="VERB")
    check = verbs.add_parser(
        "check", help="say each setting, its value and where it came from; exit 1 where one is wrong"
    )
    check.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="settings file of a node or a cluster (TOML)"
    )
    check.add_argument(
        "--of",
        choices=("node", "cluster"),
        help="whose settings they are (default: a cluster's if the file has one of its keys)",
    )
    check.add_argument("--json", action="store_true", help="print them as JSON")
    add_rows(check, "settings of a node", NODE)
    add_rows(check, "limits of a node or a collector", GATEWAY)
    check.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the settings, and return 0; what is wrong with them is raised."""
    path: Path | None = options.file
    if path is None and options.of == "cluster":
        raise DeployError("--of cluster must be with a FILE, got none")
    of = options.of or ("cluster" if path is not None and _CLUSTERS & read_file(path).keys() else "node")
    lines = _cluster(path, options) if path is not None and of == "cluster" else _node(path, options)
    if options.json:
        print(json.dumps({key: {"value": value, "from": origin} for key, value, origin in lines}))
        return 0
    for key, value, origin in lines:
        print(f"{key:20} {'none' if value is None else value!s:28} {origin}")
    return 0


def _node(path: Path | None, options: argparse.Namespace) -> list[tuple[str, object, str]]:
    own, gateway, found = node_settings(path, flags=vars(options))
    return [*_said(own, found), *_said(gateway, found, most={"delivery_s": ("grace_s", own.grace_s)})]


def _cluster(path: Path, options: argparse.Namespace) -> list[tuple[str, object, str]]:
    from hubbub_deploy.cluster_settings import PASSWORD_VARIABLE, ClusterSettings  # noqa: PLC0415 - for a node

    settings, found = ClusterSettings.sourced(path, flags=vars(options))
    lines = [
        (key, _PASSWORD.sub("***", value) if isinstance(value, str) else value, origin)
        for key, value, origin in _said(settings, found)
        if key != "limits"
    ]
    if os.environ.get(PASSWORD_VARIABLE):
        lines.append(("kafka_password", "***", PASSWORD_VARIABLE))
    # Each raises if its files, keys and names do not fit; the secret key is read where this process has one.
    _ = settings.brokers, settings.seal_rules
    if settings.seal_key_file is not None:
        _ = settings.seal_signer
    return [
        *lines,
        *_said(settings.limits, found, most={"delivery_s": ("grace_s / 2", settings.grace_s / 2)}),
    ]


def _said(
    settings: object, found: Sourced, *, most: dict[str, tuple[str, float]] | None = None
) -> Iterable[tuple[str, object, str]]:
    """Yield key, value and origin of every field; no value is above its bound by another setting."""
    for field in fields(settings):  # type: ignore[arg-type]  # each is a dataclass
        value, origin = getattr(settings, field.name), found.origins.get(field.name, "default")
        name, bound = (most or {}).get(field.name, ("", value))
        if value != bound and value > bound:
            value, origin = bound, f"{origin}, bounded by {name}"
        yield field.name, value, origin
