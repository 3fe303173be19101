"""Every decoder of bytes from outside, fuzzed by coverage: only its own errors may come out of it.

    pip install --require-hashes -r requirements-fuzz.lock
    python bench/fuzz.py               20 seconds a decoder: what was run, and the branches that were reached
    python bench/fuzz.py --seconds 1   shorter
    python bench/fuzz.py --only record --seconds 600
    python bench/fuzz.py --quick       some thousand inputs a decoder, in seconds: for CI

It begins with the golden files, and for tokens with one that was made up. An error of another kind, a hang of
5 seconds or 1 GB ends it with the bytes that did it, as hexadecimal.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = (
    "canonical", "toml", "report", "upload", "token-upload", "response", "surveys", "record", "list", "token",
)  # fmt: skip
QUICK_RUNS = 1_000
_LINE = re.compile(r"^#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)


def decoders() -> dict[str, Callable[[bytes], object]]:
    """Return the decoders by name; importing them is what the engine instruments."""
    import hubbub.survey.canonical  # noqa: PLC0415
    import hubbub.wire.record  # noqa: PLC0415
    import hubbub.wire.report  # noqa: PLC0415
    import hubbub.wire.token_upload  # noqa: PLC0415, F401 - the faces are lazy
    from hubbub import HubbubError, Survey, wire  # noqa: PLC0415
    from hubbub.survey.signed_list import open_signed, read_unverified  # noqa: PLC0415
    from hubbub.tokens.token import decode_token  # noqa: PLC0415

    def canonical(data: bytes) -> object:
        survey = Survey.from_canonical(data)
        assert survey.canonical == data
        assert survey.channel.epsilon <= survey.epsilon
        return survey

    def report(data: bytes) -> object:
        found = wire.decode_report(data)
        assert wire.decode_report(wire.encode_report(found)) == found
        return found

    def record(data: bytes) -> object:
        found = wire.decode_record(data)
        assert wire.decode_record(wire.encode_record(found)) == found
        return found

    def upload(data: bytes) -> object:
        found = wire.decode_upload(data, max_reports=8)
        rows = wire.side_by_side(data, max_reports=8, set_bytes=range(1, 300))
        assert rows is None or len(rows[1]) == rows[0].itemsize * len(found)
        return found

    def signed(data: bytes) -> object:
        try:
            open_signed(data, [bytes(32)])
        except HubbubError:
            return read_unverified(data)
        raise AssertionError("nobody signed it")

    by_name: dict[str, Callable[[bytes], object]] = {
        "canonical": canonical,
        "toml": lambda data: Survey.parse(data.decode("utf-8", "replace")),
        "report": report,
        "upload": upload,
        "token-upload": lambda data: wire.decode_token_upload(data, max_reports=8),
        "response": wire.decode_response,
        "surveys": wire.decode_surveys,
        "record": record,
        "list": signed,
        "token": decode_token,
    }

    def guarded(decode: Callable[[bytes], object]) -> Callable[[bytes], None]:
        def once(data: bytes) -> None:
            with contextlib.suppress(HubbubError):
                decode(data)

        return once

    return {name: guarded(decode) for name, decode in by_name.items()}


def seeds(name: str) -> list[bytes]:
    """Return inputs to begin with of decoders that no golden file is for."""
    from hubbub.tokens import Token  # noqa: PLC0415
    from hubbub.wire import Report, encode_report, encode_token_upload  # noqa: PLC0415

    token = Token(bytes(range(32)), bytes(32), bytes(32), bytes(range(256)))
    report = encode_report(Report(bytes(16), 0, token.report_id, 3))
    pairs = [(report, token.encoded), (encode_report(Report(bytes(16), 300, bytes(16), b"set")), b"")]
    return {"token": [token.encoded], "token-upload": [encode_token_upload(pairs)]}.get(name, [])


def worker(name: str, words: list[str]) -> None:
    """Run the engine on one decoder until it ends the process."""
    import atheris  # noqa: PLC0415 - has a lock of its own

    with atheris.instrument_imports(include=["hubbub", "msgpack.fallback"]):
        target = decoders()[name]
    atheris.Setup([sys.argv[0], *words], target)
    atheris.Fuzz()


def run(name: str, seconds: int) -> str:
    """Run the engine on one decoder in a process of its own; return its row.

    Raises:
        SystemExit: If it fell, with what the engine said.
    """

    def fuzz(words: list[str]) -> tuple[int, str]:
        command = [sys.executable, __file__, "--worker", name, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout[-1500:] + done.stderr

    return row(name, [f"-max_total_time={seconds}"], fuzz)


def row(name: str, bound: list[str], fuzz: Callable[[list[str]], tuple[int, str]]) -> str:
    """Have `fuzz` run the engine with words; return the decoder's row.

    Raises:
        SystemExit: If it fell, with what the engine said.
    """
    folder, me = Path(tempfile.mkdtemp(prefix="hubbub-fuzz-")), os.getpid()
    try:
        for file in (ROOT / "tests" / "golden").glob("*.toml" if name == "toml" else "*.bin"):
            shutil.copy(file, folder)
        for number, seed in enumerate(seeds(name)):
            (folder / f"seed-{number}").write_bytes(seed)
        words = [*bound, "-timeout=5", "-rss_limit_mb=1024", "-max_len=4096", "-seed=1"]
        words += ["-print_final_stats=1", f"-artifact_prefix={folder}/fell-", str(folder)]
        status, said = fuzz(words)
        fallen = [file.read_bytes().hex() for file in folder.glob("fell-*")]
    finally:
        if os.getpid() == me:  # a fork whose decoder fell comes by here, too, and has yet to leave the bytes
            shutil.rmtree(folder)
    lines = _LINE.findall(said)
    if status or fallen or not lines:
        raise SystemExit(f"{name}: {said[-3000:]}\nbytes: {' '.join(fallen)}")
    begin, end = lines[0], lines[-1]
    return f"| {name} | {int(end[0]):,} | {begin[1]} | {end[1]} | {end[2]} | {end[3]} |"


def quick() -> None:
    """Print a row for each decoder after QUICK_RUNS inputs, each in a fork of one process."""
    import atheris  # noqa: PLC0415 - has a lock of its own

    # It says every module that it instruments.
    with (
        contextlib.redirect_stderr(io.StringIO()),
        atheris.instrument_imports(include=["hubbub", "msgpack.fallback"]),
    ):
        targets = decoders()

    def forked(name: str, words: list[str]) -> tuple[int, str]:
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                atheris.Setup([sys.argv[0], *words], targets[name])
                atheris.Fuzz()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            return os.waitstatus_to_exitcode(status), said.read().decode(errors="replace")

    for name in NAMES:
        print(row(name, [f"-runs={QUICK_RUNS}", "-max_total_time=2"], partial(forked, name)), flush=True)


def main() -> None:
    """Print a row for each decoder."""
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], sys.argv[3:])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print("| decoder | inputs | branches at the begin | reached | features | kept inputs |")
    print("|---|---|---|---|---|---|")
    if options.quick:
        quick()
        return
    for name in [options.only] if options.only else NAMES:
        print(run(name, options.seconds), flush=True)


if __name__ == "__main__":
    main()
