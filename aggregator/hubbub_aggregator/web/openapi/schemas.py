"""The schemas of the read API's documents, which its description names."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from hubbub_aggregator.export import ALWAYS, CROWD

Schema: TypeAlias = dict[str, Any]


def reference(kind: str, name: str) -> Schema:
    """Return a reference to a component of the description."""
    return {"$ref": f"#/components/{kind}/{name}"}


def _ref(name: str) -> Schema:
    return reference("schemas", name)


def _all(schema: Schema, names: str) -> Schema:
    """Return members of one type by their names, which stand in a text."""
    return dict.fromkeys(names.split(), schema)


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
_INTEGER_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}
_NUMBER: Final[Schema] = {"type": "number"}
_NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
_NUMBERS: Final = _list(_NUMBER_OR_NULL)
_TRUTH: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_DIGEST: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_OF: Final[Schema] = {
    "type": "string",
    "enum": ["crowd", "devices"],
    "description": "Whose shares: those of everybody who could have been asked, or of the devices counted.",
}
_CROWD: Final[Schema] = {
    **_NUMBER_OR_NULL,
    "description": "Of everybody who could have been asked, if those who answered are like a random part of "
    "them; the members of the same name without crowd_ are of the devices counted.",
}
_ALWAYS: Final[Schema] = {
    **_NUMBER_OR_NULL,
    "description": "Only while the round is open: of the devices counted so far, holding at every look, "
    "however often.",
}
_NEXT: Final[Schema] = {
    "type": ["string", "null"],
    "description": "The next page, relative to this one's address; null at the end.",
}


def schemas() -> Schema:
    """Return every schema by its name."""
    epsilon = _object(_all(_NUMBER, "declared certified"))
    name = {"id": _TEXT, "version": _COUNT, "digest": _DIGEST, "title": _TEXT}
    period = {"round": _ROUND} | _all(_TIME, "start end") | _all(_TRUTH, "sealed suppressed")
    both = _object(_all(_NUMBERS, "values categories"))
    ranked = _list(_or_null({**_list(_COUNT), "minItems": 2, "maxItems": 2}))
    without = {"without_issuers": _list(_TEXT)}
    beside = _list(_object({**without, "devices": _COUNT, "suppressed": _TRUTH}))
    schedule = {"start": _TIME} | _all(_COUNT, "round_s rounds rotation")
    shuffled = _all(_COUNT, "reports watched_reports") | _all(_NUMBER, "epsilon watched_epsilon delta")
    statistic = _all(_TEXT, "statistic of note") | _all(_or_null(_TEXT), "given group reading")
    statistic |= _all(_NUMBER_OR_NULL, "estimate low high simultaneous_low simultaneous_high p_value")
    cells = _all(_list(_ref("Estimate")), "values categories") | {"mean": _or_null(_ref("Estimate"))}
    lines = _all(_list(_ref("Line")), "values categories")
    changed = _all(_list(_ref("Changed")), "values categories") | {"mean": _or_null(_ref("Changed"))}
    line = _all(_NUMBERS, "estimate low high")
    return {
        "Problem": _object(
            _all(_TEXT, "type title") | {"status": _COUNT, "detail": _TEXT}, _all(_TEXT, "subject rule value")
        ),
        "Survey": _object(
            {
                **name,
                "attributes": _list(_object(_all(_TEXT, "id kind"))),
                "epsilon": epsilon,
                "minimum_cohort": _COUNT,
                "planned_devices": _INTEGER_OR_NULL,
                "schedule": _object(schedule),
                "rounds": _object(_all(_COUNT, "answered sealed") | {"newest": _or_null(_ROUND)}),
            },
            {"quota": _INTEGER_OR_NULL, "step": _COUNT, "table": {"type": "object"}},
        ),
        "Surveys": _object({"surveys": _list(_ref("Survey")), "next": _NEXT}),
        "Rounds": _object(
            {
                "survey": _object(name),
                "rounds": _list(_object(period | _all(_COUNT, "devices as_of"), {"recounts": beside})),
                "next": _NEXT,
            }
        ),
        "Changed": _object(
            _all(_NUMBER_OR_NULL, "estimate low high") | {"differs": _TRUTH},
            {"label": _TEXT} | _all(_NUMBER_OR_NULL, "simultaneous_low simultaneous_high"),
        ),
        "Statistics": _object(
            {
                "survey": _object(name),
                **{"round": _COUNT, "sealed": _TRUTH, "devices": _COUNT, "kind": _TEXT, "of": _TEXT},
                "rows": _list(_object(statistic)),
            }
        ),
        "Change": _object(
            {
                **_all(_object({"digest": _DIGEST, "round": _ROUND}), "before after"),
                "devices": _list(_COUNT),
                "answers": {"type": "string", "enum": ["fresh", "memoised"]},
                **{"of": _OF, "shared": _COUNT, "level": _NUMBER},
                **changed,
            }
        ),
        "Line": _object(
            line,
            {
                "label": _TEXT,
                "trend": _or_null(_NUMBERS),
                "bandwidth": _NUMBER_OR_NULL,
                "band": _object(line),
            },
        ),
        "History": _object(
            {"rounds": _list(_ROUND), "devices": _list(_COUNT), "of": _OF, "smoothed": _TEXT, **lines},
            {"mean": _or_null(_ref("Line")), "so_far": _ref("SoFar")},
        ),
        "SoFar": _object(
            _all(_list(_COUNT), "rounds devices") | lines | {"mean": _or_null(_ref("Line"))},
        ),
        "Alert": _object(
            {
                "kind": {
                    "type": "string",
                    "enum": ["impossible", "jump", "joint", "margin", "issuer", "part"],
                },
                "family": {
                    "type": "string",
                    "enum": ["values", "categories", "total", "mean", "issuers", "parts"],
                },
                "label": {"type": ["string", "null"]},
                **_all(_NUMBER, "statistic threshold rate"),
            },
            _all(_COUNT, "window against"),
        ),
        "Judged": _object(
            {
                **{"round": _ROUND, "devices": _COUNT, "since": _or_null(_ROUND), "judged": _TRUTH},
                "margin": _NUMBER_OR_NULL,
                "alerts": _list(_ref("Alert")),
                "omitted": _object(_all(_COUNT, "impossible jump"), _all(_COUNT, "issuer part")),
            }
        ),
        "Alerts": _object(
            {
                "survey": _object(name),
                **_all(_NUMBER_OR_NULL, "rate margin_share"),
                "rounds": _list(_ref("Judged")),
            }
        ),
        "Estimate": _object(
            _all(_NUMBER_OR_NULL, "estimate standard_error low high"),
            {
                "label": _TEXT,
                "category": {"type": ["string", "null"]},
                "tree_level": {**_COUNT, "description": "Only of a tree of labels: 1 is the coarsest level."},
                **_all(_NUMBER_OR_NULL, "simultaneous_low simultaneous_high"),
                **dict.fromkeys(CROWD, _CROWD),
                **dict.fromkeys(ALWAYS, _ALWAYS),
                "error": {**_NUMBER_OR_NULL, "deprecated": True, "description": "As standard_error."},
            },
        ),
        "Cumulative": _object(
            {"level": _NUMBER}
            | _all(_list(_NUMBER), "points shares errors low high crowd_errors crowd_low crowd_high")
        ),
        "Quantile": _object(_all(_NUMBER, "share estimate low high crowd_low crowd_high")),
        "Accounting": _object(
            _all(_COUNT, "attempts accepted duplicate early late invalid over_quota"),
        ),
        "Issuer": _object(
            {"issuer": _TEXT}
            | _all(_COUNT, "accepted duplicate over_quota")
            | {"output": _or_null(_COUNT)}
            | _all(_NUMBER_OR_NULL, "share others_share p_value")
        ),
        "Round": _object(
            {
                "survey": _object(name),
                **period,
                "as_of": _COUNT,
                "cut": {"type": "object", "additionalProperties": _COUNT},
                "accounting": _ref("Accounting"),
                "epsilon": epsilon,
                "devices": _COUNT,
                "counts": _or_null(_object({"kind": _TEXT, "cells": _COUNT, "sha256": _TEXT})),
                "level": _NUMBER,
                **cells,
                "consistent": both,
            },
            {
                "poison_margin": _or_null(both),
                "enrolment": {"type": ["object", "null"]},
                "issuers": _list(_ref("Issuer")),
                "cumulative": _or_null(_ref("Cumulative")),
                "quantiles": _list(_ref("Quantile")),
                "empirical_bayes": _object({"values": _NUMBERS}),
                "ranks": _object(_all(ranked, "values categories")),
                "effective_sample_size": _object(_all(_NUMBER_OR_NULL, "values categories cumulative")),
                "after_shuffling": _or_null(_object({**shuffled, "assumption": _TEXT})),
                "recounts": beside,
                "parts": _list(_ref("Part")),
            },
        ),
        "Part": _object(
            {"attributes": _list(_TEXT), "reports": _COUNT, "expected": _NUMBER, "p_value": _NUMBER},
            {"tells": {"type": "string", "enum": ["interaction"]}},
        ),
        "Recounts": _object(
            {
                "survey": _object(name),
                "round": _ROUND,
                "recounts": _list({"allOf": [_ref("Round"), _object({"recount": _object(without)})]}),
            }
        ),
    }
