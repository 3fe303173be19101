"""Build what a release consists of: wheel, source archive, bill of materials and their signed sums.

    make dist                                   # into dist/
    make dist ARGS="--key release.pem"          # signed with a key of `hubbub survey keygen`
    .venv/bin/python deploy/dist/dist.py --verify dist --public PUBLIC

Two builds of one commit are equal byte by byte: the time in both archives is the commit's, and nothing else of
the machine goes into them. `hubbub-VERSION.cdx.json` is a CycloneDX bill of materials of
deploy/compose/requirements.lock, which is what the image installs. `SHA256SUMS` has a line per file, as
`sha256sum --check` reads them; `SHA256SUMS.sig` is an Ed25519 signature of it in base64, over its bytes behind
SIGNED.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.errors import ParameterError
from hubbub.survey import public_key, public_text
from hubbub_deploy.files import load_signing_key

ROOT: Final = Path(__file__).parents[2]
# A key that signs lists may sign releases, too: neither signature can pass for the other.
SIGNED: Final = b"hubbub release 1\n"
LOCK: Final = ROOT / "deploy/compose/requirements.lock"


def archives(root: Path, out: Path, moment: str) -> None:
    """Write wheel and source archive of a source tree, with the time in both that `moment` says (Unix, seconds)."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out.resolve())],
        cwd=root,
        env={**os.environ, "SOURCE_DATE_EPOCH": moment},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def bill_of_materials(out: Path, cyclonedx: Path, moment: str) -> None:
    """Write the CycloneDX bill of LOCK, which the command validates against its schema."""
    made_from = ["requirements", "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"]
    subprocess.run(
        [str(cyclonedx), *made_from, "--output-reproducible", "--validate", "-o", str(out), str(LOCK)],
        env={**os.environ, "SOURCE_DATE_EPOCH": moment, "PYTHONWARNINGS": "ignore"},
        check=True,
    )


def build(out: Path, cyclonedx: Path) -> list[Path]:
    """Build all files of a release into a folder, and return them by name; an earlier build there goes."""
    out.mkdir(parents=True, exist_ok=True)
    for path in [*out.glob("hubbub-*"), *out.glob("SHA256SUMS*")]:
        path.unlink()
    of_commit = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    moment = subprocess.run(of_commit, capture_output=True, text=True, check=True).stdout.strip()
    archives(ROOT, out, moment)
    wheel = next(out.glob("hubbub-*.whl"))
    bill_of_materials(out / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json", cyclonedx, moment)
    return sorted(out.glob("hubbub-*"))


def sums(files: list[Path]) -> bytes:
    """Return a line per file: its SHA-256 in hexadecimal, two spaces, its name."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    return "".join(lines).encode()


def sign(folder: Path, key: Ed25519PrivateKey) -> None:
    """Write the signature of a folder's sums beside them, in base64 and a line of its own."""
    signature = key.sign(SIGNED + (folder / "SHA256SUMS").read_bytes())
    (folder / "SHA256SUMS.sig").write_bytes(base64.b64encode(signature) + b"\n")


def verify(folder: Path, public: str) -> None:
    """Return if the signature is the key's and every file has its sum.

    Raises:
        SystemExit: One does not, or is missing; it says which.
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(public_key(public))
    except ParameterError as error:
        sys.exit(f"--public must be a key as keygen prints it: {error}")
    said, signed = _read(folder, "SHA256SUMS"), _read(folder, "SHA256SUMS.sig")
    try:
        key.verify(base64.b64decode(signed.strip(), validate=True), SIGNED + said)
    except (InvalidSignature, ValueError):
        sys.exit("SHA256SUMS.sig must be a signature of SHA256SUMS by this key, and is not")
    for line in said.decode().splitlines():
        name = line.partition("  ")[2]
        if not (folder / name).is_file():
            sys.exit(f"{name} must be beside SHA256SUMS, and is missing")
        if sums([folder / name]).decode().strip() != line:
            sys.exit(f"{name} must have the sum that SHA256SUMS states, and has another")


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        sys.exit(f"{name} must be in {folder}, and cannot be read: {error.strerror}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a release, or verify one.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    parser.add_argument("--key", type=Path, help="private key (PEM) that signs the sums")
    parser.add_argument("--cyclonedx", type=Path, help="the command cyclonedx-py")
    parser.add_argument("--verify", type=Path, metavar="FOLDER", help="verify this folder, and build nothing")
    parser.add_argument("--public", metavar="KEY", help="the public key, as keygen prints it")
    options = parser.parse_args()
    if options.verify:
        if not options.public:
            parser.error("--verify needs --public")
        verify(options.verify, options.public)
        print("every file is the one that was signed")
        return
    if not options.cyclonedx:
        parser.error("a build needs --cyclonedx")
    key = load_signing_key(options.key) if options.key else None
    said = sums(build(options.out, options.cyclonedx))
    (options.out / "SHA256SUMS").write_bytes(said)
    if key is not None:
        sign(options.out, key)
        print(f"signed; the public key is {public_text(key)}", file=sys.stderr)
    print(said.decode(), end="")


if __name__ == "__main__":
    main()
