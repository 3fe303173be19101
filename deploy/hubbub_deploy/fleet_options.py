"""`--asked` and `--fleet-budget`: what an operator states in public about the devices, for every release."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hubbub.errors import ParameterError
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    # The parser is built by commands that need no server library, too.
    from hubbub_aggregator.release import FleetStatement


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add both options to a command."""
    parser.add_argument(
        "--asked",
        action="append",
        default=[],
        metavar="[SURVEY=]DEVICES",
        help="how many devices are offered a survey (or all, without an id); may be repeated. Releases then "
        "say how many of them are missing",
    )
    parser.add_argument(
        "--fleet-budget",
        type=float,
        metavar="EPSILON",
        help="the lifetime budget of each device. With it, releases say how far refusals can bias them",
    )


def fleet_statement(options: argparse.Namespace) -> FleetStatement:
    """Return the operator's statement about the devices.

    Raises:
        DeployError: It is no number of devices, or no budget.
    """
    from hubbub_aggregator.release import FleetStatement  # noqa: PLC0415 - see above

    asked: dict[str, int] = {}
    for text in options.asked:
        survey, _, devices = text.rpartition("=")
        if not (devices.isascii() and devices.isdigit() and len(devices) < 16):
            raise DeployError(f"--asked must be DEVICES or SURVEY=DEVICES, got {text!r}")
        asked[survey] = int(devices)
    try:
        return FleetStatement(asked, options.fleet_budget)
    except ParameterError as error:
        raise DeployError(str(error)) from None
