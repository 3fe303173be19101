"""Releases as tidy tables: CSV, JSON lines and Parquet."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.export.csv_table import csv_pieces
    from hubbub_aggregator.export.json_lines import json_lines
    from hubbub_aggregator.export.parquet import can_write_parquet, write_parquet
    from hubbub_aggregator.export.tidy import COLUMNS, VIEWS, tidy_rows

__all__ = [
    "COLUMNS",
    "VIEWS",
    "can_write_parquet",
    "csv_pieces",
    "json_lines",
    "tidy_rows",
    "write_parquet",
]

attach(
    __name__,
    {
        "hubbub_aggregator.export.csv_table": ("csv_pieces",),
        "hubbub_aggregator.export.json_lines": ("json_lines",),
        "hubbub_aggregator.export.parquet": ("can_write_parquet", "write_parquet"),
        "hubbub_aggregator.export.tidy": (
            "COLUMNS",
            "VIEWS",
            "tidy_rows",
        ),
    },
)
