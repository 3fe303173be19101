"""The choice of an id table: NumPy's, or machine code where the extra `speed` is installed.

Both give the same verdicts and store the same keys, so that a store filled with one is read with the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from hubbub_aggregator.counting.dedup import IdTable, KeySet

IdTableKind: TypeAlias = Literal["auto", "numpy", "compiled"]
_COMPILER: Final = "numba"
_LOGGER: Final = logging.getLogger(__name__)


def id_table_of(kind: IdTableKind) -> Callable[[], KeySet]:
    """Return what makes id tables of a kind; "auto" is the compiled one where numba is installed.

    The compiled one is loaded, or compiled, here and not when the first id comes. Where numba is installed
    and cannot be imported, "auto" logs that and is NumPy's.

    Raises:
        ImportError: If the compiled one is asked for and cannot be had.
    """
    if kind == "numpy":
        return IdTable
    try:
        # Half a second, which whoever counts with NumPy does not wait for.
        from hubbub_aggregator.counting.compiled.table import CompiledIdTable  # noqa: PLC0415 - as said
    except ImportError as error:
        if kind == "compiled":
            raise
        if error.name != _COMPILER:
            _LOGGER.warning("ids are remembered in NumPy's table: numba cannot be imported: %s", error)
        return IdTable
    return CompiledIdTable
