"""docs/extending.md is followed as it stands: its lines and files make a mechanism and a form that pass."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = ROOT / "docs" / "examples" / "extending"
LINE = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Tests that find what is added by themselves, so that following the page does not touch them.
FOLLOWING = ("tests/core/wire/test_golden.py", "tests/core/survey/test_forms.py")
HOUSES = ("core", "authoring")
FOLLOWED = """
import hashlib, sys
import numpy as np
from hubbub_authoring.files.toml import mechanism_keys
from hubbub_authoring.design.comparison import compare
from hubbub_authoring.mechanisms.workload import Workload
from hubbub_authoring.mechanisms import nearness
from hubbub.survey import Survey
assert mechanism_keys()["nearness"] == ("reach",)
text = open(sys.argv[1], encoding="utf-8").read()
survey = Survey.parse(text)
assert Survey.from_canonical(survey.canonical) == survey
rows = survey.channel.weights() / survey.channel.total
assert rows[3, 3] > rows[3, 2] > rows[3, 1] > 0.0
# The name is known, a wrong key is not: both are read from the registry.
for wrong, rule in (("reach = 0.5", "reach = 7.0"), ("reach = 0.5", "window = 1")):
    try:
        Survey.parse(text.replace(wrong, rule))
    except Exception as error:
        print(error)
    else:
        raise SystemExit("a wrong key was taken")
workload = Workload.of_survey(survey)
print("designed:", "nearness" in [found.mechanism for found in compare(workload) if not found.refusal])
"""
SUMMED = """
import sys
import numpy as np
from hubbub.survey import Survey
from hubbub_client.surveys.schedule import scheduled_query
text = open(sys.argv[1], encoding="utf-8").read()
survey = Survey.parse(text)
query = scheduled_query(survey, -1, pin_version=0)
assert [key[1] for key in query.keys] == ["first", "second", "third"]
try:
    Survey.parse(text + "of = 1\\n")
except Exception as error:
    print(error)
# A half of the devices has 2 + 0 + 1, a quarter 0 + -1 + 0, a quarter does not know its second number.
chances = np.zeros(survey.channel.inputs)
for share, values in ((0.5, (2, 0, 1)), (0.125, (0, -1, 0)), (0.125, (0, 0, 0)), (0.25, (1, None, 1))):
    chances[survey.input_of(*values)] += share
counts = np.rint(1e12 * survey.channel.expected(chances)).astype(np.int64)
counts[0] += 10**12 - counts.sum()
estimate = survey.estimator()(counts, 10**12)
assert abs(estimate.values[-1] - 0.25) < 1e-6
print(estimate.mean)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Core and authoring with the page's modules and registrations, golden pairs and contract case."""
    folder = tmp_path_factory.mktemp("extended")
    for house in HOUSES:
        shutil.copytree(ROOT / house, folder / house, ignore=shutil.ignore_patterns("__pycache__"))
    line, form_line = LINE.findall(PAGE)
    mechanisms = folder / "authoring" / "hubbub_authoring" / "mechanisms"
    shutil.copy(FILES / "nearness.py", mechanisms)
    registry = (mechanisms / "registry.py").read_text(encoding="utf-8")
    before = '    Registration("boosted",'
    assert registry.count(before) == 1
    (mechanisms / "registry.py").write_text(registry.replace(before, line + before), encoding="utf-8")
    surveys = folder / "core" / "hubbub" / "survey"
    shutil.copy(FILES / "total.py", surveys)
    forms = (surveys / "forms.py").read_text(encoding="utf-8")
    after = '    FormRegistration("score", "hubbub.survey.score"),\n'
    assert forms.count(after) == 1
    (surveys / "forms.py").write_text(forms.replace(after, after + form_line), encoding="utf-8")
    for name in FOLLOWING:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    golden = folder / "tests" / "golden"
    shutil.copytree(ROOT / "tests" / "golden", golden)
    for survey in FILES.glob("survey-*.toml"):
        shutil.copy(survey, golden)
    shutil.copy(FILES / "test_nearness.py", folder)
    made = run(folder, (FILES / "golden_bytes.py").read_text(encoding="utf-8"))
    assert made.returncode == 0, made.stderr
    return folder


