"""The options of commands that release: what is stated of the devices, and when a release raises an alert."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hubbub.errors import ParameterError
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    # The parser is built by commands that need no server library, too.
    from hubbub.estimation import AlertRules
    from hubbub_aggregator.release import FleetStatement


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """Add `--asked` and `--fleet-budget` to a command."""
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


def add_alerts(parser: argparse.ArgumentParser) -> None:
    """Add `--alert-rate` and `--alert-margin` to a command."""
    parser.add_argument(
        "--alert-rate",
        type=float,
        metavar="PROBABILITY",
        help="of a false alert in one round, all cells together (default: 0.001)",
    )
    parser.add_argument(
        "--alert-margin",
        type=float,
        metavar="SHARE",
        help="raise an alert where fewer forged reports than this move the largest value out of its interval "
        "(default: 0.001; 0 for never)",
    )


def alert_rules(options: argparse.Namespace) -> AlertRules:
    """Return the thresholds of alerts.

    Raises:
        DeployError: A number is out of range.
    """
    from hubbub.estimation import AlertRules  # noqa: PLC0415 - see above

    given = {"rate": options.alert_rate, "margin_share": options.alert_margin}
    try:
        return AlertRules(**{name: value for name, value in given.items() if value is not None})
    except ParameterError as error:
        raise DeployError(str(error)) from None
