"""The core of the browser's device, in node and in chromium: given cases, asked for their results."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from browser import Browser

FOLDER = Path(__file__).parents[2] / "client" / "web"
SKIPPED = "skipped"
"""Its word for a kind of case that is no device's: records of the log."""
_SCRIPT = """
const [lines, done] = arguments;
import('/test/conformance.js').then(async ({result}) => {
  const words = [];
  for (const line of lines) words.push(await result(line));
  done(words);
}).catch((error) => done([String(error)]));
"""


def _node() -> str | None:
    """The command, if it is of a version that has WebCrypto without a flag."""
    found = shutil.which("node")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return found if said.startswith("v") and int(said[1:].split(".")[0]) >= 20 else None


NODE = _node()


def in_node(lines: Sequence[str]) -> list[str]:
    """Its words for every case."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(FOLDER / "test" / "conformance-cli.js")],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert len(found) == len(lines)
    return found


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The folder of the device on this machine, and its address: modules are not loaded from files."""
    handler = functools.partial(_Quiet, directory=str(FOLDER))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def in_browser(browser: Browser, address: str, lines: Sequence[str]) -> list[str]:
    """Its words for every case, in a page of the device's own folder."""
    browser.set_script_timeout(600)
    browser.get(f"{address}/package.json")
    found: list[str] = browser.execute_async_script(_SCRIPT, list(lines))
    assert len(found) == len(lines), found[:1]
    return found
