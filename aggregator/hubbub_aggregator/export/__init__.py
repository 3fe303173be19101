"""Releases as tidy tables: CSV and Parquet."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.export.csv_table import csv_pieces
    from hubbub_aggregator.export.parquet import write_parquet
    from hubbub_aggregator.export.tidy import COLUMNS, VIEWS, tidy_rows

__all__ = [
    "COLUMNS",
    "VIEWS",
    "csv_pieces",
    "tidy_rows",
    "write_parquet",
]

attach(
    __name__,
    {
        "hubbub_aggregator.export.csv_table": ("csv_pieces",),
        "hubbub_aggregator.export.parquet": ("write_parquet",),
        "hubbub_aggregator.export.tidy": (
            "COLUMNS",
            "VIEWS",
            "tidy_rows",
        ),
    },
)
