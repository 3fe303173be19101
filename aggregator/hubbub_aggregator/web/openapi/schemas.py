"""The schemas of the read API's documents, which its description names."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]


def reference(kind: str, name: str) -> Schema:
    """Return a reference to a component of the description."""
    return {"$ref": f"#/components/{kind}/{name}"}


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    """Return the schema of an object; what it does not name may come with a later version."""
    return {"type": "object", "required": list(required), "properties": required | (optional or {})}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_ROUND: Final[Schema] = {"type": "integer", "minimum": 1}
_NUMBER: Final[Schema] = {"type": "number"}
_NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
_TRUTH: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_DIGEST: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_OF: Final[Schema] = {
    "type": "string",
    "enum": ["crowd", "devices"],
    "description": "Whose shares: those of everybody who could have been asked, or of the devices counted.",
}
_CROWD_KEYS: Final = (
    *("crowd_error", "crowd_low", "crowd_high"),
    *("crowd_simultaneous_low", "crowd_simultaneous_high"),
)
_CROWD: Final = (
    "Of everybody who could have been asked, if those who answered are like a random part of them; the "
    "members of the same name without crowd_ are of the devices counted."
)
_ALWAYS_KEYS: Final = (
    *("always_low", "always_high"),
    *("always_simultaneous_low", "always_simultaneous_high"),
)
_ALWAYS: Final = (
    "Only while the round is open: of the devices counted so far, holding at every look, however often."
)
_SHUFFLED: Final[Schema] = {
    **dict.fromkeys(("reports", "watched_reports"), _COUNT),
    **dict.fromkeys(("epsilon", "watched_epsilon", "delta"), _NUMBER), "assumption": _TEXT,
}  # fmt: skip
_SIZED: Final = ("values", "categories", "cumulative")
_NEXT: Final[Schema] = {
    "type": ["string", "null"],
    "description": "The next page, relative to this one's address; null at the end.",
}


def schemas() -> Schema:
    """Return every schema by its name."""
    epsilon = _object({"declared": _NUMBER, "certified": _NUMBER})
    name = {"id": _TEXT, "version": _COUNT, "digest": _DIGEST, "title": _TEXT}
    period = {"round": _ROUND, "start": _TIME, "end": _TIME, "sealed": _TRUTH, "suppressed": _TRUTH}
    numbers = _list(_NUMBER_OR_NULL)
    both = _object({"values": numbers, "categories": numbers})
    ranked = _list(_or_null({**_list(_COUNT), "minItems": 2, "maxItems": 2}))
    without = {"without_issuers": _list(_TEXT)}
    beside = _list(_object({**without, "devices": _COUNT, "suppressed": _TRUTH}))
    schedule = {"start": _TIME, "round_s": _COUNT, "rounds": _COUNT, "rotation": _COUNT}
    return {
        "Problem": _object(
            {"type": _TEXT, "title": _TEXT, "status": _COUNT, "detail": _TEXT},
            {"subject": _TEXT, "rule": _TEXT, "value": _TEXT},
        ),
        "Survey": _object(
            {
                **name,
                "attributes": _list(_object({"id": _TEXT, "kind": _TEXT})),
                "epsilon": epsilon,
                "minimum_cohort": _COUNT,
                "planned_devices": {"type": ["integer", "null"]},
                "schedule": _object(schedule),
                "rounds": _object({"answered": _COUNT, "sealed": _COUNT, "newest": _or_null(_ROUND)}),
            },
            {"quota": {"type": ["integer", "null"]}, "step": _COUNT, "table": {"type": "object"}},
        ),
        "Surveys": _object({"surveys": _list(reference("schemas", "Survey")), "next": _NEXT}),
        "Rounds": _object(
            {
                "survey": _object(name),
                "rounds": _list(
                    _object({**period, "devices": _COUNT, "as_of": _COUNT}, {"recounts": beside})
                ),
                "next": _NEXT,
            }
        ),
        "Changed": _object(
            {"estimate": _NUMBER_OR_NULL, "low": _NUMBER_OR_NULL, "high": _NUMBER_OR_NULL, "differs": _TRUTH},
            {"label": _TEXT, "simultaneous_low": _NUMBER_OR_NULL, "simultaneous_high": _NUMBER_OR_NULL},
        ),
        "Statistics": _object(
            {
                "survey": _object(name),
                "round": _COUNT,
                "sealed": _TRUTH,
                "devices": _COUNT,
                "kind": _TEXT,
                "of": _TEXT,
                "rows": _list(
                    _object(
                        {
                            **dict.fromkeys(("statistic", "of", "note"), _TEXT),
                            **dict.fromkeys(("given", "group", "reading"), _or_null(_TEXT)),
                            **dict.fromkeys(("estimate", "low", "high", "p_value"), _NUMBER_OR_NULL),
                        }
                    )
                ),
            }
        ),
        "Change": _object(
            {
                "before": _object({"digest": _DIGEST, "round": _ROUND}),
                "after": _object({"digest": _DIGEST, "round": _ROUND}),
                "devices": _list(_COUNT),
                "answers": {"type": "string", "enum": ["fresh", "memoised"]},
                "of": _OF,
                "shared": _COUNT,
                "level": _NUMBER,
                "values": _list(reference("schemas", "Changed")),
                "categories": _list(reference("schemas", "Changed")),
                "mean": _or_null(reference("schemas", "Changed")),
            }
        ),
        "Line": _object(
            {"estimate": numbers, "low": numbers, "high": numbers},
            {
                "label": _TEXT,
                "trend": _or_null(numbers),
                "bandwidth": _NUMBER_OR_NULL,
                "band": _object({"estimate": numbers, "low": numbers, "high": numbers}),
            },
        ),
        "History": _object(
            {
                "rounds": _list(_ROUND),
                "devices": _list(_COUNT),
                "of": _OF,
                "smoothed": _TEXT,
                "values": _list(reference("schemas", "Line")),
                "categories": _list(reference("schemas", "Line")),
            },
            {"mean": _or_null(reference("schemas", "Line")), "so_far": reference("schemas", "SoFar")},
        ),
        "SoFar": _object(
            {
                "rounds": _list(_COUNT),
                "devices": _list(_COUNT),
                "values": _list(reference("schemas", "Line")),
                "categories": _list(reference("schemas", "Line")),
                "mean": _or_null(reference("schemas", "Line")),
            }
        ),
        "Alert": _object(
            {
                "kind": {"type": "string", "enum": ["impossible", "jump", "joint", "margin", "issuer"]},
                "family": {"type": "string", "enum": ["values", "categories", "total", "mean", "issuers"]},
                "label": {"type": ["string", "null"]},
                "statistic": _NUMBER,
                "threshold": _NUMBER,
                "rate": _NUMBER,
            },
            {"window": _COUNT, "against": _COUNT},
        ),
        "Judged": _object(
            {
                "round": _ROUND,
                "devices": _COUNT,
                "since": _or_null(_ROUND),
                "judged": _TRUTH,
                "margin": _NUMBER_OR_NULL,
                "alerts": _list(reference("schemas", "Alert")),
                "omitted": _object({"impossible": _COUNT, "jump": _COUNT}, {"issuer": _COUNT}),
            }
        ),
        "Alerts": _object(
            {
                "survey": _object(name),
                "rate": _NUMBER_OR_NULL,
                "margin_share": _NUMBER_OR_NULL,
                "rounds": _list(reference("schemas", "Judged")),
            }
        ),
        "Estimate": _object(
            {
                "estimate": _NUMBER_OR_NULL,
                "standard_error": _NUMBER_OR_NULL,
                "low": _NUMBER_OR_NULL,
                "high": _NUMBER_OR_NULL,
            },
            {
                "label": _TEXT,
                "category": {"type": ["string", "null"]},
                "simultaneous_low": _NUMBER_OR_NULL,
                "simultaneous_high": _NUMBER_OR_NULL,
                **{name: {**_NUMBER_OR_NULL, "description": _CROWD} for name in _CROWD_KEYS},
                **{name: {**_NUMBER_OR_NULL, "description": _ALWAYS} for name in _ALWAYS_KEYS},
                "error": {**_NUMBER_OR_NULL, "deprecated": True, "description": "As standard_error."},
            },
        ),
        "Cumulative": _object(
            {"level": _NUMBER} | dict.fromkeys(("points", "shares", "errors", "low", "high"), _list(_NUMBER))
        ),
        "Quantile": _object(dict.fromkeys(("share", "estimate", "low", "high"), _NUMBER)),
        "Accounting": _object(
            dict.fromkeys(
                ("attempts", "accepted", "duplicate", "early", "late", "invalid", "over_quota"), _COUNT
            )
        ),
        "Issuer": _object(
            {"issuer": _TEXT}
            | dict.fromkeys(("accepted", "duplicate", "over_quota"), _COUNT)
            | {"output": _or_null(_COUNT)}
            | dict.fromkeys(("share", "others_share", "p_value"), _NUMBER_OR_NULL)
        ),
        "Round": _object(
            {
                "survey": _object(name),
                **period,
                "as_of": _COUNT,
                "cut": {"type": "object", "additionalProperties": _COUNT},
                "accounting": reference("schemas", "Accounting"),
                "epsilon": epsilon,
                "devices": _COUNT,
                "counts": _or_null(_object({"kind": _TEXT, "cells": _COUNT, "sha256": _TEXT})),
                "level": _NUMBER,
                "values": _list(reference("schemas", "Estimate")),
                "categories": _list(reference("schemas", "Estimate")),
                "mean": _or_null(reference("schemas", "Estimate")),
                "consistent": both,
            },
            {
                "poison_margin": _or_null(both),
                "enrolment": {"type": ["object", "null"]},
                "issuers": _list(reference("schemas", "Issuer")),
                "cumulative": _or_null(reference("schemas", "Cumulative")),
                "quantiles": _list(reference("schemas", "Quantile")),
                "empirical_bayes": _object({"values": numbers}),
                "ranks": _object({"values": ranked, "categories": ranked}),
                "effective_sample_size": _object(dict.fromkeys(_SIZED, _NUMBER_OR_NULL)),
                "after_shuffling": _or_null(_object(_SHUFFLED)),
                "recounts": beside,
            },
        ),
        "Recounts": _object(
            {
                "survey": _object(name),
                "round": _ROUND,
                "recounts": _list(
                    {"allOf": [reference("schemas", "Round"), _object({"recount": _object(without)})]}
                ),
            }
        ),
    }
