"""Randomised response with overlapping preferred regions: each value has near misses of its own.

For inputs and symbols 0..K-1, a relation "y is near x", a = e^eps and b = e^(eps - eps0):

    W[x, y] = a if y = x;  b if y is near x;  1 otherwise.

Where W v = 1 has a positive solution v, the channel is W[x, y] v_y: rows sum to one, and scaling columns
leaves their ratios alone, so that its epsilon is eps exactly. (Scaling rows changes them: privacy-boosting's
Prop. 7 does so, and overspends as soon as neighbourhoods differ in size.) Where some v_y <= 0, as for small
eps0, rows are normalised and a nominal epsilon is found by bisection on the epsilon of the rows.

Neighbourhoods that overlap blur each other: the channel is inverted as a matrix, and refused where its
inverse would make nothing known.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import DenseChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms import column_epsilon, integer_rows
from hubbub.numeric import checked_epsilon
from hubbub_authoring.mechanisms.boosted.search import largest
from hubbub_authoring.mechanisms.mechanism import IntegerKey, Key, Mechanism, RealKey, Request

MAX_VALUES: Final = 1400
"""Values of a survey's attribute: the weights of more do not fit a survey's bytes."""

MAX_POINTS: Final = 2048
"""Largest K: the matrix is inverted to say how well it can be, which takes seconds at this size."""

Floats = NDArray[np.float64]


class Neighbourhood(DenseChannel):
    """A dense channel that remembers its design; on the wire it is any dense channel.

    Attributes:
        scheme: "columns" where eps is kept by scaling columns, "rows" where by bisection.
        nominal_epsilon: The eps that W was made from: the declared one for "columns", less for "rows".
        condition: Condition number of the matrix of probabilities: what its inverse may magnify.
        standard_error: Largest standard error of a value's share at the planned number of devices, all
            inputs equally common.
    """

    def __init__(
        self,
        weights: NDArray[np.int64],
        *,
        scheme: Literal["columns", "rows"],
        nominal_epsilon: float,
        condition: float,
        standard_error: float,
    ) -> None:
        super().__init__(weights)
        self.scheme = scheme
        self.nominal_epsilon = nominal_epsilon
        self.condition = condition
        self.standard_error = standard_error


def neighbourhood(
    inputs: int,
    *,
    epsilon: float,
    boost_epsilon: float,
    window: int | None = None,
    relation: NDArray[np.bool_] | None = None,
    devices: int = 1_000_000,
    missing: Literal["none", "input"] = "none",
) -> Neighbourhood:
    """Return randomised response that prefers the neighbourhood of the value.

    Give either a window or a relation.

    Args:
        inputs: Values K, 2 to MAX_POINTS, without the missing input.
        epsilon: The declared epsilon, per report.
        boost_epsilon: eps0, above 0 and at most epsilon: the value's log-ratio over its neighbours. At
            epsilon it is plain randomised response.
        window: y is near x where |y - x| <= window, >= 0.
        relation: relation[x, y] says that y is near x, shape (K, K), bool; its diagonal does not matter, and
            it need not be symmetric.
        devices: How many devices are planned: a channel that leaves a share's standard error above 1 at that
            number is refused.
        missing: "input" adds the input and symbol K, near nothing.

    Raises:
        ParameterError: If a parameter is out of range, or the inverse would magnify the noise too much; the
            message names the least boost_epsilon that would do.
    """
    target = checked_epsilon(epsilon)
    boost = checked_epsilon(boost_epsilon, subject="boost_epsilon")
    if boost > target:
        raise ParameterError(f"boost_epsilon must be at most epsilon = {target!r}, got {boost!r}")
    if isinstance(devices, bool) or not isinstance(devices, int | np.integer) or devices < 1:
        raise ParameterError(f"devices must be an integer of at least 1, got {devices!r}")
    if missing not in ("none", "input"):
        raise ParameterError(f"missing must be one of none, input, got {missing!r}")
    near = _near(inputs, window, relation)
    if missing == "input":
        near = np.pad(near, ((0, 1), (0, 1)))
    scheme, nominal, rows = _rows(near, target, boost)
    condition, error = _blur(rows, devices)
    if not error <= 1.0:
        raise ParameterError(
            f"neighbourhoods must leave a share's standard error at most 1 with {devices} devices, got "
            f"{error:.3g}: they overlap so much that their matrix has the condition number {condition:.3g}; "
            f"{_nearest(near, target, boost, devices)}"
        )
    return Neighbourhood(
        integer_rows(rows, epsilon=epsilon),
        scheme=scheme,
        nominal_epsilon=nominal,
        condition=condition,
        standard_error=error,
    )


def _near(inputs: int, window: int | None, relation: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Return the relation as a matrix, false on its diagonal."""
    if isinstance(inputs, bool) or not isinstance(inputs, int | np.integer) or not 2 <= inputs <= MAX_POINTS:
        raise ParameterError(f"inputs must be an integer within 2 to {MAX_POINTS}, got {inputs!r}")
    if (window is None) == (relation is None):
        raise ParameterError("either window or relation must be given, got both or neither")
    if window is not None:
        if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 0:
            raise ParameterError(f"window must be an integer of at least 0, got {window!r}")
        steps = np.abs(np.arange(inputs)[:, None] - np.arange(inputs))
        near = np.asarray(steps <= window)
    else:
        near = np.array(relation)
        if near.shape != (inputs, inputs) or near.dtype != np.bool_:
            raise ParameterError(
                f"relation must be bool of shape ({inputs}, {inputs}), got {near.dtype} {near.shape}"
            )
    np.fill_diagonal(near, False)
    return np.asarray(near, dtype=np.bool_)


