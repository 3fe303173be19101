"""`--alert-rate` and `--alert-margin`: when a release raises an alert."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hubbub.errors import ParameterError
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    # The parser is built by commands that need no server library, too.
    from hubbub.estimation import AlertRules


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add both options to a command."""
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
