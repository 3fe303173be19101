"""Trees, proofs, notes and cosignatures beside aics-tlog, where that is installed; nothing depends on it.

pip install --no-deps --ignore-requires-python --target FOLDER aics-tlog==0.2.1
PYTHONPATH=FOLDER pytest tests/core/transparency/test_aics_tlog.py
"""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub import transparency as log

aics = pytest.importorskip("aics_tlog")

TREES, PROOFS, NOTES = 1_000, 98_000, 1_000


def test_ten_to_the_five_random_cases_are_the_same() -> None:
    rng = np.random.default_rng(2933)
    for _ in range(TREES):
        leaves = [rng.bytes(int(rng.integers(40))) for _ in range(int(rng.integers(1, 600)))]
        other, nodes = aics.MerkleTree(leaves), log.nodes_of(map(log.leaf_hash, leaves))

        def read(level: int, place: int, nodes: dict[tuple[int, int], bytes] = nodes) -> bytes:
            return nodes[level, place]

        for _ in range(PROOFS // TREES):
            size = int(rng.integers(1, len(leaves) + 1))
            index, old = int(rng.integers(size)), int(rng.integers(1, size + 1))
            root, before = log.root_of(read, size), log.root_of(read, old)
            assert (root, before) == (other.root(size), other.root(old))
            path, grew = log.inclusion_path(read, index, size), log.consistency_path(read, old, size)
            assert (path, grew) == (other.inclusion_proof(index, size), other.consistency_proof(old, size))
            if rng.random() < 0.5 and path:
                path[int(rng.integers(len(path)))] = rng.bytes(32)
            if rng.random() < 0.5 and grew:
                grew[int(rng.integers(len(grew)))] = rng.bytes(32)
            leaf = log.leaf_hash(leaves[index])
            said = bool(aics.verify_inclusion(leaf, index, size, path, root))
            assert (log.root_by(leaf, index, size, path) == root) is said
            said = bool(aics.verify_consistency(old, size, before, root, grew))
            assert log.only_grew(old, size, before, root, grew) is said


def test_notes_and_cosignatures_are_the_same() -> None:
    rng = np.random.default_rng(2934)
    for place in range(NOTES):
        private = Ed25519PrivateKey.from_private_bytes(rng.bytes(32))
        public, name = private.public_key().public_bytes_raw(), f"log{place}.example/it"
        key = log.NoteKey(name, log.LOG_KEY, public)
        checkpoint = log.Checkpoint(name, int(rng.integers(2**62)), rng.bytes(32))
        theirs = aics.sign_checkpoint(aics.Checkpoint(name, checkpoint.size, checkpoint.root), private, name)
        ours = checkpoint.text + "\n" + key.sign(checkpoint.text, private)
        assert ours == theirs.serialise()
        assert key.text == aics.format_vkey(aics.vkey_from_ed25519(name, private.public_key()))
        witness, at_s = log.NoteKey("w.example", log.WITNESS_KEY, public), int(rng.integers(2**33))
        _, line = aics.sign_cosignature(private, "w.example", at_s, name, checkpoint.size, checkpoint.root)
        note = aics.Note(theirs.text, [*theirs.signatures, line]).serialise()
        assert note == ours + witness.sign(checkpoint.text, private, at_s)
        parsed = log.Note.parse(note.encode())
        assert parsed is not None and witness.signed_at(parsed) == at_s
