"""The demo's people: the RAND Health Insurance Experiment, as the statsmodels package carries it.

20,190 person-years (the public extract names no persons, so each person-year gets a device of its own):
visits to a doctor in the year, an index of chronic diseases, self-rated health.
Source: Newhouse et al., RAND Health Insurance Experiment; file `randhie.csv` of statsmodels.
"""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

from hubbub_lab.errors import LabError

PEOPLE = 20_190
_FILE = Path("datasets", "randhie", "src", "randhie.csv")


def load() -> dict[str, list[object]]:
    """Return the three attributes, one entry per person-year, keyed by attribute id.

    "visits": int, 0..77. "health": "excellent", "good", "fair" or "poor". "diseases": float, 0..58.6.

    Raises:
        LabError: statsmodels, or the file in it, is not installed.
    """
    spec = find_spec("statsmodels")
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0]) / _FILE if folders else None
    if path is None or not path.is_file():
        raise LabError("the demo's data needs the package statsmodels: pip install 'hubbub[demo]'")
    columns: dict[str, list[object]] = {"visits": [], "health": [], "diseases": []}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            columns["visits"].append(int(row["mdvis"]))
            columns["diseases"].append(float(row["disea"]))
            columns["health"].append(_health(row))
    return columns


def _health(row: dict[str, str]) -> str:
    """Return the file holds one indicator per level and omits "excellent"."""
    for name, column in (("good", "hlthg"), ("fair", "hlthf"), ("poor", "hlthp")):
        if row[column] == "1":
            return name
    return "excellent"
