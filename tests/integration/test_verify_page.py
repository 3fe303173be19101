"""The page verify.html in a real chromium: opened from a disk, it tells an honest release and a lie apart."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser
from lies import printed, told
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from surveys import small

from hubbub import Survey

ROOT = Path(__file__).parents[2]
ASK = "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done(''), (e) => done(String(e)))"
"""A script that asks the network, which the page's policy refuses."""
BUILDER = ROOT / "client" / "web" / "tools" / "inline.py"
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand"),
]


def said(browser: Browser, page: Path, *files: Path) -> str:
    """The text of the page about some files."""
    browser.get(page.as_uri())
    browser.find_element(By.ID, "files").send_keys("\n".join(map(str, files)))
    results = browser.find_element(By.ID, "results")
    WebDriverWait(browser, 30).until(lambda _: results.get_attribute("data-done"))
    return results.text


def test_the_page_tells_an_honest_release_and_a_lie_apart(tmp_path: Path) -> None:
    page = tmp_path / "verify.html"
    subprocess.run([sys.executable, str(BUILDER), "verify", str(page)], check=True)
    survey = Survey.parse(small("one", 'type = "label"\nlabels = ["a", "b", "c"]'))
    document, counts = printed(survey, 500, np.random.default_rng(1))
    lied = told("an estimate", (document, counts), random.Random(1))  # noqa: S311 - a test case
    assert lied is not None
    files = {
        "one.survey": survey.canonical,
        "one.counts": counts,
        "honest.json": json.dumps(document).encode(),
        "lie.json": json.dumps(lied[0]).encode(),
        "other.txt": b"text",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    own, given, honest, lie, other = (tmp_path / name for name in files)
    with running_browser(tmp_path / "profile", "--host-resolver-rules=MAP * ~NOTFOUND") as browser:
        words = said(browser, page, own, given, honest, lie, other)
        assert "honest.json: What was checked is right" in words and ", 0 differ" in words
        assert "lie.json: It differs" in words
        place = next(
            place
            for place, cells in enumerate(zip(document["values"], lied[0]["values"], strict=True))
            if cells[0] != cells[1]
        )
        due, stated = (each["values"][place]["estimate"] for each in (document, lied[0]))
        found = re.search(rf"values\[{place}\].estimate is (\S+), should be (\S+)\n", words)
        assert found is not None
        assert [float(each) for each in found.groups()] == pytest.approx([stated, due], rel=1e-14)
        assert words.count("not checked: accounting.duplicate, ") == 2
        assert "other.txt: Not known" in words
        assert "its survey" in said(browser, page, given, honest)
        assert "its counts" in said(browser, page, own, honest)
        browser.set_script_timeout(20)
        error = browser.execute_async_script(ASK)
        assert "Failed to fetch" in error
