"""`hubbub survey new --preset telemetry`: four small surveys about an app, and the code that answers them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

from hubbub import Survey
from hubbub_authoring import files
from hubbub_authoring.design import cohort_widths
from hubbub_authoring.files import Draft, DraftAttribute
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import create

EPSILON: Final = 1.0
"""Of each survey: a device with the usual budget of 4 answers all four, once."""
_WEEK_S: Final = 7 * 86_400
_DAY_S: Final = 86_400
_QUESTIONS: Final = (
    ("app-version", "Version of the app", ("current", "previous", "older")),
    ("system", "Operating system", ("android", "ios", "linux", "macos", "windows", "other")),
    ("new-search", "New search switched on", ("on", "off")),
    ("library-size", "Size of the library", ("0", "1 to 9", "10 to 99", "100 to 999", "1000 and more")),
)
HOST: Final = '''\
"""Answers the surveys beside it, once each. Call it when the app starts, and once a day."""

from hubbub_client import Agent
from hubbub.survey import Attribute

LABELS = {{
{labels}
}}


def answer(values: dict[str, str], agreed: set[str], ledger: str, collector: str) -> None:
    """Answer what is asked now.

    Args:
        values: A label for each question that this device can answer.
        agreed: Questions to which the owner said yes; `hubbub survey consent FILE` drafts what to ask.
        ledger: The file that holds this device's budget.
        collector: Address of the server.
    """
    with Agent(ledger, collector, budget={budget:g}) as agent:
        for name, labels in LABELS.items():
            agent.register(Attribute.labels(name, labels, kind="evolving"))
            if name in agreed:
                agent.opt_in(name)
                if name in values:
                    agent.set(name, values[name])
        for survey in agent.fetch_surveys():
            agent.enrol(survey)
        agent.answer()
        agent.upload()
'''


def write(folder: Path, *, devices: int, start_s: int | None) -> list[str]:
    """Write the surveys and the host's code into a folder, and return a line for each file.

    Args:
        folder: Made where it is not there; a file in it is never overwritten.
        devices: How many are expected to answer.
        start_s: When the one round of a week begins, seconds since 1970; None for the next midnight.

    Raises:
        DeployError: The folder or a file cannot be made.
    """
    if start_s is None:
        start_s = (int(time.time()) // _DAY_S + 1) * _DAY_S
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeployError(f"{folder}: cannot be made: {error.strerror}") from None
    for name in [*(f"{name}.toml" for name, _, _ in _QUESTIONS), "answers.py"]:
        if (folder / name).exists():
            raise DeployError(
                f"{folder / name}: must not be there yet: nothing is overwritten, or half written"
            )
    lines = []
    for name, title, given in _QUESTIONS:
        text, survey = files.drafted(
            Draft(
                id=name,
                title=title,
                epsilon=EPSILON,
                attributes=(DraftAttribute(id=name, type="label", labels=given),),
                kind="evolving",
                devices=devices,
                round_s=_WEEK_S,
                start_s=start_s,
            )
        )
        path = folder / f"{name}.toml"
        create(path, text.encode(), mode=0o666)
        lines.append(f"{path}: {title.lower()}, {_exactness(survey, devices)}")
    host = folder / "answers.py"
    budget = EPSILON * len(_QUESTIONS)
    labels = "\n".join(f"    {json.dumps(name)}: {json.dumps(each)}," for name, _, each in _QUESTIONS)
    create(host, HOST.format(labels=labels, budget=budget).encode(), mode=0o666)
    lines.append(f"{host}: what the app calls; a device spends an epsilon of {budget:g} at most")
    return lines


def _exactness(survey: Survey, devices: int) -> str:
    """Return how far a share may be off at two sizes: so that nobody expects much of few devices."""
    said = []
    for n in (devices, max(devices // 10, survey.minimum_cohort)):
        width = cohort_widths(survey.estimator(), n, inputs=survey.channel.inputs).value
        said.append(f"+-{50 * (width or 0):.1f} points of {n:,} devices")
    return " or ".join(said)
