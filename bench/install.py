"""The wheel as docs/install.md installs it: every extra's size, the agent's import, a survey with `node`.

    python bench/install.py            all of it
    python bench/install.py --sizes    without the survey

It builds the wheel, installs it once without extras and once with each of that page's, each time in a virtual
environment of its own, prints packages and sizes, and goes the way of a first survey with the `node` extra.
Without extras it imports the agent in new processes: processor time of the dependencies first, then of the
agent, the best of five each. It needs a package index; without one it ends with 77, skipped.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("", "node", "demo", "design", "cluster", "speed", "bench", "export", "results")
"""The rows of the page's table."""
SKIPPED = 77
LOADED = "msgpack, numpy, sqlite3"
"""Packages of others that importing the agent loads."""
DECLARED = LOADED + ", urllib3, cryptography.hazmat.primitives.asymmetric.ed25519"
"""Those, and the ones that it loads once it speaks to a server or reads a signed list."""
IMPORT = """
import time
start = time.process_time()
import {others}
between = time.process_time()
from hubbub_client import Agent
print(between - start, time.process_time() - between)
"""


def built_lines() -> list[str]:
    """Return the lines of docs/install.md that build, install and try the wheel, without their comments."""
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    block = re.search(r"^    pip wheel .*?(?=^$)", text, re.MULTILINE | re.DOTALL)
    if block is None:
        raise ValueError("docs/install.md must say how the wheel is built, got no line with pip wheel")
    return [line.split("  #")[0].strip() for line in block[0].splitlines()]


def installed(folder: Path, wheel: Path, extra: str) -> Path | None:
    """Return the environment in which the wheel was installed; None where packages cannot be had."""
    place = folder / (extra or "device")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    target = f"{wheel}[{extra}]" if extra else str(wheel)
    ended = subprocess.run(
        [place / "bin" / "pip", "install", "-q", target], capture_output=True, text=True, check=False
    )
    if ended.returncode and ("No matching distribution" in ended.stderr or "onnection" in ended.stderr):
        print(ended.stderr.splitlines()[-1], file=sys.stderr)
        return None
    ended.check_returncode()
    return place


def size(place: Path) -> tuple[int, int]:
    """Return the packages and the MiB of an environment, pip and setuptools left out."""
    (site,) = place.glob("lib/python3*/site-packages")
    own = [path for path in site.iterdir() if not path.name.startswith(("pip", "setuptools", "_distutils"))]
    files = (file for path in own for file in (path.rglob("*") if path.is_dir() else [path]))
    total = sum(file.stat().st_size for file in files if file.is_file())
    return sum(path.suffix == ".dist-info" for path in own), round(total / 2**20)


def import_cost(place: Path, others: str, *, runs: int = 5) -> tuple[float, float]:
    """Return the least processor seconds of importing `others`, and of the agent after them."""
    command = [place / "bin" / "python", "-c", IMPORT.format(others=others)]
    rows = [
        [float(word) for word in subprocess.run(command, capture_output=True, check=True).stdout.split()]
        for _ in range(runs + 1)  # the first compiles
    ]
    before, after = (min(column) for column in zip(*rows[1:], strict=True))
    return before, after


def walk(place: Path, folder: Path) -> None:
    """Go the way of a first survey by what was installed, in an empty folder."""
    hubbub = str(place / "bin" / "hubbub")
    people = str(ROOT / "docs" / "examples" / "people.csv")

    def run(*words: str) -> None:
        subprocess.run([hubbub, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("--version")
    survey = ["--id", "visits", "--epsilon", "3", "--integer", "0", "77", "--start", "now", "--round", "10m"]
    run("survey", "new", *survey, "--out", "visits.toml")
    run("survey", "check", "visits.toml")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = [hubbub, "node", "visits.toml", "--data", "data", "--port", str(port)]
    node = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert node.stdout is not None
        print(node.stdout.readline().strip().replace(str(port), "PORT"))
        run("simulate", people, "--collector", url)
        with urllib.request.urlopen(f"{url}/healthz", timeout=10) as reply:  # noqa: S310 - our own http
            print(f"healthz {reply.status}")
        run("replay", people, "--survey", "visits.toml")
        run("survey", "design", "visits.toml")
        node.send_signal(signal.SIGTERM)
        print(f"node ended with {node.wait(30)}")
    finally:
        node.kill()
        node.communicate()


def main(words: list[str]) -> int:
    """Measure every extra, walk with one of them, and return the exit status."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
        for extra in EXTRAS:
            place = installed(folder, wheel, extra)
            if place is None:
                return SKIPPED
            packages, megabytes = size(place)
            print(f"{extra or 'none':8} {packages:3} packages  {megabytes:4} MiB", flush=True)
            if not extra:
                for which, others in (("loaded", LOADED), ("declared", DECLARED)):
                    before, after = import_cost(place, others)
                    said = f"dependencies {which} {1e3 * before:.0f} ms, the agent {1e3 * after:.0f} ms more"
                    print(f"{said}: {after / before:.2f} of them")
            if extra == "node" and "--sizes" not in words:
                (folder / "walk").mkdir()
                walk(place, folder / "walk")
            shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
