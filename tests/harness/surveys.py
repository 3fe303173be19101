"""Small surveys for tests: labels by GRR, an integer by PB-GRR (unequal categories), a boosted number.

All start at 2026-01-01T00:00:00Z (START_S); build others from these texts with `str.replace`, and small ones
of one attribute by randomised response with `small`.
"""

from __future__ import annotations

from typing import Final

START_S: Final = 1767225600  # 2026-01-01T00:00:00Z

LABELS: Final = """\
id = "self-rated-health"
version = 1
title = "Self-rated health"
epsilon = 1.0
minimum_cohort = 100
planned_devices = 5000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 3
lateness = "1h"
skew = "5m"

[attribute]
id = "health"
kind = "evolving"
type = "label"
labels = ["excellent", "good", "fair", "poor"]

[mechanism]
name = "grr"
"""

SETS: Final = """\
id = "apps"
version = 1
title = "Which apps are installed"
epsilon = 1.0
minimum_cohort = 100
planned_devices = 100000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 2
lateness = "1h"
skew = "5m"

[attribute]
id = "apps"
kind = "static"
type = "set"
labels = ["mail", "maps", "music", "news", "notes", "photos"]

[mechanism]
name = "set"
most = 3
"""

MINUTES: Final = """\
id = "minutes"
version = 1
title = "Minutes of navigation"
epsilon = 1.0
minimum_cohort = 100
planned_devices = 20000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 2
lateness = "1h"
skew = "5m"

[attribute]
id = "minutes"
kind = "static"
type = "number"
low = 0.0
high = 600.0
absent = true

[mechanism]
name = "key_value"
share = 0.1
"""

VISITS: Final = """\
id = "outpatient-visits"
version = 1
title = "Visits to a doctor in a year"
epsilon = 3.0
minimum_cohort = 100
planned_devices = 20000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 2
lateness = "1h"
skew = "5m"

[attribute]
id = "visits"
kind = "static"
type = "integer"
low = 0
high = 20

[mechanism]
name = "pbgrr"
boost_epsilon = 2.0

[[category]]
name = "none"
values = [0]

[[category]]
name = "1 or 2"
range = [1, 2]

[[category]]
name = "more than 2"
range = [3, 20]
"""

DISEASES: Final = """\
id = "chronic-diseases"
version = 1
title = "Index of chronic diseases"
epsilon = 2.0
minimum_cohort = 100
planned_devices = 20000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 1
lateness = "1h"
skew = "5m"

[attribute]
id = "diseases"
kind = "static"
type = "number"
low = 0.0
high = 60.0

[mechanism]
name = "boosted"
kernel = "uniform"
region = "absolute"
half_width = 12.0
points = 31
"""

AGE_BY_SEX: Final = """\
id = "age-by-sex"
version = 1
title = "Age by sex"
epsilon = 2.0
minimum_cohort = 100
planned_devices = 20000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 2
lateness = "1h"
skew = "5m"

[[attribute]]
id = "age"
kind = "static"
type = "integer"
low = 10
high = 19

[[attribute.category]]
name = "child"
range = [10, 13]

[[attribute.category]]
name = "youth"
values = [14, 15, 16, 17, 18, 19]

[[attribute]]
id = "sex"
kind = "static"
type = "label"
labels = ["f", "m"]

[mechanism]
name = "grr"
"""
"""Two static attributes at once, the first by category: 3 x 3 inputs, missing in each included."""

ACTIVITY: Final = """\
id = "activity"
version = 1
title = "Activity score"
epsilon = 1.0
minimum_cohort = 100
planned_devices = 20000

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 2
lateness = "1h"
skew = "5m"

[[attribute]]
id = "weight"
kind = "static"
type = "number"
low = 20.0
high = 120.0
coefficient = -0.01
default = 70.0

[[attribute]]
id = "age"
kind = "static"
type = "integer"
low = 10
high = 19
coefficient = 0.05
default = 15

[mechanism]
name = "regression"
score = "logistic"
intercept = 0.5
"""
"""A logistic score of two static numbers, not in the order of their ids."""


def small(
    survey_id: str,
    domain: str,
    *,
    title: str = "A question",
    epsilon: float = 1.0,
    attribute: str = "",
    kind: str = "evolving",
    cohort: int = 2,
    devices: int = 100,
    rounds: int = 3,
    rotation: int = 1,
) -> str:
    """Return the text of a survey about one attribute, of days, by randomised response.

    Args:
        survey_id: Its id.
        domain: The attribute's type and domain, as TOML lines.
        title: Its title.
        epsilon: Of a report.
        attribute: The attribute's id; the survey's if empty.
        kind: The attribute's kind.
        cohort: The minimum cohort.
        devices: Planned devices.
        rounds: How many rounds.
        rotation: Rounds of a cycle, of which a device answers one.
    """
    rotates = f"\nrotation = {rotation}" if rotation > 1 else ""
    return f"""\
id = "{survey_id}"
version = 1
title = "{title}"
epsilon = {epsilon}
minimum_cohort = {cohort}
planned_devices = {devices}
[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = {rounds}{rotates}
lateness = "1h"
skew = "5m"
[attribute]
id = "{attribute or survey_id}"
kind = "{kind}"
{domain}
[mechanism]
name = "grr"
"""


ALL: Final = {"labels": LABELS, "visits": VISITS, "diseases": DISEASES}
