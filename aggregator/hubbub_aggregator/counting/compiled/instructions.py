"""Machine code made by numba: the decorators of loops, and instructions that Python has no word for.

Addresses are unsigned 64-bit integers, and nothing here checks them. Kept machine code is made anew where
`loops` has changed; whoever changes this file alone empties the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
# The signature of a loop that reads words in `bytes`, which nobody may write to, and writes others.
OUT_OF_BYTES = types.void(types.Array(types.uint64, 1, "C", readonly=True), types.uint64[::1])


def compiled(signature: Any) -> Callable[[_Loop], _Loop]:  # noqa: ANN401 - numba ships no annotations
    """Return a decorator that compiles a loop for this signature now, or loads what was compiled before.

    Machine code is kept beside this file; in the user's cache, where that cannot be written; or where
    NUMBA_CACHE_DIR says. Where that fails, whatever the reason, this process compiles for itself alone, which
    takes some seconds.
    """

    def decorate(loop: _Loop) -> _Loop:
        try:
            return cast(_Loop, numba.njit(signature, cache=True)(loop))
        except (
            Exception
        ):  # no place for a cache, a full disk, a damaged file; what is wrong in a loop remains
            return cast(_Loop, numba.njit(signature)(loop))

    return decorate


def part(loop: _Loop) -> _Loop:
    """Compile a loop into those that call it."""
    return cast(_Loop, numba.njit(loop))


def _instruction(
    made: Callable[..., Any],
    result: Any,  # noqa: ANN401 - numba ships no annotations
    *arguments: Any,  # noqa: ANN401 - as above
) -> Callable[..., Any]:
    """Return a function for loops that `made` writes in the compiler's own language: (builder, values)."""

    def code(context: Any, builder: Any, _: Any, values: Any) -> Any:  # noqa: ANN401 - as above
        value = made(builder, values)
        return context.get_dummy_value() if result is types.void else value

    signature = result(*arguments)
    if len(arguments) == 1:
        made_of = intrinsic(lambda _, a: (signature, code))
    else:
        made_of = intrinsic(lambda _, a, b: (signature, code))
    return cast(Callable[..., Any], made_of)


def _pointer(builder: Any, address: Any, kind: Any) -> Any:  # noqa: ANN401 - as above
    return builder.inttoptr(address, kind.as_pointer())


def _load_code(builder: Any, values: Any) -> Any:  # noqa: ANN401 - as above
    word = ir.IntType(64)
    return builder.load(_pointer(builder, values[0], word), typ=word, align=8)


def _store_code(builder: Any, values: Any) -> None:  # noqa: ANN401 - as above
    builder.store(values[1], _pointer(builder, values[0], ir.IntType(64)), align=8)


def _matches_code(builder: Any, values: Any) -> Any:  # noqa: ANN401 - as above
    lanes, nothing = ir.VectorType(ir.IntType(64), 8), ir.Undefined
    bucket = builder.load(_pointer(builder, values[0], lanes), typ=lanes, align=8)
    first = builder.insert_element(ir.Constant(lanes, nothing), values[1], ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
    sought = builder.shuffle_vector(first, ir.Constant(lanes, nothing), zeros)
    bits = builder.bitcast(builder.icmp_unsigned("==", bucket, sought), ir.IntType(8))
    return builder.zext(bits, ir.IntType(64))


def _first_code(builder: Any, values: Any) -> Any:  # noqa: ANN401 - as above
    return builder.cttz(values[0], ir.IntType(1)(1))


def _ask_code(builder: Any, values: Any) -> None:  # noqa: ANN401 - as above
    byte, number, name = ir.IntType(8), ir.IntType(32), "llvm.prefetch.p0"
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
    ask = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    # To write to it, to keep it near, data.
    builder.call(ask, [_pointer(builder, values[0], byte), number(1), number(3), number(1)])


# The integer at an address, and writing one there.
load = _instruction(_load_code, types.uint64, types.uint64)
store = _instruction(_store_code, types.void, types.uint64, types.uint64)
# Eight bits: which slots of the bucket at an address hold a key.
matches = _instruction(_matches_code, types.uint64, types.uint64, types.uint64)
# The place of the lowest bit that is set; there must be one.
first = _instruction(_first_code, types.uint64, types.uint64)
# Have the processor fetch the line at an address, and go on.
ask_for = _instruction(_ask_code, types.void, types.uint64)
