"""The modules that a device does not load before it needs them: the page, TLS, readers of TOML."""

from __future__ import annotations

import subprocess
import sys

UNWANTED = {
    "hubbub_authoring.files",
    "hubbub.estimation",
    "hubbub_client.owner_page.html",
    "hubbub_client.owner_page.page",
    "http.server",
    "importlib.resources",
    "lzma",
    "ssl",
    "tempfile",
    "urllib3",
}


def test_an_agent_loads_what_it_needs_first_and_no_more() -> None:
    code = f"import sys\nfrom hubbub_client import Agent\nprint(*({UNWANTED!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
