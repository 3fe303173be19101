"""Wrong survey files are refused with file, key, rule and value."""

from __future__ import annotations

import re
import time

import pytest
import surveys

from hubbub import HubbubError, Survey, SurveyError

LABELS, VISITS, DISEASES = surveys.LABELS, surveys.VISITS, surveys.DISEASES


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


# (text, key, part of the rule, part of the value)
R2DP = DISEASES.split("[mechanism]")[0] + '[mechanism]\nname = "r2dp"\npoints = 9\n'
WRONG = {
    "unknown key": (changed(LABELS, "epsilon", "epsilom"), "epsilom", "known key", "1.0"),
    "unknown key in a table": (changed(LABELS, "skew", "skwe"), "schedule.skwe", "known key", "5m"),
    "key of another mechanism": (
        LABELS + "boost_epsilon = 1.0",
        "mechanism.boost_epsilon",
        "known key",
        "1.0",
    ),
    "key of another type": (changed(LABELS, "labels", "low = 0\nlabels"), "attribute.low", "known key", "0"),
    "epsilon 0": (changed(LABELS, "epsilon = 1.0", "epsilon = 0"), "epsilon", "finite number from", "0"),
    "epsilon below 0": (changed(LABELS, "epsilon = 1.0", "epsilon = -1.0"), "epsilon", "number", "-1.0"),
    "epsilon nan": (changed(LABELS, "epsilon = 1.0", "epsilon = nan"), "epsilon", "number", "nan"),
    "epsilon inf": (changed(LABELS, "epsilon = 1.0", "epsilon = inf"), "epsilon", "number", "inf"),
    "epsilon too large": (changed(LABELS, "epsilon = 1.0", "epsilon = 41"), "epsilon", "to 40", "41"),
    "epsilon text": (changed(LABELS, "epsilon = 1.0", 'epsilon = "1"'), "epsilon", "number", "'1'"),
    "epsilon bool": (changed(LABELS, "epsilon = 1.0", "epsilon = true"), "epsilon", "number", "true"),
    "epsilon of many digits": (
        changed(LABELS, "epsilon = 1.0", f"epsilon = 1{'0' * 400}"),
        "epsilon",
        "number",
        "bits",
    ),
    "epsilon missing": (changed(LABELS, "epsilon = 1.0", ""), "epsilon", "must be given", "nothing"),
    "boost above epsilon": (
        changed(VISITS, "boost_epsilon = 2.0", "boost_epsilon = 3.5"),
        "mechanism.boost_epsilon",
        "epsilon 3",
        "3.5",
    ),
    "boost below 0": (
        changed(VISITS, "boost_epsilon = 2.0", "boost_epsilon = -0.1"),
        "mechanism.boost_epsilon",
        "from 0",
        "-0.1",
    ),
    "boost missing": (
        changed(VISITS, "boost_epsilon = 2.0", ""),
        "mechanism.boost_epsilon",
        "must be given",
        "nothing",
    ),
    "overlapping categories": (changed(VISITS, "[3, 20]", "[2, 20]"), "category[2].range", "overlap", "'2'"),
    "value twice in one category": (
        changed(VISITS, "values = [0]", "values = [0, 0]"),
        "category[0].values",
        "overlap itself",
        "'0'",
    ),
    "category outside the domain": (
        changed(VISITS, "[3, 20]", "[3, 21]"),
        "category[2].range",
        "domain",
        "21",
    ),
    "value outside the domain": (
        changed(VISITS, "values = [0]", "values = [-1]"),
        "category[0].values",
        "domain",
        "-1",
    ),
    "category of labels": (
        changed(VISITS, "values = [0]", 'values = ["0"]'),
        "category[0].values",
        "integers",
        "'0'",
    ),
    "category with bool": (changed(VISITS, "[0]", "[false]"), "category[0].values", "integers", "false"),
    "gap": (changed(VISITS, "[3, 20]", "[4, 20]"), "category", "cover", "3"),
    "range turned round": (changed(VISITS, "[1, 2]", "[2, 1]"), "category[1].range", "lowest", "[2, 1]"),
    "range of three": (changed(VISITS, "[1, 2]", "[1, 2, 3]"), "category[1].range", "lowest", "[1, 2, 3]"),
    "category empty": (changed(VISITS, "[0]", "[]"), "category[0].values", "list", "[]"),
    "category with both": (
        changed(VISITS, "values = [0]", "values = [0]\nrange = [0, 0]"),
        "category[0]",
        "either",
        "",
    ),
    "category with neither": (changed(VISITS, "values = [0]", ""), "category[0]", "either", "name"),
    "category name twice": (changed(VISITS, "1 or 2", "none"), "category[1].name", "its own", "'none'"),
    "category named missing": (
        changed(VISITS, '"none"', '"missing"'),
        "category[0].name",
        "missing",
        "'missing'",
    ),
    "category no table": ("category = 3\n" + LABELS, "category", "[[category]]", "3"),
    "categories missing": (VISITS.split("[[category]]")[0], "category", "must be given", "nothing"),
    "one category to read": (
        LABELS
        + 'reading = "category"\n[[category]]\nname = "all"\nvalues = ["excellent", "good", "fair", "poor"]',
        "category",
        "two or more",
        "1",
    ),
    "range of labels": (
        LABELS + '[[category]]\nname = "all"\nrange = ["excellent", "poor"]',
        "category[0].range",
        "labels",
        "excellent",
    ),
    "K = 1": (changed(VISITS, "high = 20", "high = 0"), "attribute.high", "two values or more", "0"),
    "K = 1 label": (
        changed(LABELS, '["excellent", "good", "fair", "poor"]', '["good"]'),
        "attribute.labels",
        "2 to",
        "['good']",
    ),
    "10^9 values": (
        changed(VISITS, "high = 20", "high = 999999999"),
        "attribute.high",
        "at most 1048575",
        "999999999",
    ),
    "labels twice": (changed(LABELS, '"good"', '"poor"'), "attribute.labels[3]", "differ", "'poor'"),
    "label of control characters": (
        changed(LABELS, '"good"', '"go\\nod"'),
        "attribute.labels[1]",
        "printable",
        "od",
    ),
    "low float": (changed(VISITS, "low = 0", "low = 0.5"), "attribute.low", "integer", "0.5"),
    "low huge": (
        changed(VISITS, "low = 0", f"low = 0x{'f' * 9999}"),
        "attribute.low",
        "integer",
        "39996 bits",
    ),
    "number turned round": (changed(DISEASES, "high = 60.0", "high = -1"), "attribute.high", "above", "-1.0"),
    "number so narrow that its grid has no steps": (
        changed(changed(DISEASES, "high = 60.0", "high = 5e-324"), "half_width = 12.0", "half_width = 0.0"),
        "mechanism",
        "points that differ",
        "boosted",
    ),
    "number whose points are one float": (
        changed(changed(DISEASES, "low = 0.0", "low = 1e16"), "high = 60.0", "high = 10000000000000002"),
        "mechanism",
        "points that differ",
        "boosted",
    ),
    "number nan": (changed(DISEASES, "high = 60.0", "high = nan"), "attribute.high", "finite", "nan"),
    "attribute id": (changed(VISITS, 'id = "visits"', 'id = "../x"'), "attribute.id", "a-z", "'../x'"),
    "attribute kind": (
        changed(VISITS, '"static"', '"stable"'),
        "attribute.kind",
        "static, evolving",
        "'stable'",
    ),
    "attribute type": (changed(VISITS, '"integer"', '"int"'), "attribute.type", "integer", "'int'"),
    "attribute no table": (
        "attribute = 3\n" + LABELS.split("[attribute]")[0],
        "mechanism.name",
        "must be given",
        "",
    ),
    "id": (changed(VISITS, '"outpatient-visits"', '"Outpatient visits"'), "id", "a-z", "'Outpatient visits'"),
    "id missing": (changed(VISITS, 'id = "outpatient-visits"', ""), "id", "must be given", "nothing"),
    "version 0": (changed(VISITS, "version = 1", "version = 0"), "version", "integer from 1", "0"),
    "version text": (changed(VISITS, "version = 1", 'version = "1"'), "version", "integer", "'1'"),
    "title empty": (changed(LABELS, "Self-rated health", ""), "title", "1 to 200", "''"),
    "cohort 0": (changed(VISITS, "cohort = 100", "cohort = 0"), "minimum_cohort", "from 1", "0"),
    "quota 0": ("quota = 0\n" + VISITS, "quota", "from 1", "0"),
    "duration": (changed(VISITS, '"1d"', '"1 day"'), "schedule.round", "duration", "'1 day'"),
    "duration of other digits": (changed(VISITS, '"1d"', '"١d"'), "schedule.round", "duration", "'١d'"),
    "duration number": (changed(VISITS, '"1d"', "86400"), "schedule.round", "duration", "86400"),
    "duration 0": (changed(VISITS, '"1d"', '"0s"'), "schedule.round", "from 1", "'0s'"),
    "duration long": (changed(VISITS, '"1h"', '"91d"'), "schedule.lateness", "from 0", "'91d'"),
    "start without offset": (
        changed(VISITS, "00:00:00Z", "00:00:00"),
        "schedule.start",
        "offset",
        "2026-01-01T00:00:00",
    ),
    "start of a fraction": (changed(VISITS, "00:00:00Z", "00:00:00.5Z"), "schedule.start", "whole", "500000"),
    "start before 1970": (changed(VISITS, "2026-", "1969-"), "schedule.start", "from 0", "-"),
    "rounds 0": (changed(VISITS, "rounds = 2", "rounds = 0"), "schedule.rounds", "from 1", "0"),
    "rounds many": (changed(VISITS, "rounds = 2", "rounds = 100001"), "schedule.rounds", "100000", "100001"),
    "mechanism name": (
        changed(LABELS, '"grr"', '"rappor"'),
        "mechanism.name",
        "auto, bundle, key_value, grr, pbgrr, subset, unary, local_hashing, levels, orbits, neighbourhood, "
        "optimal",
        "'rappor'",
    ),
    "mechanism missing": (LABELS.split("[mechanism]")[0], "mechanism.name", "must be given", "nothing"),
    "grr of numbers": (
        DISEASES.split("[mechanism]")[0] + '[mechanism]\nname = "grr"',
        "mechanism.points",
        "must be given",
        "nothing",
    ),
    "pbgrr of numbers": (
        DISEASES.split("[mechanism]")[0] + '[mechanism]\nname = "pbgrr"\nboost_epsilon = 1.0',
        "mechanism.name",
        "must be auto, grr, subset, unary, local_hashing, boosted, r2dp, square_wave",
        "'pbgrr'",
    ),
    "reading of numbers": (
        DISEASES.split("[mechanism]")[0] + '[mechanism]\nname = "grr"\nreading = "value"\npoints = 9',
        "mechanism.reading",
        "must be absent for an attribute of numbers",
        "'value'",
    ),
    "points of labels": (
        changed(LABELS, 'name = "grr"', 'name = "grr"\npoints = 9'),
        "mechanism.points",
        "must be absent unless",
        "9",
    ),
    "share of an absolute region": (DISEASES + "share = 0.1", "mechanism.share", "must be absent", "0.1"),
    "relative region without a share": (
        changed(DISEASES, '"absolute"', '"relative"'),
        "mechanism.share",
        "must be given for a region that is relative",
        "nothing",
    ),
    "r2dp with a law and a metric": (
        R2DP + 'law = { name = "gamma", shape = 2 }\nmetric = "l1"',
        "mechanism.metric",
        "must be absent where a law is given",
        "'l1'",
    ),
    "r2dp with an unknown metric": (
        R2DP + 'metric = "l3"',
        "mechanism.metric",
        "must be one of usefulness, l1, l2, entropy",
        "'l3'",
    ),
    "r2dp within for another metric": (
        R2DP + 'metric = "l2"\nwithin = 3.0',
        "mechanism.within",
        "must be absent unless a law is searched for it",
        "3.0",
    ),
    "r2dp with an unknown law": (
        R2DP + 'law = { name = "cauchy" }',
        "mechanism.law.name",
        "must be one of two_point, gamma, uniform, truncated_gaussian",
        "'cauchy'",
    ),
    "r2dp with a law that is a name": (
        R2DP + 'law = "gamma"',
        "mechanism.law",
        "must be a table such as",
        "'gamma'",
    ),
    "r2dp law without its shape": (
        R2DP + 'law = { name = "gamma" }',
        "mechanism.law.shape",
        "must be given for gamma",
        "nothing",
    ),
    "r2dp law with another's key": (
        R2DP + 'law = { name = "gamma", shape = 2, mean = 1 }',
        "mechanism.law.mean",
        "must be one of shape for gamma",
        "1",
    ),
    "r2dp law whose ends are reversed": (
        R2DP + 'law = { name = "two_point", slow = 3, fast = 1, share = 0.5 }',
        "mechanism.law.fast",
        "must be a finite number from 3 to",
        "1",
    ),
    "r2dp law of no width": (
        R2DP + 'law = { name = "uniform", slow = 3, fast = 3 }',
        "mechanism.law.fast",
        "must be above mechanism.law.slow 3",
        "3.0",
    ),
    "r2dp law with a share that is none": (
        R2DP + 'law = { name = "two_point", slow = 1, fast = 3, share = 1.5 }',
        "mechanism.law.share",
        "must be a finite number from 0 to 1",
        "1.5",
    ),
    "boosted r2dp without a law": (
        R2DP.replace('"r2dp"', '"boosted"') + 'kernel = "r2dp"',
        "mechanism.law",
        "must be given for the kernel r2dp",
        "nothing",
    ),
    "r2dp without within": (
        DISEASES.split("[mechanism]")[0] + '[mechanism]\nname = "r2dp"\npoints = 9',
        "mechanism.within",
        "must be given",
        "nothing",
    ),
    "auto with a wrong objective": (
        changed(LABELS, 'name = "grr"', 'name = "auto"\nobjective = "median"'),
        "mechanism.objective",
        "must be one of value, category, both, mean, cdf",
        "'median'",
    ),
    "auto for the mean of labels": (
        changed(LABELS, 'name = "grr"', 'name = "auto"\nobjective = "mean"'),
        "mechanism",
        "objective mean must be asked of numbers",
        "'auto'",
    ),
    "neighbourhood without a boost": (
        changed(LABELS, 'name = "grr"', 'name = "neighbourhood"\npairs = []'),
        "mechanism.boost_epsilon",
        "must be given",
        "nothing",
    ),
    "neighbourhood of nothing": (
        changed(LABELS, 'name = "grr"', 'name = "neighbourhood"\nboost_epsilon = 0.5'),
        "mechanism",
        "must have either window or pairs",
        "['boost_epsilon']",
    ),
    "window of labels": (
        changed(LABELS, 'name = "grr"', 'name = "neighbourhood"\nboost_epsilon = 0.5\nwindow = 1'),
        "mechanism.window",
        "must be pairs for an attribute of labels",
        "1",
    ),
    "pair outside the domain": (
        changed(
            LABELS,
            'name = "grr"',
            'name = "neighbourhood"\nboost_epsilon = 0.5\npairs = [["good", "fair"], ["good", "bad"]]',
        ),
        "mechanism.pairs[1]",
        "must hold values of the attribute's domain",
        "['good', 'bad']",
    ),
    "boosted labels": (
        changed(LABELS, 'name = "grr"', 'name = "boosted"\npoints = 4'),
        "attribute.type",
        "number",
        "'label'",
    ),
    "boosted categories": (
        DISEASES + '[[category]]\nname = "a"\nvalues = [1]',
        "category",
        "must not be given",
        "'a'",
    ),
    "points 1": (changed(DISEASES, "points = 31", "points = 1"), "mechanism.points", "from 2", "1"),
    "points many": (
        changed(DISEASES, "points = 31", "points = 100000"),
        "mechanism.points",
        "matrix",
        "100000",
    ),
    "points missing": (changed(DISEASES, "points = 31", ""), "mechanism.points", "must be given", "nothing"),
    "kernel": (
        changed(DISEASES, '"uniform"', '"cauchy"'),
        "mechanism.kernel",
        "laplace, uniform",
        "'cauchy'",
    ),
    "region": (
        changed(DISEASES, '"absolute"', '"square"'),
        "mechanism.region",
        "absolute, relative, fixed",
        "'square'",
    ),
    "half width of a fixed region": (
        changed(DISEASES, '"absolute"', '"fixed"'),
        "mechanism.half_width",
        "absent",
        "12.0",
    ),
    "half width below 0": (
        changed(DISEASES, "half_width = 12.0", "half_width = -1"),
        "mechanism.half_width",
        "from 0",
        "-1",
    ),
    "kernel above epsilon": (DISEASES + "kernel_epsilon = 2.5", "mechanism.kernel_epsilon", "to 2", "2.5"),
    "kernel that hides everything": (
        changed(DISEASES, "half_width = 12.0", "half_width = 60.0\nmargin = 0"),
        "mechanism.margin",
        "known key",
        "0",
    ),
    "boost too small for integers": (
        changed(VISITS, "boost_epsilon = 2.0", "boost_epsilon = 1e-9"),
        "mechanism",
        "compile",
        "'pbgrr'",
    ),
    "not TOML": ("hubbub: yes\n", "", "TOML", "line 1"),
    "key twice": ("version = 1\n" + LABELS, "", "TOML", "line 3"),
    "nesting without end": ("x = " + "[" * 100_000, "", "TOML", ""),
    "number of too many digits": (f"x = {'9' * 5000}", "", "TOML", "digits"),
    "empty": (
        "",
        "id, version, title, epsilon, planned_devices, schedule.start, schedule.round, schedule.rounds, "
        "schedule.lateness, schedule.skew, attribute, mechanism.name",
        "must be given, as in id =",
        "nothing",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_survey_is_refused_with_file_key_rule_and_value(name):
    text, key, rule, value = WRONG[name]
    with pytest.raises(SurveyError) as caught:
        Survey.parse(text, "wrong.toml")
    error = caught.value
    assert (error.file, error.key) == ("wrong.toml", key)
    assert rule in error.rule
    assert value in error.value
    found = "" if error.value == "nothing" else f", got {error.value}"
    assert str(error) == f"wrong.toml{': ' + key if key else ''}: {error.rule}{found}"
    assert len(str(error)) < 600
    assert isinstance(error, ValueError)
    assert isinstance(error, HubbubError)


@pytest.mark.parametrize("text", surveys.ALL.values(), ids=surveys.ALL)
def test_texts_that_the_wrong_ones_are_made_from_are_right(text):
    Survey.parse(text)


def test_file_that_is_not_utf_8_is_refused_with_its_path(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes(LABELS.replace("health", "santé").encode("latin-1"))
    with pytest.raises(SurveyError) as caught:
        Survey.load(path)
    assert caught.value.file == str(path)
    assert "UTF-8" in caught.value.rule
    assert "0xe9" in caught.value.value


@pytest.mark.parametrize("name", ["absent.toml", ".", "zero\0byte"])
def test_file_that_cannot_be_read_is_refused(tmp_path, name):
    with pytest.raises(SurveyError) as caught:
        Survey.load(f"{tmp_path}/{name}")
    assert "readable" in caught.value.rule


def test_endless_file_is_not_read_to_its_end():
    with pytest.raises(SurveyError, match="at most 16777216 bytes"):
        Survey.load("/dev/zero")


def test_survey_loads_from_a_file(tmp_path):
    path = tmp_path / "visits.toml"
    path.write_text(VISITS, encoding="utf-8")
    assert Survey.load(path) == Survey.load(str(path)) == Survey.parse(VISITS)


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 200_000) + " = 1\n",
        "[" + ".".join(["a"] * 200_000) + "]\n",
        ".".join(["a" * 70] * 20_000) + " = 1\n",
        " . ".join(['"a b"'] * 100_000) + " = 1\n",
        "a = {" + ".".join(["b"] * 200_000) + " = 1}\n",
        "".join(f"[{'.'.join(['a'] * i)}]\n" for i in range(1, 2000)),
        "[a" + ".a" * 3000 + "]\n" + "".join(f"x{i}.y = 1\n" for i in range(100_000)),
        "".join(f"[a{i}]\n" for i in range(400_000)),
        "a = [" + "1," * 4_000_000 + "]",
        "".join(f"k{i}" + ".b" * 30 + " = 1\n" for i in range(100_000)),
        'a = ["""x"y"z""", ' + "{a=1}," * 1_000_000 + "]",
        "".join(f"x{i} = {{}}\n" for i in range(600_000)),
    ],
    ids=[
        "key",
        "table",
        "long parts",
        "quoted",
        "inline",
        "nested tables",
        "below a deep table",
        "many tables",
        "a long array",
        "long keys",
        "inline tables behind a string of several lines",
        "many keys",
    ],
)
def test_toml_that_takes_minutes_is_refused_before_it_is_parsed(text: str) -> None:
    """Processor time of this thread; each took 25 s or more, and a longer file its square."""
    begun = time.thread_time()
    with pytest.raises(SurveyError, match=r"must be TOML of modest depth|must have at most"):
        Survey.parse(text)
    assert time.thread_time() - begun < 2.0


