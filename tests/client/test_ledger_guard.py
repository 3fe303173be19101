"""A ledger that is gone, swapped, moved or restored: refused wherever something is left to notice it by."""

import os
import shutil
from pathlib import Path

import pytest

from hubbub_client.errors import LedgerCorruptError, LedgerError, LedgerForeignError, LedgerMissingError
from hubbub_client.ledger.ledger import Ledger

KEY = b"k" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_a_deleted_ledger_is_not_made_anew_beside_its_mark(path: Path) -> None:
    Ledger(path, budget=1.0).close()
    path.unlink()
    for _ in range(2):
        with pytest.raises(LedgerMissingError, match="its budget is not renewed"):
            Ledger(path, budget=1.0)
    assert not path.exists()


def test_a_ledger_made_elsewhere_does_not_stand_in_for_the_one_made_here(path: Path, tmp_path: Path) -> None:
    Ledger(path, budget=1.0).close()
    fresh = tmp_path / "elsewhere"
    fresh.mkdir()
    Ledger(fresh / "ledger.db", budget=1.0).close()
    shutil.copy(fresh / "ledger.db", path)
    with pytest.raises(LedgerForeignError, match="not the one that was made here"):
        Ledger(path, budget=1.0)


@pytest.mark.parametrize("content", [b"", b"something else", b"hubbub ledger 00\n"])
def test_a_mark_that_says_something_else_is_not_believed(path: Path, content: bytes) -> None:
    Ledger(path, budget=1.0).close()
    path.with_name("ledger.db.mark").write_bytes(content)
    with pytest.raises(LedgerForeignError):
        Ledger(path, budget=1.0)


def test_a_mark_that_was_lost_is_made_again(path: Path) -> None:
    """As after a kill between making the ledger and its mark: nothing can have been answered in between."""
    Ledger(path, budget=1.0).close()
    path.with_name("ledger.db.mark").unlink()
    Ledger(path, budget=1.0).close()
    path.unlink()
    with pytest.raises(LedgerMissingError):
        Ledger(path, budget=1.0)


def test_opening_what_exists_makes_nothing(path: Path) -> None:
    with pytest.raises(LedgerMissingError, match="does not exist"):
        Ledger(path, budget=None)
    assert list(path.parent.iterdir()) == []
    Ledger(path, budget=2.5).close()
    ledger = Ledger(path, budget=None)
    assert ledger.budget == 2.5
    ledger.close()


def test_a_ledger_bound_to_a_device_key_opens_with_that_key_only(path: Path) -> None:
    Ledger(path, budget=1.0, device_key=KEY).close()
    Ledger(path, budget=1.0, device_key=KEY).close()
    for other in (None, b"K" * 32):
        with pytest.raises(LedgerForeignError, match="belongs to a device with"):
            Ledger(path, budget=1.0, device_key=other)


def test_a_ledger_restored_on_another_device_is_refused(path: Path, tmp_path: Path) -> None:
    """The whole folder comes from a backup, mark included; the key does not."""
    Ledger(path, budget=1.0, device_key=KEY).close()
    other = tmp_path / "other"
    other.mkdir()
    for name in ("ledger.db", "ledger.db.mark"):
        shutil.copy(path.with_name(name), other / name)
    with pytest.raises(LedgerForeignError):
        Ledger(other / "ledger.db", budget=1.0, device_key=b"o" * 32)


def test_a_ledger_without_a_key_is_bound_by_the_first_that_is_given(path: Path) -> None:
    Ledger(path, budget=1.0).close()
    Ledger(path, budget=1.0, device_key=KEY).close()
    with pytest.raises(LedgerForeignError):
        Ledger(path, budget=1.0)


def test_the_file_does_not_hold_the_key(path: Path) -> None:
    Ledger(path, budget=1.0, device_key=KEY).close()
    assert KEY[:16] not in path.read_bytes()


def test_a_short_key_is_refused(path: Path) -> None:
    with pytest.raises(LedgerError, match="at least 16 bytes, got 3"):
        Ledger(path, budget=1.0, device_key=b"abc")


def test_what_is_no_file_is_no_ledger(path: Path) -> None:
    path.mkdir()
    with pytest.raises(LedgerError, match="must be a file"):
        Ledger(path, budget=1.0)


def test_an_emptied_ledger_is_refused_with_its_mark_and_without(path: Path) -> None:
    Ledger(path, budget=1.0).close()
    path.write_bytes(b"")
    with pytest.raises(LedgerCorruptError):
        Ledger(path, budget=1.0)
    path.with_name("ledger.db.mark").unlink()
    with pytest.raises(LedgerCorruptError):
        Ledger(path, budget=1.0)


def test_what_cannot_be_noticed_is_stated(path: Path, tmp_path: Path) -> None:
    """Deleting everything, or restoring an older copy of everything, opens; docs/threat-model.md says so."""
    Ledger(path, budget=1.0, device_key=KEY).close()
    for file in list(tmp_path.iterdir()):
        file.unlink()
    Ledger(path, budget=1.0, device_key=KEY).close()
    page = (Path(__file__).parents[2] / "docs" / "threat-model.md").read_text()
    assert "*Everything deleted.*" in page and "*An older copy of everything, on the same device.*" in page


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_ledger_and_mark_are_their_owners_alone(tmp_path):
    """Also one that was copied, or made with a wide umask, before; and what SQLite keeps beside it."""
    path = tmp_path / "own.db"
    before = os.umask(0)
    try:
        Ledger(path, budget=1.0).close()
        assert {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {
            "own.db": 0o600,
            "own.db.mark": 0o600,
        }
        for each in tmp_path.iterdir():
            each.chmod(0o644)
        ledger = Ledger(path, budget=1.0)
        ledger.add_attribute("a", b"spec")
        assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
        ledger.close()
    finally:
        os.umask(before)
