"""Findings of axe in the page that a browser shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import selenium_axe_python
from browser import Browser

AXE = (Path(selenium_axe_python.__file__).parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(browser: Browser) -> list[str]:
    """Every rule that a part of the page breaks, by that part."""
    browser.execute_script(AXE)
    found: dict[str, Any] = browser.execute_async_script(
        """const [rules, done] = arguments;
        axe.run(document, { runOnly: rules }).then(done, (e) => done({ error: String(e) }));""",
        RULES,
    )
    assert "error" not in found, found
    assert len(found["passes"]) > 10  # it looked
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found["violations"] for node in rule["nodes"]]
