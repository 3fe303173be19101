"""A page whose way to its server is cut, by half or both ways: `python bench/chaos/page_cut.py half|both`.

No connection breaks: bytes wait, as they do behind a router that drops them. A headless chromium shows the
page. It exits with 1 unless the page says that the connection is lost, keeps its last numbers, and shows the
new ones once the way is open.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "harness"))

from browser import running_browser
from page_site import B, Site, health, on, state, text, two, until, visits
from proxy import Proxy

LONG_S = 120.0
"""Silence of 40 s is a break, a request then has 10 s, and two more attempts fit."""
BEFORE, AFTER = "42.00 ± 0.98 %", "47.00 ± 0.98 %"


def main(words: list[str]) -> int:
    if words not in (["half"], ["both"]):
        print("usage: page_cut.py half|both", file=sys.stderr)
        return 2
    site = Site(two(visits(), health(0.42)))
    proxy = Proxy(site.port)
    ways = [proxy.to_client, *([proxy.to_server] if words == ["both"] else [])]
    number = f"#survey-{B} .values .number"
    try:
        with tempfile.TemporaryDirectory() as profile, running_browser(Path(profile)) as browser:
            browser.get(f"http://127.0.0.1:{proxy.port}/{on(B)}")
            until(browser, "live", lambda: state(browser))
            until(browser, BEFORE, lambda: text(browser, number))
            for way in ways:
                way.clear()
            site.view.publish(two(visits(), health(0.47)))
            until(browser, "lost", lambda: state(browser), seconds=LONG_S)
            shown = text(browser, "#connection"), text(browser, number)
            print(f"said page: {shown[0]}; {shown[1]}", flush=True)
            if not shown[0].startswith("Connection lost, numbers of ") or shown[1] != BEFORE:
                return 1
            for way in ways:
                way.set()
            until(browser, AFTER, lambda: text(browser, number), seconds=LONG_S)
            print(f"said page: {text(browser, '#connection')}; {AFTER}", flush=True)
    except AssertionError as error:
        print(f"the page must show it, got {error}")
        return 1
    finally:
        for way in (proxy.to_client, proxy.to_server):
            way.set()
        proxy.close()
        site.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