def passed_in(copy: Path, file: str, before: str = "") -> list[str]:
    """The names of the tests of a file that passed in the copy; none failed."""
    code = before + (
        f"sys.path.insert(1, {str(ROOT / 'tests' / 'harness')!r})\n"
        "import pytest\n"
        "sys.exit(pytest.main(['-v', '-p', 'no:cacheprovider', '-m', 'not statistical', '-o',"
        f" 'markers=statistical', '--rootdir', {str(copy)!r}, '-c', '/dev/null', {file!r}]))"
    )
    done = run(copy, code)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"::(test_[^:\n]+?) PASSED", done.stdout)


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path[:0] = {[str(copy / house) for house in HOUSES]!r}\n"
    return subprocess.run(
        [sys.executable, "-c", code + arguments[0], *arguments[1:]],
        capture_output=True,
        text=True,
        cwd=copy,
        check=False,
    )


def test_the_page_shows_every_file_and_no_other() -> None:
    shown = re.findall(r"^```{literalinclude} examples/extending/(\S+)$", PAGE, re.MULTILINE)
    linked = re.findall(r"\]\(examples/extending/(\S+?)\)", PAGE)
    assert {*shown, *linked} == {path.name for path in FILES.iterdir()}


def test_the_page_makes_a_mechanism_that_survey_files_and_the_designer_know(copy: Path) -> None:
    done = run(copy, FOLLOWED, str(copy / "tests" / "golden" / "survey-nearness.toml"))
    assert done.returncode == 0, done.stderr
    too_far, unknown, designed = done.stdout.splitlines()
    assert "mechanism.reach: must be a finite number from 0.001 to 1" in too_far
    assert "mechanism.window: must be a known key: name, participation, reach" in unknown
    assert designed == "designed: True"


def test_the_page_s_mechanism_keeps_the_contract_of_all(copy: Path) -> None:
    digest = run(
        copy,
        "import hashlib, msgpack\n"
        "from hubbub_authoring.mechanisms.nearness import nearness\n"
        "print(hashlib.sha256(msgpack.packb(nearness(7, epsilon=2.0, reach=0.5).to_spec())).hexdigest())",
    ).stdout.strip()
    case = (copy / "test_nearness.py").read_text(encoding="utf-8")
    assert digest in case
    assert len(passed_in(copy, "test_nearness.py")) >= 18


def test_the_page_s_golden_pairs_are_built_and_held(copy: Path) -> None:
    """Both pairs are read back and compiled to the same bytes; the digests are those that the page states."""
    names = passed_in(copy, FOLLOWING[0])
    for name in ("nearness", "total"):
        assert f"test_stored_survey_file_compiles_to_the_stored_bytes[{name}]" in names
        assert f"test_stored_survey_is_read_and_written_the_same[{name}]" in names
        stored = (copy / "tests" / "golden" / f"survey-{name}.bin").read_bytes()
        assert f"`{hashlib.sha256(stored).digest()[:16].hex()}`" in PAGE
        assert not (ROOT / "tests" / "golden" / f"survey-{name}.bin").exists()


def test_the_page_s_form_keeps_the_contract_of_all(copy: Path) -> None:
    names = passed_in(copy, FOLLOWING[1])
    contract = {name.partition("[")[0] for name in names}
    assert {f"{name}[survey-total]" for name in contract} <= set(names)
    assert len(contract) >= 6


def test_the_page_s_form_is_asked_of_a_device_and_estimated(copy: Path) -> None:
    """The sum of three integers: each attribute bears its loss, and the mean is that of the sums."""
    done = run(copy, SUMMED, str(copy / "tests" / "golden" / "survey-total.toml"))
    assert done.returncode == 0, done.stderr
    wrong, mean = done.stdout.splitlines()
    assert "mechanism.of: must be a known key: name, participation" in wrong
    assert float(mean) == pytest.approx((0.5 * 3 + 0.125 * -1) / 0.75, abs=1e-6)


def test_the_page_s_fact_touches_six_files_and_passes_its_test(tmp_path: Path) -> None:
    """The page's patch is applied to a copy; its own test runs there, on the copy's packages."""
    patch = (FILES / "widest.diff").read_text(encoding="utf-8")
    touched = re.findall(r"^\+\+\+ b/(\S+)$", patch, re.MULTILINE)
    assert len({*touched, "CHANGELOG.md"}) == len(touched) + 1 <= 6
    for folder in ("core", "aggregator"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    applied = subprocess.run(
        ["git", "apply", "--recount", "-C1", "-"],
        input=patch,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert applied.returncode == 0, applied.stderr
    assert "this.widest" in (tmp_path / "aggregator/hubbub_aggregator/web/page/facts.js").read_text()
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'aggregator')!r})\n"
    assert len(passed_in(tmp_path, touched[-1], code)) == 1
