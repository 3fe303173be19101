"""`hubbub issuer keygen` and the options of what senders must show."""

from __future__ import annotations

import argparse
import stat
from pathlib import Path

import pytest

from hubbub_collector.permits import Permits
from hubbub_deploy.cli import main
from hubbub_deploy.commands.issuer import add_permits, permits
from hubbub_deploy.errors import DeployError


def parsed(*words: str) -> Permits:
    parser = argparse.ArgumentParser()
    add_permits(parser)
    return permits(parser.parse_args(words))


@pytest.fixture
def key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["issuer", "keygen", str(tmp_path / "key.pem")]) == 0
    return capsys.readouterr().out.strip()


def test_a_key_is_made_for_its_owner_alone_and_never_replaced(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "key.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    assert main(["issuer", "keygen", str(path)]) == 1
    assert "must be a file that can be made, got File exists" in capsys.readouterr().err
    assert path.read_bytes() == before
    (issuer,) = parsed("--issuer", f"tokens.example={key}").issuers
    assert issuer.name == "tokens.example"
    assert len(issuer.key.spki) == 342


def test_nothing_is_asked_for_unless_said() -> None:
    assert parsed() == Permits()


def test_wrong_options_are_named_and_hold_no_password(key: str, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("hunter2\n")
    cases = {
        ("--issuer", "tokens.example"): "must be NAME=KEY, got 'tokens.example'",
        ("--issuer", "tokens.example=abcd"): "RSASSA-PSS key of 2048 bits",
        ("--issuer", "tokens.example=a"): "--issuer tokens.example: ",
        ("--issuer", f"={key}"): "issuer name must be 1 to 255 printable",
        ("--issuer", f"a={key}", "--issuer", f"b={key}"): "keys of their own, got one twice",
        ("--upload-password-file", str(tmp_path / "none")): "cannot be read: No such file or directory",
        ("--upload-password-file", str(short)): "at least 16 printable ASCII characters",
    }
    for words, text in cases.items():
        with pytest.raises(DeployError, match=text.replace("(", r"\(")) as caught:
            parsed(*words)
        assert "hunter2" not in str(caught.value)


def test_serving_needs_a_key_and_credentials(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["issuer", "serve", "--data", str(tmp_path / "grants"), "--port", "0"]
    (tmp_path / "bad").write_text("no digits\n")
    (tmp_path / "good").write_text("00" * 32)
    for secret, credentials, text in (
        ("bad", "good", "bad must be a secret key in PEM without a password, got other bytes"),
        ("none", "good", "none cannot be read: No such file or directory"),
        ("key.pem", "none", "must hold the SHA-256 of a credential a line, got 'No such file or directory'"),
        ("key.pem", "bad", "must hold the SHA-256 of a credential a line, got one that is none"),
    ):
        assert main([*words, str(tmp_path / secret), "--credentials", str(tmp_path / credentials)]) == 1
        assert text in capsys.readouterr().err
