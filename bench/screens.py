"""The pictures of every page and state of the dashboard in docs/dashboard.md.

    make evidence NAME=screens

A real browser looks at a real server over the documents of `page_states`: light and dark on a desk, light on
a phone. Each picture is reduced to a palette, under 100 kB.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium.webdriver.common.by import By

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "harness"))

from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser  # noqa: E402 - needs the path
from page_site import Site, opened, size, until  # noqa: E402
from page_states import PLACES, Place, gallery  # noqa: E402 - as above

OUT = ROOT / "docs" / "screens"
LOOKS = {"light": ("light", 1100), "dark": ("dark", 1100), "phone": ("light", 390)}
"""Colours and width in pixels of each look."""
MOST_HEIGHT = 1400
MOST_BYTES = 100_000
COLOURS = 48


def photograph(browser: Browser, place: Place, look: str) -> bytes:
    """Return the page as it stands as a PNG, from its top to its end."""
    scheme, width = LOOKS[look]
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size(browser, width, 700)
    until(browser, True, lambda: bool(browser.find_elements(By.CSS_SELECTOR, place.shows)))
    tall = browser.execute_script("return document.documentElement.scrollHeight")
    size(browser, width, min(int(tall), MOST_HEIGHT))
    # Two frames: the charts measure themselves, then draw.
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    out = io.BytesIO()
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main(words: list[str]) -> int:
    """Take all pictures, print their sizes, and return the exit status."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(words)
    if CHROMIUM is None or CHROMEDRIVER is None:
        print("chromium and chromedriver are not installed", file=sys.stderr)
        return 77
    OUT.mkdir(parents=True, exist_ok=True)
    began, wrong = time.monotonic(), []
    print("| page or state | light, kB | dark, kB | phone, kB |\n|---|---|---|---|")
    site = Site(gallery())
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running_browser(Path(folder), "--hide-scrollbars") as browser,
    ):
        try:
            for name, place in PLACES.items():
                opened(browser, site, place.where)
                until(browser, True, lambda p=place: bool(browser.find_elements(By.CSS_SELECTOR, p.shows)))
                for selector in place.press:
                    browser.find_element(By.CSS_SELECTOR, selector).click()
                sizes = []
                for look in LOOKS:
                    data = photograph(browser, place, look)
                    (OUT / f"{name}-{look}.png").write_bytes(data)
                    sizes.append(len(data))
                wrong += [name] if max(sizes) >= MOST_BYTES else []
                print(f"| {name}: {place.says} | " + " | ".join(f"{n / 1000:.0f}" for n in sizes) + " |")
        finally:
            site.stop()
    print(f"\n{len(PLACES)} places, three looks each, in {time.monotonic() - began:.0f} s.")
    if wrong:
        print(f"must stay below {MOST_BYTES} bytes: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
