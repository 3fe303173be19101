"""The description of the read API, OpenAPI 3.1, as JSON types."""

from __future__ import annotations

from typing import Final

from hubbub_aggregator.export import COLUMNS, VIEWS
from hubbub_aggregator.web.openapi.schemas import Schema, reference, schemas
from hubbub_aggregator.web.table_statistics import STATISTICS

API_VERSION: Final = "1.6.0"
"""Grows in the middle with every addition; what breaks readers would get a path of its own, /api/v2."""


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
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> Schema:
    json, csv, octets = "application/json", "text/csv", "application/octet-stream"
    lines = "application/x-ndjson"
    parquet = "application/vnd.apache.parquet"
    view, stage = reference("parameters", "view"), reference("parameters", "stage")
    digest = {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}
    table = {
        "type": "string",
        "description": "Columns: " + "; ".join(f"{column.name}: {column.meaning}" for column in COLUMNS),
    }
    page = [reference("parameters", "limit")]
    after = {
        "name": "after",
        "in": "query",
        "description": "Begin after this survey, a digest.",
        "schema": digest,
    }
    after_round = {
        "name": "after",
        "in": "query",
        "description": "Begin after this round; 0 is before the first.",
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
        reference("schemas", "Change"),
        asked=[
            {
                "name": name,
                "in": "query",
                "required": True,
                "description": text,
                "schema": {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
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
    told = reference("schemas", "Statistics")
    statistics = _get("statistics", "Statistics of a cross table.", json, told, asked=_statistics())
    statistics_csv = _get(
        "statistics_csv", "The same as a table.", csv, {"type": "string"}, asked=_statistics()
    )
    for each in (statistics, statistics_csv):
        each["get"]["responses"]["409"] = _problem("The survey asks for no cross table.")
    survey = [reference("parameters", "survey")]
    round_ = [*survey, reference("parameters", "round")]
    tables = {"parameters": [*survey, view, stage]}
    return {
        "/openapi.json": _get("description", "This description.", json, {"type": "object"}, can_miss=False),
        "/surveys": _get(
            "surveys", "A page of surveys, by id, version and digest.", json, reference("schemas", "Surveys"),
            asked=[*page, after],
        ),
        "/surveys/{survey}": {"parameters": survey}
        | _get("survey", "The facts of one survey.", json, reference("schemas", "Survey")),
        "/surveys/{survey}/change": {"parameters": survey} | changed,
        "/surveys/{survey}/history": {"parameters": survey}
        | _get(
            "history", "Every cell over the releases, or one of them.", json, reference("schemas", "History"),
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
                {
                    "name": "step",
                    "in": "query",
                    "description": "How far a share moves from round to round at most: asks for `band`.",
                    "schema": {"type": "number", "minimum": 0, "maximum": 1},
                },
            ],
        ),
        "/surveys/{survey}/alerts": {"parameters": survey}
        | _get("alerts", "The alerts of the newest releases.", json, reference("schemas", "Alerts")),
        "/surveys/{survey}/rounds": {"parameters": survey}
        | _get(
            "rounds", "A page of a survey's rounds, the oldest first.", json, reference("schemas", "Rounds"),
            asked=[*page, after_round, sealed],
        ),
        "/surveys/{survey}/rounds/{round}": {"parameters": round_}
        | _get(
            "round", "One round: its release, or provisional estimates.", json, reference("schemas", "Round")
        ),
        "/surveys/{survey}/canonical": {"parameters": survey}
        | _get("canonical", "The survey's canonical bytes, as every device has them.", octets, None),
        "/surveys/{survey}/rounds/{round}/counts": {"parameters": round_}
        | _get("counts", "The public counts of a release, whose SHA-256 it states.", octets, None),
        "/surveys/{survey}/rounds/{round}/recounts": {"parameters": round_}
        | _get(
            "recounts",
            "A release counted again without issuers, as often as its operator published it.",
            json,
            reference("schemas", "Recounts"),
        ),
        "/surveys/{survey}/rounds/{round}/statistics": {"parameters": round_} | statistics,
        "/surveys/{survey}/rounds/{round}/statistics.csv": {"parameters": round_} | statistics_csv,
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


def _statistics() -> list[Schema]:
    """Return the parameters of statistics."""
    texts = {
        "of": "The attribute that is asked about.",
        "given": "The attribute of the groups; of a census the one that it counts.",
        "on": "Attributes that explain, for a regression, with commas between.",
        "census": "CSV with a line `reading,share` for every reading of `given`.",
    }
    kind = {"type": "string", "enum": [*STATISTICS], "default": STATISTICS[0]}
    level = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95}
    return [
        {"name": "kind", "in": "query", "description": "What is computed.", "schema": kind},
        {"name": "level", "in": "query", "description": "Coverage of the intervals.", "schema": level},
        *(
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
            for name, text in texts.items()
        ),
    ]


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
        "400": reference("responses", "BadRequest"),
        "401": reference("responses", "Unauthorized"),
    }
    if can_miss:
        answers["404"] = reference("responses", "NotFound")
    found: Schema = {"operationId": name, "summary": summary, "responses": answers}
    if asked:
        found["parameters"] = asked
    return {"get": found}


_ETAG: Final[Schema] = {
    "description": "Names these bytes; a sealed round keeps its tag.",
    "schema": {"type": "string"},
}


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
            "description": "A round's number, from 1; `latest` for the newest release.",
            "schema": {"type": "string", "pattern": "^([1-9][0-9]{0,17}|latest)$"},
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
        "content": {"application/problem+json": {"schema": reference("schemas", "Problem")}},
    }


def _responses() -> Schema:
    return {
        "BadRequest": _problem("A parameter is not what it must be."),
        "Unauthorized": _problem("The server wants a token, and this is none or another."),
        "NotFound": _problem("There is no such survey or round."),
    }
