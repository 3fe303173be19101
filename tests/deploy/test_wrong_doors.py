"""Wrong inputs at the commands that other tables do not try: one line with subject, rule and value each.

`test_wrong_options` tries what a type refuses, `test_cli_misuse` what is missing, `test_wrong_requests` the
node's doors over HTTP. Here are files, names and options that fit no other.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hubbub_deploy.cli import main

VISITS = (Path(__file__).parents[1] / "golden" / "survey-visits.toml").read_text(encoding="utf-8")
KAFKA = 'kafka = "127.0.0.1:9"\nredis = "redis://127.0.0.1:1/0"\ntopic = "t"\n'
NOT_THERE = "must be a readable file, got 'No such file or directory'"
KEY = "must be the 64 hexadecimal digits of an Ed25519 public key"
CLUSTERS = {
    "table": 'id_table = "fast"',
    "keys": 'seal_keys = "abc"',
    "since": 'seals_signed_since = "2026-01-01T00:00:00Z"',
    "when": 'seal_keys = "abc"\nseals_signed_since = "soon"',
    "secret": 'seal_key_file = "none.pem"',
    "user": 'kafka_user = "me"',
    "half": 'kafka_certificate = "none.pem"',
    "sasl": 'kafka_mechanism = "X"',
    "password": 'kafka_user = "me"\nkafka_password_file = "none"',
    "rate": "permit_rate = -1",
    "grace": "grace_s = 1",
    "odd": "rate_limit = 5",
}
NODES = {
    "port": "port = 70000",
    "true": "port = true",
    "host": "host = 3",
    "keep": "log_max_bytes = 5\nlog_keep_bytes = 9",
    "limit": "permit_rate = 'fast'",
    "deep": "a = " + 3_000 * "[" + 3_000 * "]",
    "inline": "a = " + 3_000 * "{b = " + "1" + 3_000 * "}",
    "dots": "a" + 100_000 * ".a" + " = 1",
}
TABLES = {
    "people.csv": b"visits\n3\n4\n",
    "twice.csv": b"visits,visits\n3,4\n",
    "short.csv": b"visits,age\n3\n",
    "x.gz": b"no gzip",
    "x.parquet": b"no parquet",
}
LONG = 300 * "n"
FUNCTIONS = """
def raises(x): raise KeyError(x)
def none(): return 1
def fair(x): return 0
number = 3
"""

DOORS = [
    # config check
    ("config check none.toml", NOT_THERE),
    ("config check folder", "folder: must be a readable file, got 'Is a directory'"),
    ("config check binary", "binary: must be TOML, got "),
    ("config check --of cluster", "--of cluster must be with a FILE, got none"),
    ("config check visits.toml", "visits.toml: settings of a node must be among host, "),
    ("config check cluster.toml --of node", "settings of a node must be among host, "),
    ("config check c-table.toml", "id_table must be auto or numpy or compiled, got 'fast'"),
    ("config check c-keys.toml", f"seal_keys: a survey key {KEY}"),
    ("config check c-since.toml", "seals_signed_since must come with seal_keys"),
    ("config check c-when.toml", "must be a time such as 2026-12-01T00:00:00Z, got 'soon'"),
    ("config check c-secret.toml", "none.pem: cannot be read: No such file or directory"),
    ("config check c-user.toml", "Kafka user and password must be given together"),
    ("config check c-half.toml", "Kafka certificate and key must be given together"),
    ("config check c-sasl.toml", "kafka_mechanism must be SCRAM-SHA-512 or SCRAM-SHA-256 or PLAIN, got 'X'"),
    ("config check c-password.toml", "kafka_password_file none cannot be read: No such file or"),
    ("config check c-rate.toml", "permit_rate must be at least 0 and finite, got -1"),
    ("config check c-grace.toml", "grace_s must be at least 10, got 1"),
    ("config check c-odd.toml", "got rate_limit"),
    ("config check n-port.toml", "port must be an integer of at least 0 and at most 65535, got 70000"),
    ("config check n-true.toml", "port must be an integer of at least 0 and at most 65535, got True"),
    ("config check n-host.toml", "host must be a text that is not empty, got 3"),
    ("config check n-keep.toml", "log_keep_bytes must be below log_max_bytes, which is 5, got 9"),
    ("config check n-limit.toml", "permit_rate must be a number, got 'fast'"),
    ("config check n-deep.toml", "n-deep.toml: must be TOML of modest depth, got 'more than 100 levels'"),
    ("config check n-inline.toml", "n-inline.toml: must be TOML of modest depth, got 'more than 100 levels'"),
    ("config check n-dots.toml", "must be TOML of modest depth, got 'a dotted key of more than 32 parts'"),
    ("dead-letters n-deep.toml", "must be TOML of modest depth"),
    ("node visits.toml --data d --settings n-deep.toml", "must be TOML of modest depth"),
    ("survey check n-deep.toml", "must be TOML of modest depth"),
    # seal keys, rate limits and tables of ids, where processes start
    ("aggregator c-keys.toml", f"seal_keys: a survey key {KEY}"),
    ("aggregator c-when.toml", "got 'soon'"),
    ("aggregator c-table.toml", "id_table must be auto or numpy or compiled, got 'fast'"),
    ("dashboard c-secret.toml --data d", "none.pem: cannot be read: No such file or directory"),
    ("collector c-rate.toml visits.toml", "permit_rate must be at least 0 and finite, got -1"),
    ("node visits.toml --data d --settings n-limit.toml", "permit_rate must be a number, got 'fast'"),
    # survey check OLD NEW, and other verbs of surveys
    ("survey check visits.toml none.toml", f"none.toml: {NOT_THERE}"),
    ("survey check none.toml visits.toml", f"none.toml: {NOT_THERE}"),
    ("survey check visits.toml folder", "folder must hold survey files (.toml or .bin), got none"),
    ("survey check folder visits.toml", "folder must hold survey files (.toml or .bin), got none"),
    ("survey check visits.toml other.toml", "must be an edition of survey 'outpatient-visits', got 'other'"),
    ("survey check visits.toml binary", "binary: must be UTF-8 text, got 'byte 0x80 at offset 0'"),
    ("survey check two two", "another file of two has version 1"),
    (f"survey check {LONG} {LONG}", "n: must be usable, got 'File name too long'"),
    ("survey design visits.toml --budget -1", "--budget must be above 0 and finite, got -1"),
    ("survey design visits.toml --budget nan", "--budget must be above 0 and finite, got nan"),
    ("survey design visits.toml --shuffled 9 --delta 0", "--delta must lie strictly between 0 and 1, got 0"),
    ("survey design visits.toml --shuffled 9 --delta 2", "--delta must lie strictly between 0 and 1, got 2"),
    ("survey design visits.toml --within 2", "--within must come with --objective hit, got 2 without it"),
    ("survey design visits.toml --max-gain 0", "max_gain must be at least 1 and finite, got 0.0"),
    (
        "survey design visits.toml --plot x.doc",
        "--plot must end in one of .png, .svg, .pdf, .html, got 'x.doc'",
    ),
    ("survey rehearse visits.toml --value visits", "--value must be ATTRIBUTE=VALUE, got 'visits'"),
    ("survey rehearse visits.toml --value age=3", "--value must name an attribute of the survey, got 'age'"),
    ("survey rehearse visits.toml --value visits=99", "a value of attribute 'visits' must be a whole number"),
    ("survey rehearse visits.toml --budget nan", "budget must be above 0 and at most 4096, got nan"),
    ("survey compile visits.toml --out folder", "folder: cannot be written: Is a directory"),
    ("survey sign visits.toml changed.toml --key key.pem --out l", "got outpatient-visits version 1 twice"),
    (
        "survey sign visits.toml --key key.pem --out l --days 400",
        "--days must be above 0 and at most 366, got 400",
    ),
    ("survey sign visits.toml --key key.pem --out l --former zz", KEY),
    (
        "survey sign visits.toml --key key.pem --out l --cancel zz",
        "--cancel must be a survey file or a digest",
    ),
    ("survey new --id X --epsilon 1 --integer 0 5 --out n", "attribute.id: must be 1 to 64 of a-z, 0-9"),
    ("survey new --id a --epsilon inf --integer 0 5 --out n", "epsilon: must be a finite number"),
    ("survey new --id a --epsilon 1 --integer 5 0 --out n", "attribute.high: must be above attribute.low 5"),
    ("survey new --id a --epsilon 1 --labels a,a --out n", "attribute.labels[1]: must differ from"),
    (
        "survey new --id a --epsilon 1 --integer 0 5 --category x --out n",
        "--category must be NAME=VALUES, got 'x'",
    ),
    ("survey new --id a --epsilon 1 --integer 0 5 --category x=0..2 --out n", "must cover the whole domain"),
    (
        "survey new --id a --epsilon 1 --integer 0 5 --out visits.toml",
        "is there already, and is not overwritten",
    ),
    # replay and simulate
    ("replay folder --without-issuer a", "folder/log.sqlite must exist, got none"),
    ("replay kafka://k:1/t/x --without-issuer a", "as kafka://host:port/topic, got 'kafka://k:1/t/x'"),
    ("replay kafka://k:1/t --settings c-keys.toml --without-issuer a", f"seal_keys: a survey key {KEY}"),
    ("replay twice.csv --survey visits.toml", "twice.csv: column 'visits' must be there once, got 2 of it"),
    ("replay short.csv --survey visits.toml", "short.csv: line 2 must have 2 fields, got 1"),
    ("replay x.gz --survey visits.toml", "x.gz: cannot be read: Not a gzipped file"),
    ("replay x.parquet --survey visits.toml", "x.parquet: must be a Parquet file that can be read"),
    ("replay people.csv --survey visits.toml --delimiter ab", "--delimiter must be one character"),
    (
        "replay none.csv --survey visits.toml --out binary/out",
        "binary/out: cannot be written: Not a directory",
    ),
    ("replay folder --out binary", "binary: cannot be written: Not a directory"),
    (
        "replay people.csv --survey visits.toml --column visits",
        "--column must be ATTRIBUTE=COLUMN, got 'visits'",
    ),
    ("simulate people.csv --collector URL/?survey=1", "URL must end after host, port and path, got one with"),
    ("simulate people.csv --collector http://me:word@127.0.0.1:9", "got one with '@'"),
    ("simulate people.csv --collector nothing", "URL must be http(s)://host[:port], got 'nothing'"),
    (
        "simulate people.csv --collector http://collect.example.org",
        "collector URL must be https://, or http:// to this machine; elsewhere plain http must be asked for "
        "(plain_http='anywhere', --plain-http), got 'http://collect.example.org'",
    ),
    ("simulate people.csv --collector URL --dashboard http://d.example", "dashboard URL must be https://"),
    (
        "agent answer --ledger l --collector http://collect.example.org --budget 4",
        "collector URL must be https://, or http:// to this machine",
    ),
    ("simulate people.csv --collector ftp://x", "URL must be http(s)://host[:port], got 'ftp://x'"),
    ("simulate people.csv --collector URL --patience 0", "cannot be reached: connection refused"),
    ("simulate people.csv --collector URL --budget nan", "--budget must be above 0 and finite, got nan"),
    (
        "simulate people.csv --collector URL --issuer a=b",
        "--issuer, --issuer-url and --credentials must be given",
    ),
    (
        "simulate people.csv --collector URL --issuer a=b --issuer-url URL --credentials none",
        "none cannot be read: No such file or directory",
    ),
    (
        "simulate people.csv --collector URL --issuer a=b --issuer-url URL --credentials binary",
        "binary cannot be read: it holds bytes that are no text",
    ),
    (
        "simulate people.csv --collector URL --issuer a=b --issuer-url URL --credentials people.csv",
        "issuer: the key must be in base64, got 'b'",
    ),
    (
        "simulate people.csv --collector URL --issuer a=bbbb --issuer-url x --credentials people.csv",
        "issuer URL must be http(s)://host[:port], got 'x'",
    ),
    # issuers
    ("issuer keygen folder", "folder must be a file that can be made, got File exists"),
    (
        "issuer serve none.pem --credentials none --data g",
        "none.pem cannot be read: No such file or directory",
    ),
    ("issuer serve key.pem --credentials none --data g", "key.pem must be an RSA key, got another kind"),
    (
        "issuer serve binary --credentials none --data g",
        "binary must be a secret key in PEM without a password, got other bytes",
    ),
    ("node visits.toml --data d --issuer a", "--issuer must be NAME=KEY, got 'a'"),
    ("node visits.toml --data d --issuer a=b", "--issuer a: the key must be in base64, got 'b'"),
    (
        "node visits.toml --data d --issuer-quota a=3",
        "--issuer-quota must be NAME=N of an --issuer, got 'a=3'",
    ),
    (
        "agent answer --ledger l --collector URL --issuer a=b",
        "--issuer must come with --issuer-url, got none",
    ),
    (
        "agent answer --ledger l --collector URL --credential-file people.csv",
        "--credential-file must come with --issuer-url, got none",
    ),
    # audit
    ("audit none.toml", f"none.toml: {NOT_THERE}"),
    ("audit visits.toml --inputs 3", "--inputs must come with --callable, got 3 for a survey"),
    ("audit visits.toml --epsilon 3", "--epsilon must come with --callable, got 3 for a survey"),
    ("audit visits.toml --samples 10", "samples must be at least 100, got 10"),
    ("audit visits.toml --samples 100 --false-alarm nan", "false_alarm must be in (0, 1), got nan"),
    ("audit --callable f:fair", "--callable must come with --inputs of at least 2 and --epsilon"),
    ("audit --callable f:fair --inputs 2 --epsilon nan", "--epsilon must be above 0 and finite, got nan"),
    ("audit --callable f --inputs 2 --epsilon 1", "--callable must be MODULE:FUNCTION, got 'f'"),
    ("audit --callable :fair --inputs 2 --epsilon 1", "--callable must be MODULE:FUNCTION, got ':fair'"),
    ("audit --callable .f:fair --inputs 2 --epsilon 1", "--callable must be MODULE:FUNCTION, got '.f:fair'"),
    ("audit --callable f:number --inputs 2 --epsilon 1", "--callable must name a function, got 'f:number'"),
    ("audit --callable f:raises --inputs 2 --epsilon 1", "must take an input, got KeyError of 0"),
    ("audit --callable f:none --inputs 2 --epsilon 1", "must take an input, got TypeError of 0"),
    ("audit --callable boom:f --inputs 2 --epsilon 1", "--callable boom:f: cannot be imported: no"),
    ("audit --callable broken:f --inputs 2 --epsilon 1", "--callable broken:f: cannot be imported: "),
    # what is asked of folders
    ("export folder --out x.csv", "folder must be the folder of a node or a dashboard, got one without"),
    ("export kafka://k:1/t --out x.csv", "an export must be of the releases in a folder, got a topic"),
    ("delete folder --survey x", "folder must be the folder of a node, got one without a log"),
    ("dead-letters folder", "folder/dead.sqlite must be a node's file of dead letters, got none"),
    ("topic cluster.toml --from folder", "folder/log.sqlite must exist, got none"),
    ("node visits.toml changed.toml --data d", "surveys must differ in id or version, got outpatient-visits"),
    ("node visits.toml --data d --list binary", "binary must be a signed list of surveys"),
    ("node visits.toml --data d --alert-rate 1", "alert rate must lie strictly between 0 and 1, got 1.0"),
    ("node visits.toml --data d --asked other=3", "--asked must name one of outpatient-visits, got other"),
    ("node visits.toml --data d --read-token-file binary", "read token"),
    ("node visits.toml --data d --upload-password-file people.csv", "must be at least 16 printable ASCII"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    texts = {
        "cluster.toml": KAFKA,
        "visits.toml": VISITS,
        "changed.toml": VISITS.replace("epsilon = 3", "epsilon = 2"),
        "other.toml": VISITS.replace('id = "outpatient-visits"', 'id = "other"'),
        "f.py": FUNCTIONS,
        "boom.py": "raise ValueError('no')\n",
        "broken.py": "def f(:\n",
        **{f"c-{name}.toml": f"{KAFKA}{text}\n" for name, text in CLUSTERS.items()},
        **{f"n-{name}.toml": f"{text}\n" for name, text in NODES.items()},
    }
    assert texts["changed.toml"] != VISITS != texts["other.toml"]
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, data in {**TABLES, "binary": bytes(range(128, 256))}.items():
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()
    (folder / "two").mkdir()
    for name in ("visits.toml", "changed.toml"):
        (folder / "two" / name).write_text(texts[name], encoding="utf-8")
    return folder


@pytest.mark.parametrize(("line", "said"), DOORS, ids=[line for line, _ in DOORS])
def test_a_wrong_input_is_one_line_that_names_it(line, said, files, monkeypatch, capsys) -> None:
    monkeypatch.chdir(files)
    if "key.pem" in line and not Path("key.pem").exists():
        assert main(["survey", "keygen", "--out", "key.pem"]) == 0
        capsys.readouterr()
    assert main(shlex.split(line.replace("URL", "http://127.0.0.1:9"))) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("hubbub: ") and said in err


def test_a_page_that_cannot_be_written_is_said_after_the_rehearsal(files, monkeypatch, capsys) -> None:
    monkeypatch.chdir(files)
    assert main(["survey", "rehearse", "visits.toml", "--value", "visits=3", "--page", "folder"]) == 1
    assert capsys.readouterr().err == "hubbub: folder: cannot be written: Is a directory\n"


def test_enough_doors_are_tried() -> None:
    assert len(DOORS) >= 100 and len({line for line, _ in DOORS}) == len(DOORS)
    assert {line.split()[0] for line, _ in DOORS} >= {
        "aggregator", "agent", "audit", "collector", "config", "dashboard", "dead-letters", "delete",
        "export", "issuer", "node", "replay", "simulate", "survey", "topic",
    }  # fmt: skip
