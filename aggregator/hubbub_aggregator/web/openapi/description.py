"""The description of the read API, OpenAPI 3.1, as JSON types."""

from __future__ import annotations

from typing import Final, TypeAlias

from hubbub_aggregator.export import COLUMNS, VIEWS
from hubbub_aggregator.web.openapi.schemas import Schema, reference, schemas
from hubbub_aggregator.web.table_statistics import STATISTICS

API_VERSION: Final = "1.6.0"
"""Grows in the middle with every addition; what breaks readers would get a path of its own, /api/v2."""

_Body: TypeAlias = tuple[str, Schema | None]
_JSON: Final = "application/json"
_TEXT: Final[Schema] = {"type": "string"}
_NAME: Final[Schema] = {"type": "string", "minLength": 1}
_ETAG: Final[Schema] = {"description": "Names these bytes; a sealed round keeps its tag.", "schema": _TEXT}


def openapi_document() -> Schema:
    """Return the description, served at /api/v1/openapi.json."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hubbub: surveys, rounds and releases",
            "version": API_VERSION,
            "summary": "Estimates of a population under local differential privacy, and how sure they are.",
            "description": (
                "Round numbers begin at 1. Estimates are raw and unbiased: they may be negative or above 1. "
                "Unknown members may be added to any object within version 1."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{}, {"bearer": []}],
        "paths": {path: _path(path, *operation) for path, operation in _operations().items()},
        "components": {
            "parameters": _parameters(),
            "responses": {
                "BadRequest": _problem("A parameter is not what it must be."),
                "Unauthorized": _problem("The server wants a token, and this is none or another."),
                "NotFound": _problem("There is no such survey or round."),
            },
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operations() -> dict[str, tuple[str, str, str | _Body]]:
    """Return, for every path, its operation's name, a summary, and the answer's schema or body."""
    columns = "; ".join(f"{column.name}: {column.meaning}" for column in COLUMNS)
    table = {"type": "string", "description": f"Columns: {columns}"}
    csv, lines = ("text/csv", table), ("application/x-ndjson", table)
    octets = "application/octet-stream", None
    parquet = "application/vnd.apache.parquet", None
    one = "/surveys/{survey}"
    round_ = one + "/rounds/{round}"
    return {
        "/openapi.json": ("description", "This description.", (_JSON, {"type": "object"})),
        "/surveys": ("surveys", "A page of surveys, by id, version and digest.", "Surveys"),
        one: ("survey", "The facts of one survey.", "Survey"),
        one + "/change": (
            "change",
            "The change between two rounds, of one survey or of two, with intervals.",
            "Change",
        ),
        one + "/history": ("history", "Every cell over the releases, or one of them.", "History"),
        one + "/so_far.csv": (
            "so_far_csv",
            "All rounds so far, with ends that always hold.",
            ("text/csv", _TEXT),
        ),
        one + "/alerts": ("alerts", "The alerts of the newest releases.", "Alerts"),
        one + "/rounds": ("rounds", "A page of a survey's rounds, the oldest first.", "Rounds"),
        round_: ("round", "One round: its release, or provisional estimates.", "Round"),
        one + "/canonical": ("canonical", "The survey's canonical bytes, as every device has them.", octets),
        round_ + "/counts": ("counts", "The public counts of a release, whose SHA-256 it states.", octets),
        round_ + "/sealed": ("sealed", "The bytes of a release, whose SHA-256 the log has.", octets),
        round_ + "/recounts": (
            "recounts",
            "A release counted again without issuers, as often as its operator published it.",
            "Recounts",
        ),
        round_ + "/statistics": ("statistics", "Statistics of tables.", "Statistics"),
        round_ + "/statistics.csv": ("statistics_csv", "The same as a table.", ("text/csv", _TEXT)),
        round_ + ".csv": ("round_csv", "One round as a tidy table.", csv),
        round_ + ".ndjson": ("round_ndjson", "The same table, a JSON object per line.", lines),
        one + "/releases.ndjson": ("releases_ndjson", "The same table, a JSON object per line.", lines),
        one + "/releases.csv": ("releases_csv", "All releases of a survey as one tidy table.", csv),
        one + "/releases.parquet": (
            "releases_parquet",
            "All releases of a survey in a Parquet file.",
            parquet,
        ),
    }


def _path(path: str, name: str, summary: str, answer: str | _Body) -> Schema:
    """Return the description of a path, with the parameters that its placeholders and its operation have."""
    media_type, schema = (_JSON, reference("schemas", answer)) if isinstance(answer, str) else answer
    answers: Schema = {
        "200": {
            "description": summary,
            "headers": {"ETag": _ETAG},
            "content": {media_type: {} if schema is None else {"schema": schema}},
        },
        "304": {"description": "The reader has it already (If-None-Match)."},
        "400": reference("responses", "BadRequest"),
        "401": reference("responses", "Unauthorized"),
    }
    if name != "description":
        answers["404"] = reference("responses", "NotFound")
    if name in _REFUSALS:
        status, why = _REFUSALS[name]
        answers[status] = _problem(why)
    found: Schema = {"get": {"operationId": name, "summary": summary, "responses": answers}}
    if asked := _asked().get(name):
        found["get"]["parameters"] = asked
    shared = [each for each in ("survey", "round") if f"{{{each}}}" in path]
    if name.startswith(("round_", "releases_")):
        shared += ["view"] if name.startswith("round_") else ["view", "stage"]
    if shared:
        found["parameters"] = [reference("parameters", each) for each in shared]
    return found


_REFUSALS: Final = {
    "change": ("409", "The two cannot be compared; why is said."),
    "statistics": ("409", "The survey asks for no table."),
    "statistics_csv": ("409", "The survey asks for no table."),
    "releases_parquet": ("501", "The server has no DuckDB to write Parquet with."),
}
"""Operations that answer with one more status than the others, and when."""


def _asked() -> dict[str, list[Schema]]:
    """Return the parameters of every operation that has some of its own."""
    limit = reference("parameters", "limit")
    digest = {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}
    round_ = {"type": "integer", "minimum": 1, "maximum": 10**18 - 1}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    level = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95}
    statistics = [
        _query("kind", "What is computed.", _one_of(*STATISTICS, default=STATISTICS[0])),
        _query("level", "Coverage of the intervals.", level),
        _query("of", "The attribute that is asked about.", _TEXT),
        _query("given", "The attribute of the groups; of a census the one that it counts.", _TEXT),
        _query("on", "Attributes that explain, for a regression, with commas between.", _TEXT),
        _query("census", "CSV with a line `reading,share` for every reading of `given`.", _TEXT),
    ]
    return {
        "surveys": [limit, _query("after", "Begin after this survey, a digest.", digest)],
        "rounds": [
            limit,
            _query("after", "Begin after this round; 0 is before the first.", {**round_, "minimum": 0}),
            _query("sealed", "Releases alone, or open rounds alone.", _one_of("true", "false")),
        ],
        "change": [
            {**_query("before", "The earlier round.", round_), "required": True},
            {**_query("after", "The later round.", round_), "required": True},
            _query("from", "The earlier round's survey, digest or id, where it is another one.", _NAME),
            reference("parameters", "stage"),
        ],
        "history": [
            _query("kind", "Values, categories or the mean alone.", _one_of("value", "category", "mean")),
            _query("label", "The value or category of this label alone; needs `kind`.", _TEXT),
            _query("step", "How far a share moves from round to round at most: asks for `band`.", share),
            _query(
                "season", "Rounds after which a pattern comes again, for `trend`.", {**round_, "minimum": 0}
            ),
        ],
        "statistics": statistics,
        "statistics_csv": statistics,
    }


def _parameters() -> Schema:
    """Return the parameters that several operations share."""
    limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    view, stage = _one_of(*VIEWS, "all", default="all"), _one_of("sealed", "all", default="sealed")
    return {
        "survey": {
            "name": "survey",
            "in": "path",
            "required": True,
            "description": "A survey's digest, 32 hexadecimal digits; or its id, for its newest version.",
            "schema": _NAME,
        },
        "round": {
            "name": "round",
            "in": "path",
            "required": True,
            "description": "A round's number, from 1; `latest` for the newest release.",
            "schema": {"type": "string", "pattern": "^([1-9][0-9]{0,17}|latest)$"},
        },
        "limit": _query("limit", "Most entries of the page.", limit),
        "view": _query("view", "Raw estimates, the consistent view, empirical Bayes, or all of them.", view),
        "stage": _query("stage", "Releases alone, or open rounds, too.", stage),
    }


def _query(name: str, description: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _one_of(*words: str, default: str | None = None) -> Schema:
    return {"type": "string", "enum": [*words]} | ({} if default is None else {"default": default})


def _problem(description: str) -> Schema:
    return {
        "description": description,
        "content": {"application/problem+json": {"schema": reference("schemas", "Problem")}},
    }
