"""The description of the read API, OpenAPI 3.1, as JSON types."""

from __future__ import annotations

from typing import Any, Final

from hubbub_aggregator.export import COLUMNS, VIEWS

API_VERSION: Final = "1.5.0"
"""Grows in the middle with every addition; what breaks readers would get a path of its own, /api/v2."""

Schema = dict[str, Any]


def openapi_document() -> Schema:
    """Return the description, served at /api/v1/openapi.json."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hubbub: surveys, rounds and releases",
            "version": API_VERSION,
            "summary": "Estimates of a population under local differential privacy, and how sure they are.",
            "description": (
                "Round numbers begin at 0. Estimates are raw and unbiased: they may be negative or above 1. "
                "Unknown members may be added to any object within version 1."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{}, {"bearer": []}],
        "paths": _paths(),
        "components": {
            "parameters": _parameters(),
            "responses": _responses(),
            "schemas": _schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> Schema:
    json, csv = "application/json", "text/csv"
    lines = "application/x-ndjson"
    parquet = "application/vnd.apache.parquet"
    view, stage = _ref("parameters", "view"), _ref("parameters", "stage")
    digest = {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}
    table = {
        "type": "string",
        "description": "Columns: " + "; ".join(f"{column.name}: {column.meaning}" for column in COLUMNS),
    }
    page = [_ref("parameters", "limit")]
    after = {
        "name": "after",
        "in": "query",
        "description": "Begin after this survey, a digest.",
        "schema": digest,
    }
    after_round = {
        "name": "after",
        "in": "query",
        "description": "Begin after this round.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
    }
    sealed = {
        "name": "sealed",
        "in": "query",
        "description": "Releases alone, or open rounds alone.",
        "schema": {"type": "string", "enum": ["true", "false"]},
    }
    parquet_answer = _get("releases_parquet", "All releases of a survey in a Parquet file.", parquet, None)
    parquet_answer["get"]["responses"]["501"] = {
        **_problem("The server has no DuckDB to write Parquet with."),
    }
    changed = _get(
        "change",
        "The change between two rounds, of one survey or of two, with intervals.",
        json,
        _ref("schemas", "Change"),
        asked=[
            {
                "name": name,
                "in": "query",
                "required": True,
                "description": text,
                "schema": after_round["schema"],
            }
            for name, text in (("before", "The earlier round."), ("after", "The later round."))
        ]
        + [
            {
                "name": "from",
                "in": "query",
                "description": "The earlier round's survey, digest or id, where it is another one.",
                "schema": {"type": "string", "minLength": 1},
            },
            stage,
        ],
    )
    changed["get"]["responses"]["409"] = _problem("The two cannot be compared; why is said.")
    survey = [_ref("parameters", "survey")]
    round_ = [*survey, _ref("parameters", "round")]
    tables = {"parameters": [*survey, view, stage]}
    return {
        "/openapi.json": _get("description", "This description.", json, {"type": "object"}, can_miss=False),
        "/surveys": _get(
            "surveys", "A page of surveys, by id, version and digest.", json, _ref("schemas", "Surveys"),
            asked=[*page, after],
        ),
        "/surveys/{survey}": {"parameters": survey}
        | _get("survey", "The facts of one survey.", json, _ref("schemas", "Survey")),
        "/surveys/{survey}/change": {"parameters": survey} | changed,
        "/surveys/{survey}/history": {"parameters": survey}
        | _get(
            "history", "Every cell over the releases, or one of them.", json, _ref("schemas", "History"),
            asked=[
                {
                    "name": "kind",
                    "in": "query",
                    "description": "Values, categories or the mean alone.",
                    "schema": {"type": "string", "enum": ["value", "category", "mean"]},
                },
                {
                    "name": "label",
                    "in": "query",
                    "description": "The value or category of this label alone; needs `kind`.",
                    "schema": {"type": "string"},
                },
            ],
        ),
        "/surveys/{survey}/alerts": {"parameters": survey}
        | _get("alerts", "The alerts of the newest releases.", json, _ref("schemas", "Alerts")),
        "/surveys/{survey}/rounds": {"parameters": survey}
        | _get(
            "rounds", "A page of a survey's rounds, the oldest first.", json, _ref("schemas", "Rounds"),
            asked=[*page, after_round, sealed],
        ),
        "/surveys/{survey}/rounds/{round}": {"parameters": round_}
        | _get(
            "round", "One round: its release, or provisional estimates.", json, _ref("schemas", "Round")
        ),
        "/surveys/{survey}/rounds/{round}.csv": {"parameters": [*round_, view]}
        | _get("round_csv", "One round as a tidy table.", csv, table),
        "/surveys/{survey}/rounds/{round}.ndjson": {"parameters": [*round_, view]}
        | _get("round_ndjson", "The same table, a JSON object per line.", lines, table),
        "/surveys/{survey}/releases.ndjson": tables
        | _get("releases_ndjson", "The same table, a JSON object per line.", lines, table),
        "/surveys/{survey}/releases.csv": tables
        | _get("releases_csv", "All releases of a survey as one tidy table.", csv, table),
        "/surveys/{survey}/releases.parquet": tables | parquet_answer,
    }  # fmt: skip


def _get(
    name: str,
    summary: str,
    media_type: str,
    schema: Schema | None,
    *,
    can_miss: bool = True,
    asked: list[Schema] | None = None,
) -> Schema:
    content: Schema = {media_type: {} if schema is None else {"schema": schema}}
    answers: Schema = {
        "200": {"description": summary, "headers": {"ETag": _ETAG}, "content": content},
        "304": {"description": "The reader has it already (If-None-Match)."},
        "400": _ref("responses", "BadRequest"),
        "401": _ref("responses", "Unauthorized"),
    }
    if can_miss:
        answers["404"] = _ref("responses", "NotFound")
    found: Schema = {"operationId": name, "summary": summary, "responses": answers}
    if asked:
        found["parameters"] = asked
    return {"get": found}


_ETAG: Final[Schema] = {
    "description": "Names these bytes; a sealed round keeps its tag.",
    "schema": {"type": "string"},
}


def _ref(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def _parameters() -> Schema:
    return {
        "survey": {
            "name": "survey",
            "in": "path",
            "required": True,
            "description": "A survey's digest, 32 hexadecimal digits; or its id, for its newest version.",
            "schema": {"type": "string", "minLength": 1},
        },
        "round": {
            "name": "round",
            "in": "path",
            "required": True,
            "description": "A round's number, from 0; `latest` for the newest release.",
            "schema": {"type": "string", "pattern": "^([0-9]{1,18}|latest)$"},
        },
        "limit": {
            "name": "limit",
            "in": "query",
            "description": "Most entries of the page.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        },
        "view": {
            "name": "view",
            "in": "query",
            "description": "Raw estimates, the consistent view, empirical Bayes, or all of them.",
            "schema": {"type": "string", "enum": [*VIEWS, "all"], "default": "all"},
        },
        "stage": {
            "name": "stage",
            "in": "query",
            "description": "Releases alone, or open rounds, too.",
            "schema": {"type": "string", "enum": ["sealed", "all"], "default": "sealed"},
        },
    }


def _problem(description: str) -> Schema:
    return {
        "description": description,
        "content": {"application/problem+json": {"schema": _ref("schemas", "Problem")}},
    }


def _responses() -> Schema:
    return {
        "BadRequest": _problem("A parameter is not what it must be."),
        "Unauthorized": _problem("The server wants a token, and this is none or another."),
        "NotFound": _problem("There is no such survey or round."),
    }


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    """Return the schema of an object; what it does not name may come with a later version."""
    return {"type": "object", "required": list(required), "properties": required | (optional or {})}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_NUMBER: Final[Schema] = {"type": "number"}
_NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
_TRUTH: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_DIGEST: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_SHUFFLED: Final[Schema] = {
    **dict.fromkeys(("reports", "watched_reports"), _COUNT),
    **dict.fromkeys(("epsilon", "watched_epsilon", "delta"), _NUMBER), "assumption": _TEXT,
}  # fmt: skip
_NEXT: Final[Schema] = {
    "type": ["string", "null"],
    "description": "The next page, relative to this one's address; null at the end.",
}


def _schemas() -> Schema:
    epsilon = _object({"declared": _NUMBER, "certified": _NUMBER})
    name = {"id": _TEXT, "version": _COUNT, "digest": _DIGEST, "title": _TEXT}
    period = {"round": _COUNT, "start": _TIME, "end": _TIME, "sealed": _TRUTH, "suppressed": _TRUTH}
    numbers = _list(_NUMBER_OR_NULL)
    both = _object({"values": numbers, "categories": numbers})
    ranked = _list(_or_null({**_list(_COUNT), "minItems": 2, "maxItems": 2}))
    schedule = {"start": _TIME, "round_s": _COUNT, "rounds": _COUNT}
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
                "rounds": _object({"answered": _COUNT, "sealed": _COUNT, "newest": _or_null(_COUNT)}),
            },
            {"quota": {"type": ["integer", "null"]}},
        ),
        "Surveys": _object({"surveys": _list(_ref("schemas", "Survey")), "next": _NEXT}),
        "Rounds": _object(
            {
                "survey": _object(name),
                "rounds": _list(_object({**period, "devices": _COUNT, "as_of": _COUNT})),
                "next": _NEXT,
            }
        ),
        "Changed": _object(
            {"estimate": _NUMBER_OR_NULL, "low": _NUMBER_OR_NULL, "high": _NUMBER_OR_NULL, "differs": _TRUTH},
            {"label": _TEXT, "simultaneous_low": _NUMBER_OR_NULL, "simultaneous_high": _NUMBER_OR_NULL},
        ),
        "Change": _object(
            {
                "before": _object({"digest": _DIGEST, "round": _COUNT}),
                "after": _object({"digest": _DIGEST, "round": _COUNT}),
                "devices": _list(_COUNT),
                "answers": {"type": "string", "enum": ["fresh", "memoised"]},
                "shared": _COUNT,
                "level": _NUMBER,
                "values": _list(_ref("schemas", "Changed")),
                "categories": _list(_ref("schemas", "Changed")),
                "mean": _or_null(_ref("schemas", "Changed")),
            }
        ),
        "Line": _object(
            {"estimate": numbers, "low": numbers, "high": numbers},
            {"label": _TEXT, "trend": _or_null(numbers), "bandwidth": _NUMBER_OR_NULL},
        ),
        "History": _object(
            {
                "rounds": _list(_COUNT),
                "devices": _list(_COUNT),
                "smoothed": _TEXT,
                "values": _list(_ref("schemas", "Line")),
                "categories": _list(_ref("schemas", "Line")),
            },
            {"mean": _or_null(_ref("schemas", "Line"))},
        ),
        "Alert": _object(
            {
                "kind": {"type": "string", "enum": ["impossible", "jump", "joint", "margin", "issuer"]},
                "family": {"type": "string", "enum": ["values", "categories", "total", "mean", "issuers"]},
                "label": {"type": ["string", "null"]},
                "statistic": _NUMBER,
                "threshold": _NUMBER,
                "rate": _NUMBER,
            }
        ),
        "Judged": _object(
            {
                "round": _COUNT,
                "devices": _COUNT,
                "since": _or_null(_COUNT),
                "judged": _TRUTH,
                "margin": _NUMBER_OR_NULL,
                "alerts": _list(_ref("schemas", "Alert")),
                "omitted": _object({"impossible": _COUNT, "jump": _COUNT}, {"issuer": _COUNT}),
            }
        ),
        "Alerts": _object(
            {
                "survey": _object(name),
                "rate": _NUMBER_OR_NULL,
                "margin_share": _NUMBER_OR_NULL,
                "rounds": _list(_ref("schemas", "Judged")),
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
                "accounting": _ref("schemas", "Accounting"),
                "epsilon": epsilon,
                "devices": _COUNT,
                "level": _NUMBER,
                "values": _list(_ref("schemas", "Estimate")),
                "categories": _list(_ref("schemas", "Estimate")),
                "mean": _or_null(_ref("schemas", "Estimate")),
                "consistent": both,
            },
            {
                "poison_margin": _or_null(both),
                "enrolment": {"type": ["object", "null"]},
                "issuers": _list(_ref("schemas", "Issuer")),
                "cumulative": _or_null(_ref("schemas", "Cumulative")),
                "quantiles": _list(_ref("schemas", "Quantile")),
                "empirical_bayes": _object({"values": numbers}),
                "ranks": _object({"values": ranked, "categories": ranked}),
                "effective_sample_size": _NUMBER_OR_NULL,
                "after_shuffling": _or_null(_object(_SHUFFLED)),
            },
        ),
    }