def _rows(
    near: NDArray[np.bool_], target: float, boost: float
) -> tuple[Literal["columns", "rows"], float, Floats]:
    weights = _weights(near, target, boost)
    try:
        scales = np.linalg.solve(weights, np.ones(len(weights)))
    except np.linalg.LinAlgError:
        scales = np.zeros(1)
    rows = weights * scales
    # A solution near zero would be lost to rounding, and its symbol would never be sent.
    if scales.min() > 0.0 and np.abs(rows.sum(axis=1) - 1.0).max() <= 1e-10:
        return "columns", target, rows / rows.sum(axis=1, keepdims=True)

    def normalised(nominal: float) -> Floats:
        table = _weights(near, nominal, boost)
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    # At nominal epsilon eps0 this is plain randomised response, which fits: eps0 <= epsilon.
    extra = largest(lambda more: column_epsilon(normalised(boost + more)) - target, target, 2.0 * target)
    return "rows", boost + extra, normalised(boost + extra)


def _weights(near: NDArray[np.bool_], nominal: float, boost: float) -> Floats:
    weights = np.where(near, math.exp(nominal - boost), 1.0)
    np.fill_diagonal(weights, math.exp(nominal))
    return weights


def _blur(rows: Floats, devices: int) -> tuple[float, float]:
    """Return the condition number, and the largest standard error of a share; inf where singular."""
    condition = float(np.linalg.cond(rows))
    if not condition < 1e12:
        return math.inf, math.inf
    inverse = np.linalg.inv(rows)  # of rows: estimate = counts @ inverse
    variances = rows.mean(axis=0) @ inverse**2 - 1.0 / len(rows)
    return condition, math.sqrt(max(float(variances.max()), 0.0) / devices)


def _nearest(near: NDArray[np.bool_], target: float, boost: float, devices: int) -> str:
    """Say which boost_epsilon would do."""

    def over(less: float) -> float:
        return _blur(_rows(near, target, target - less)[2], devices)[1] - 1.0

    if over(0.0) > 0.0:
        return "not even boost_epsilon = epsilon would do"
    reachable = target - largest(over, target - boost, target - boost)
    # Rounded up to the digits printed, so that the value named does fit.
    return f"boost_epsilon must be at least {math.ceil(reachable * 1e4) / 1e4:g}, got {boost:g}"


_BOOST: Final = RealKey("boost_epsilon", "`boost_epsilon` as for `pbgrr`", required="must be given")
_WINDOW: Final = IntegerKey("window", "`window` (integers: values that differ by at most so much are near)")
_PAIRS: Final = Key("pairs", 'or `pairs = [["a", "b"], ...]`: give one of the two')


def _of_request(request: Request) -> Neighbourhood:
    boost = _BOOST.read(request) or 0.0
    assert request.order is not None  # noqa: S101 - labels have one
    size, windowed = len(request.order) - 1, _WINDOW.given(request)
    if windowed and not request.integers:
        _WINDOW.refuse(request, "must be pairs for an attribute of labels")
    if windowed == _PAIRS.given(request):
        request.rules.refuse("mechanism", "must have either window or pairs", sorted(request.keys))
    if size > MAX_VALUES:
        request.rules.refuse("attribute", f"must have at most {MAX_VALUES} values for neighbourhood", size)
    order = request.order[:size]
    near = np.zeros((size, size), dtype=np.bool_)
    if windowed:
        window = _WINDOW.read(request, size - 1)
        steps = np.abs(np.arange(size)[:, None] - np.arange(size))
        near[np.ix_(order, order)] = steps <= window
    else:
        for one, other in _pairs(request):
            near[order[one], order[other]] = near[order[other], order[one]] = True
    return neighbourhood(
        size,
        epsilon=request.epsilon,
        boost_epsilon=boost,
        relation=near,
        devices=request.devices,
        missing="input",
    )


def _pairs(request: Request) -> list[tuple[int, int]]:
    """Return indices of the values that are near each other."""
    attribute, value, found = request.attribute, request.keys[_PAIRS.name], []
    assert attribute is not None  # noqa: S101 - a table does not take this mechanism
    if not isinstance(value, list):
        _PAIRS.refuse(request, "must be a list of [value, value]")
    for i, pair in enumerate(value):
        place = f"{_PAIRS.place}[{i}]"
        if not isinstance(pair, list) or len(pair) != 2:
            request.rules.refuse(place, "must be [value, value]", pair)
        one, other = (attribute.index_of(member) for member in pair)
        if attribute.size in (one, other):
            request.rules.refuse(place, "must hold values of the attribute's domain", pair)
        found.append((one, other))
    return found


ENTRIES: Final = (
    Mechanism(
        name="neighbourhood",
        purpose="values whose near misses are welcome, each with its own neighbours; refused where "
        "neighbours blur each other so much that `planned_devices` could not tell them apart",
        keys=(_BOOST, _WINDOW, _PAIRS),
        takes=frozenset({"labels"}),
        build=_of_request,
    ),
)
