"""`hubbub survey new`, `keygen`, `sign`: files that compile, a key of its owner's, lists that count on."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.survey.signed_list import open_signed, public_key
from hubbub_deploy.cli import main


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "labels.toml").write_text(LABELS, encoding="utf-8")
    (tmp_path / "visits.toml").write_text(VISITS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["survey", *arguments]) == 0
    return capsys.readouterr().out.strip()


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["survey", *arguments]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("domain", "size"),
    [
        (["--labels", "tea", 'a "strong" coffee', "none"], 4),
        (["--integer", "0", "12"], 14),
        (["--number", "-1.5", "40"], 34),
    ],
)
def test_a_new_survey_compiles_as_it_is(files: Path, capsys, domain, size) -> None:
    out = str(files / "new.toml")
    run(capsys, "new", "--id", "drinks", "--epsilon", "1.5", "--rounds", "3", "--out", out, *domain)
    survey = Survey.load(out)
    assert (survey.id, survey.epsilon, survey.rounds, survey.channel.inputs) == ("drinks", 1.5, 3, size)
    assert survey.start_s % 86_400 == 0
    assert "# " in (files / "new.toml").read_text(encoding="utf-8")
    assert "not overwritten" in fails(
        capsys, "new", "--id", "drinks", "--epsilon", "1", "--out", out, *domain
    )


def test_a_new_survey_that_breaks_a_rule_is_not_written(files: Path, capsys) -> None:
    said = fails(
        capsys, "new", "--id", "Drinks", "--epsilon", "1", "--integer", "0", "9", "--out", "new.toml"
    )
    assert "id" in said and not (files / "new.toml").exists()


def test_a_private_key_is_its_owners_alone_and_never_overwritten(files: Path, capsys) -> None:
    public = run(capsys, "keygen", "--out", "survey.key")
    path = files / "survey.key"
    assert len(public_key(public)) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    before = path.read_bytes()
    assert "not overwritten" in fails(capsys, "keygen", "--out", "survey.key")
    assert path.read_bytes() == before


def test_lists_count_on_and_keep_what_was_cancelled(files: Path, capsys) -> None:
    public = run(capsys, "keygen", "--out", "survey.key")
    sign = ["sign", "--key", "survey.key", "--out", "list.bin", "--json"]
    first = json.loads(run(capsys, *sign, "labels.toml", "visits.toml", "--days", "2"))
    assert (first["sequence"], first["key"]) == (1, public)
    assert first["expires_s"] - first["issued_s"] == 2 * 86_400
    second = json.loads(run(capsys, *sign, "labels.toml", "--cancel", "visits.toml"))
    labels, visits = (Survey.load(files / f"{name}.toml") for name in ("labels", "visits"))
    assert (second["sequence"], second["cancelled"]) == (2, [visits.digest.hex()])
    third = json.loads(run(capsys, *sign))
    assert (third["surveys"], third["dropped"]) == ([], [labels.digest.hex()])
    fourth = json.loads(run(capsys, *sign, "--cancel", labels.digest.hex()))
    opened = open_signed((files / "list.bin").read_bytes(), [public_key(public)])
    assert (opened.listed.sequence, opened.listed.cancelled) == (4, (visits.digest, labels.digest))
    assert fourth["cancelled"] == [visits.digest.hex(), labels.digest.hex()]
    assert "every survey once" in fails(capsys, *sign, "labels.toml")  # cancelled stays cancelled
    assert open_signed((files / "list.bin").read_bytes(), [public_key(public)]) == opened


def test_another_key_goes_on_only_where_the_former_one_is_named(files: Path, capsys) -> None:
    former = run(capsys, "keygen", "--out", "old.key")
    public = run(capsys, "keygen", "--out", "new.key")
    run(capsys, "sign", "--key", "old.key", "--out", "list.bin", "labels.toml")
    sign = ["sign", "--key", "new.key", "--out", "list.bin", "labels.toml"]
    assert "--former" in fails(capsys, *sign)
    run(capsys, *sign, "--former", former)
    opened = open_signed((files / "list.bin").read_bytes(), [public_key(public)])
    assert opened.listed.sequence == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "labels.toml"], "must be an Ed25519 private key"),
        (["--key", "nowhere"], "cannot be read"),
        (["--days", "0"], "--days must be above 0 and at most 366"),
        (["--days", "inf"], "--days must be above 0 and at most 366"),
        (["--cancel", "nowhere"], "--cancel must be a survey file or a digest"),
        (["--former", "00"], "64 hexadecimal digits"),
        (["--out", "nowhere/list.bin"], "cannot be written"),
    ],
)
def test_what_cannot_be_signed_is_refused_in_a_sentence(files: Path, capsys, arguments, said) -> None:
    run(capsys, "keygen", "--out", "survey.key")
    given = ["--key", "survey.key", "--out", "list.bin", "labels.toml"]
    assert said in fails(capsys, "sign", *given, *arguments)
    assert not (files / "list.bin").exists()
