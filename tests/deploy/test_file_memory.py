"""A file that a user names takes little memory before it is refused, however much it claims to hold.

Every reader of such a file is tried in a child process with what costs most: a file that never ends, a line
or a quoted row that never ends, a page that a few bytes unpack to. The bound is beside what the rows that are
kept take.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.survey import MAX_SIZE, public_text
from hubbub_deploy.cli import main

HARNESS = Path(__file__).parents[1] / "harness"
GOLDEN = Path(__file__).parents[1] / "golden"
BOUND, LIMIT = 256 * 2**20, 6 * 2**30
KAFKA = 'kafka = "127.0.0.1:9"\nredis = "redis://127.0.0.1:1/0"\ntopic = "t"\n'
AGENT = "agent answer --ledger l --collector http://127.0.0.1:9 --budget 4"
ISSUER = "--issuer a=b --issuer-url http://127.0.0.1:9"

# A command, what stands on its stdin, and what it says: the file, and that it is too much.
DOORS = [
    ("replay big.csv --survey way.toml", None, "big.csv: line 1 must"),
    ("replay line.csv.gz --survey way.toml", None, "line.csv.gz: line 2 must"),
    ("replay quotes.csv.gz --survey way.toml", None, "quotes.csv.gz: line 2 must"),
    ("replay wide.csv.gz --survey way.toml", None, "wide.csv.gz: line 1 must"),
    ("replay - --survey way.toml", "big.csv", "-: line 1 must"),
    (
        "replay value.parquet --survey way.toml",
        None,
        "value.parquet: must be a Parquet file of smaller pages",
    ),
    ("replay values.parquet --survey way.toml", None, "1,000 devices in"),
    ("replay beside.parquet --survey way.toml", None, "1 devices in"),
    ("replay nested.parquet --survey way.toml", None, "nested.parquet: "),
    ("evaluate --data line.csv.gz:way --repeats 1", None, "line.csv.gz: line 2 must"),
    (
        "evaluate --data value.parquet:way --repeats 1",
        None,
        "value.parquet: must be a Parquet file of smaller",
    ),
    ("survey check big.toml", None, "big.toml: must have at most"),
    ("survey check signs.toml", None, "signs.toml: must have at most"),
    ("survey check labels.toml", None, ""),
    ("survey check keys.toml", None, "keys.toml: k0: must be a known key"),
    ("survey check compiled.bin", None, "compiled.bin: must be a compiled survey"),
    ("survey check -", "big.toml", "stdin cannot be read: more than"),
    ("survey sign way.toml --key big.pem --out l.bin", None, "big.pem: cannot be read: more than"),
    ("survey sign way.toml --key key.pem --out big.bin", None, "big.bin: cannot be read: more than"),
    ("evaluate big.toml", None, "big.toml: must have at most"),
    ("audit big.toml", None, "big.toml: must have at most"),
    ("config check big.toml", None, "big.toml: must be a readable file, got 'more than"),
    ("config check c-password.toml", None, "kafka_password_file big.txt cannot be read: more than"),
    ("config check c-key.toml", None, "big.pem: cannot be read: more than"),
    ("node way.toml --data d --settings big.toml", None, "big.toml: must be a readable file, got 'more than"),
    ("node way.toml --data d --list big.bin", None, "big.bin must be readable (more than"),
    ("node way.toml --data d --read-token-file big.txt", None, "big.txt cannot be read: more than"),
    ("node way.toml --data d --upload-password-file big.txt", None, "big.txt cannot be read: more than"),
    ("issuer serve big.pem --credentials c --data g", None, "big.pem cannot be read: more than"),
    ("issuer serve rsa.pem --credentials big.txt --data g", None, "big.txt: must hold the SHA-256 of"),
    (
        f"simulate big.csv --collector http://127.0.0.1:9 {ISSUER} --credentials big.txt",
        None,
        "big.txt cannot be",
    ),
    (f"{AGENT} --upload-password-file big.txt", None, "big.txt cannot be read: more than"),
    (f"{AGENT} {ISSUER} --credential-file big.txt", None, "big.txt cannot be read: more than"),
    (f"{AGENT} --set-from big.txt", None, "--set-from big.txt: cannot be read: more than"),
    (f"{AGENT} --set-from -", "big.txt", "--set-from -: cannot be read: more than"),
    ("agent status --ledger big.txt", None, "big.txt"),
    ("replay sparse", None, "log.sqlite"),
    ("export sparse --out x.csv", None, "sparse"),
]

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="/proc says what was the peak"),
]


def large(path: Path, size: int = 3 * 2**30) -> None:
    """A file of zeros that takes no place on the disk."""
    with path.open("wb") as file:
        file.truncate(size)


def repeated(path: Path, head: bytes, piece: bytes, times: int) -> None:
    """A gzip file of head and pieces: the pieces are compressed once."""
    packed = gzip.compress(piece, 6)
    path.write_bytes(gzip.compress(head) + packed * times)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("memory")
    before = Path.cwd()
    os.chdir(folder)
    try:
        make()
        yield folder
    finally:
        os.chdir(before)


def make() -> None:
    duckdb = pytest.importorskip("duckdb")
    for name in ("big.csv", "big.toml", "big.bin", "big.txt", "big.pem"):
        large(Path(name))
    Path("sparse").mkdir()
    for name in ("log.sqlite", "archive.sqlite"):
        large(Path("sparse", name))
    new = "survey new --id way --epsilon 1 --labels car,bike --start now --round 1m --out way.toml"
    assert main(new.split()) == main(["survey", "keygen", "--out", "key.pem"]) == 0
    assert main(["issuer", "keygen", "rsa.pem"]) == 0
    mebi = 2**20
    repeated(Path("line.csv.gz"), b"way\n", bytes(64 * mebi), 32)
    repeated(Path("quotes.csv.gz"), b'way\n"', b'\n","' * (8 * mebi), 64)
    repeated(Path("wide.csv.gz"), b"way", b",a" * (16 * mebi), 64)
    sql = {
        "value": "SELECT repeat('x', 400 << 20) AS way",
        "values": "SELECT repeat('x', 1 << 20) AS way FROM range(1000)",
        "beside": "SELECT 'car' AS way, repeat('x', 400 << 20) AS note",
        "nested": "SELECT range(20 << 20) AS way",
    }
    for name, query in sql.items():
        duckdb.execute(f"COPY ({query}) TO '{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    assert max(Path(f"{name}.parquet").stat().st_size for name in ("value", "values")) < 2**16
    Path("signs.toml").write_text("a = [" + "1," * (8 * mebi - 4) + "]", encoding="utf-8")
    Path("keys.toml").write_text("".join(f"k{number}.a.b.c.d=1\n" for number in range(80_000)))
    labels = ", ".join(f'"{number:0100}"' for number in range(MAX_SIZE))
    way = Path("way.toml").read_text(encoding="utf-8")
    Path("labels.toml").write_text(way.replace('["car", "bike"]', f"[{labels}]"), encoding="utf-8")
    assert Path("labels.toml").stat().st_size > 100 * MAX_SIZE
    with Path("compiled.bin").open("wb") as file:
        file.write(b"\x90\xadhubbub-survey")
        file.truncate(3 * 2**30)
    for name, text in {
        "password": 'kafka_user = "u"\nkafka_password_file = "big.txt"',
        "key": f'seal_key_file = "big.pem"\nseal_keys = "{public_text(Ed25519PrivateKey.generate())}"',
    }.items():
        Path(f"c-{name}.toml").write_text(f"{KAFKA}{text}\n", encoding="utf-8")


def taken(commands: list[tuple[str, str | None]]) -> list[dict[str, object]]:
    """What each command did, said, and took above what stood before, in one child process."""
    path = os.pathsep.join([str(HARNESS), *filter(None, sys.path)])
    child = subprocess.run(
        [sys.executable, str(HARNESS / "file_memory_process.py"), str(LIMIT)],
        input=json.dumps([[line.split(), stdin] for line, stdin in commands]),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return [json.loads(line) for line in child.stdout.splitlines()]


def test_no_reader_of_a_file_takes_more_than_its_bound(files: Path) -> None:
    found = taken([(line, stdin) for line, stdin, _ in DOORS])
    wrong = [
        f"{line}: {one['grew'] // 2**20} MiB, {one['code']}, {one['said']}"
        for (line, _, said), one in zip(DOORS, found, strict=True)
        if one["grew"] > BOUND or said not in one["said"] or one["code"] not in (0, 1)
    ]
    assert not wrong, "\n".join(wrong)


def test_rows_that_are_kept_are_seen_beyond_the_bound(files: Path) -> None:
    """The measurement itself: 400,000 distinct fields of 900 letters are the file's own, and are counted."""
    with gzip.open("rows.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"way\n")
        for number in range(400_000):
            file.write(b"%0900d\n" % number)
    (one,) = taken([("replay rows.csv.gz --survey way.toml --seed 1", None)])
    assert one["code"] == 0
    assert 400_000 * 900 < one["grew"] < 400_000 * (900 + 200) + BOUND
