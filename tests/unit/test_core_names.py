"""The names that others build on; a change here is a breaking change and a line in CHANGELOG.md."""

from __future__ import annotations

import subprocess
import sys

import hubbub


def test_public_names_are_these_and_exist():
    assert hubbub.__all__ == [
        "Attribute",
        "BudgetError",
        "Channel",
        "HubbubError",
        "ParameterError",
        "Survey",
        "SurveyError",
        "WireError",
        "accounting",
        "mechanisms",
        "testing",
    ]
    for name in hubbub.__all__:
        assert getattr(hubbub, name) is not None


def test_import_brings_no_server_library_network_or_database():
    code = (
        "import sys, hubbub, hubbub.estimation, hubbub.records\n"
        "unwanted = ('scipy', 'starlette', 'sqlite3', 'urllib3', 'asyncio', 'http.client')\n"
        "print(*(module for module in unwanted if module in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
