"""Runs commands one after another and says what each took: `file_memory_process.py LIMIT < COMMANDS`.

Reads a JSON list of [arguments, file for stdin or None]; writes for each its exit code, the bytes by which
its peak of resident memory rose above what stood before, and the last line of what it said. No more than
LIMIT bytes of address space are given, so that a test that fails takes no machine down.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import resource
import sys
from pathlib import Path

from hubbub_deploy.cli import main

STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(field: str) -> int:
    return next(1024 * int(line.split()[1]) for line in STATUS.open() if line.startswith(field))


def run(argv: list[str], stdin: str | None) -> dict[str, object]:
    gc.collect()
    REFERENCES.write_text("5")  # the peak is as large as what is resident
    before, said = memory("VmRSS:"), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        if stdin is not None:
            sys.stdin = Path(stdin).open(encoding="utf-8")  # noqa: SIM115 - closed below
        try:
            code: object = main(argv)
        except SystemExit as ended:
            code = ended.code
        except Exception as error:
            code = repr(error)[:200]
    if stdin is not None:
        sys.stdin.close()
    last = said.getvalue().strip().rpartition("\n")[2]
    return {"code": code, "grew": memory("VmHWM:") - before, "said": last}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
    for argv, stdin in json.load(sys.stdin):
        print(json.dumps(run(argv, stdin)), flush=True)