def test_strings_and_comments_hold_as_many_signs_as_they_like() -> None:
    signs = "[=,.{" * 200_000
    title = "title = '''Visits '[=,.' \"\"'''"
    lines = [title if line.startswith("title") else line for line in surveys.VISITS.splitlines()]
    survey = Survey.parse(f"# {signs} '\n" + "\n".join(lines))
    assert survey.title == "Visits '[=,.' \"\""


@pytest.mark.parametrize(
    "text", ['a = "' + '\\"' * 300_000, 'a = """' + '\\"' * 300_000, "a = '''" + "''x" * 300_000]
)
def test_strings_without_an_end_are_read_once(text: str) -> None:
    begun = time.thread_time()
    with pytest.raises(SurveyError, match="must be TOML"):
        Survey.parse(text)
    assert time.thread_time() - begun < 2.0


def test_dots_in_names_and_comments_are_no_keys() -> None:
    dots = "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16 ... and a sentence. Another one. " * 20
    survey = Survey.parse(f"# {dots}\n" + surveys.VISITS)
    assert survey == Survey.parse(surveys.VISITS)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-01-01T00:00:00Z", "got 2026-01-01T00:00:00+00:00"),
        ("2026-01-01", "got 2026-01-01"),
        ("10:00:00", "got 10:00:00"),
        ("true", "got true"),
        ("{ a = 1, b = [true] }", "got {a = 1, b = [true]}"),
    ],
)
def test_a_value_is_quoted_as_a_survey_file_writes_it(value: str, said: str) -> None:
    with pytest.raises(SurveyError) as refused:
        Survey.parse(re.sub(r"^epsilon = .*$", f"epsilon = {value}", VISITS, flags=re.MULTILINE))
    assert str(refused.value).endswith(said)


def test_a_type_is_called_by_its_name_in_the_file() -> None:
    text = re.sub(r'^name = "pbgrr"\n.*$', 'name = "square_wave"\npoints = 5', VISITS, flags=re.MULTILINE)
    with pytest.raises(SurveyError, match=r"attribute.type: must be number for square_wave, got 'integer'"):
        Survey.parse(text)
