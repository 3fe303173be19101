"""`make dist`: two builds are equal bytes, and a signed release that was touched is not verified."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.survey import public_text

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("dist", ROOT / "deploy/dist/dist.py")
assert SPEC is not None
assert SPEC.loader is not None
dist = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(dist)


def test_two_builds_of_one_tree_are_equal_bytes(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True
    ).stdout.split(b"\0")
    built = []
    for number, name in enumerate(("one", "another")):
        for each in filter(None, tracked):
            source, copy = ROOT / os.fsdecode(each), tmp_path / name / os.fsdecode(each)
            if source.is_file() and not os.fsdecode(each).startswith(("docs/screens", "tests/golden")):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
                copy.chmod(0o600 if number else 0o664)
                os.utime(copy, (number, number + 7))
        dist.archives(tmp_path / name, tmp_path / f"built-{name}", "1700000000")
        built.append({path.name: path.read_bytes() for path in (tmp_path / f"built-{name}").iterdir()})
    assert [Path(name).suffix for name in sorted(built[0])] == [".whl", ".gz"]
    assert built[0] == built[1]


@pytest.fixture
def release(tmp_path: Path) -> tuple[Path, str]:
    key = Ed25519PrivateKey.generate()
    files = [tmp_path / "hubbub-1.whl", tmp_path / "hubbub-1.tar.gz"]
    for each in files:
        each.write_bytes(each.name.encode())
    (tmp_path / "SHA256SUMS").write_bytes(dist.sums(files))
    dist.sign(tmp_path, key)
    return tmp_path, public_text(key)


def test_a_signed_release_is_verified_and_sha256sum_agrees(release: tuple[Path, str]) -> None:
    dist.verify(*release)
    subprocess.run(["sha256sum", "--check", "--status", "SHA256SUMS"], cwd=release[0], check=True)


@pytest.mark.parametrize(
    ("touch", "said"),
    [
        (lambda folder: (folder / "hubbub-1.whl").write_bytes(b"other"), r"hubbub-1\.whl must have the sum"),
        (lambda folder: (folder / "hubbub-1.tar.gz").unlink(), r"hubbub-1\.tar\.gz must be beside"),
        (
            lambda folder: (folder / "SHA256SUMS").write_bytes(dist.sums([folder / "hubbub-1.whl"])),
            r"SHA256SUMS\.sig must be a signature",
        ),
        (lambda folder: (folder / "SHA256SUMS.sig").write_bytes(b"?"), r"SHA256SUMS\.sig must be"),
    ],
)
def test_a_release_that_was_touched_is_refused(release: tuple[Path, str], touch, said: str) -> None:
    touch(release[0])
    with pytest.raises(SystemExit, match=said):
        dist.verify(*release)


@pytest.mark.parametrize("name", ["SHA256SUMS", "SHA256SUMS.sig"])
def test_a_folder_without_sums_or_signature_is_refused_in_a_sentence(
    release: tuple[Path, str], name: str
) -> None:
    (release[0] / name).unlink()
    with pytest.raises(SystemExit, match=rf"{re.escape(name)} must be in .*, and cannot be read"):
        dist.verify(*release)


@pytest.mark.parametrize("key", ["zz", "ab" * 31, "00" * 32])
def test_a_text_that_is_no_key_is_refused_as_that(release: tuple[Path, str], key: str) -> None:
    with pytest.raises(SystemExit, match="--public must be"):
        dist.verify(release[0], key)


def test_a_release_by_another_key_is_refused(release: tuple[Path, str]) -> None:
    with pytest.raises(SystemExit, match=r"SHA256SUMS\.sig must be"):
        dist.verify(release[0], public_text(Ed25519PrivateKey.generate()))
