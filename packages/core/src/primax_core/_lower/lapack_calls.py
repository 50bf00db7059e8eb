"""Whether the shapes of a LAPACK call fit: jaxlib's functions do not look, and write past their
results.

E. Anderson et al., "LAPACK Users' Guide", third edition, SIAM 1999.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from jaxlib.mlir import ir


class _Type(NamedTuple):
    """Sizes after the stack of matrices, and elements: ``x`` the routine's, ``r`` its real ones,
    ``c`` its complex ones, ``i`` integers."""

    sizes: tuple[int, ...]
    elements: str


class _Misfit(ValueError):
    pass


_ELEMENTS: Final = {
    "s": {"x": "f32", "r": "f32", "c": "complex<f32>", "i": "i32"},
    "d": {"x": "f64", "r": "f64", "c": "complex<f64>", "i": "i32"},
    "c": {"x": "complex<f32>", "r": "f32", "c": "complex<f32>", "i": "i32"},
    "z": {"x": "complex<f64>", "r": "f64", "c": "complex<f64>", "i": "i32"},
}
_NAME: Final = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
_INFO: Final = _Type((), "i")
_ANY: Final = _Type((), "any")
_NAMES_OF_COMPLEX: Final = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "hetrd": "sytrd"}
_PERTURBED: Final = "tridiagonal_solve_perturbed_ffi"

Matrices = Sequence[tuple[int, ...]]
# The types of operands and of results, from the sizes of the operands.
Signature = Callable[[Matrices, dict[str, Any], bool], tuple[list[_Type], list[_Type]]]


def _x(*sizes: int) -> _Type:
    return _Type(sizes, "x")


def _r(*sizes: int) -> _Type:
    return _Type(sizes, "r")


def _square(sizes: tuple[int, ...]) -> int:
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise _Misfit("a matrix is not square")
    return sizes[0]


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise _Misfit(what)


def _potrf(given, attributes, is_complex):
    n = _square(given[0])
    return [_x(n, n)], [_x(n, n), _INFO]


def _getrf(given, attributes, is_complex):
    m, n = given[0]
    return [_x(m, n)], [_x(m, n), _Type((min(m, n),), "i"), _INFO]


def _geqrf(given, attributes, is_complex):
    m, n = given[0]
    return [_x(m, n)], [_x(m, n), _x(min(m, n))]


def _geqp3(given, attributes, is_complex):
    m, n = given[0]
    order = _Type((n,), "i")
    return [_x(m, n), order], [_x(m, n), order, _x(min(m, n))]


def _orgqr(given, attributes, is_complex):
    (m, n), (k,) = given
    _need(m >= n >= k, "there are more reflections than columns, or columns than rows")
    return [_x(m, n), _x(k)], [_x(m, n)]


def _ormqr(given, attributes, is_complex):
    (rows, k), (taus,), (m, n) = given
    _need(k == taus, "there are more or fewer factors than reflections")
    _need(rows == (m if attributes.get("left") else n) >= k, "the reflections do not fit")
    return [_x(rows, k), _x(k), _x(m, n)], [_x(m, n)]


def _syevd(given, attributes, is_complex):
    n = _square(given[0])
    return [_x(n, n)], [_x(n, n), _r(n), _INFO]


def _svd(given, attributes, is_complex):
    m, n = given[0]
    k = min(m, n)
    mode = chr(attributes.get("mode", 0))
    _need(mode in "ANS", "it has no such mode")
    thin, full = [_x(m, k), _x(k, n)], [_x(m, m), _x(n, n)]
    # Without vectors nothing is written to their place, which may have any size.
    vectors = {"A": full, "S": thin, "N": [_ANY, _ANY]}[mode]
    return [_x(m, n)], [_x(m, n), _r(k), *vectors, _INFO]


def _geev(given, attributes, is_complex):
    n = _square(given[0])
    vectors = [_Type((n, n), "c")] * 2
    return [_x(n, n)], [*([_x(n)] if is_complex else [_r(n), _r(n)]), *vectors, _INFO]


def _gees(given, attributes, is_complex):
    n = _square(given[0])
    values = [_x(n)] if is_complex else [_r(n), _r(n)]
    return [_x(n, n)], [_x(n, n), _x(n, n), *values, _INFO, _INFO]


def _trsm(given, attributes, is_complex):
    n, (rows, columns) = _square(given[0]), given[1]
    _need(n == (rows if attributes.get("side") == ord("L") else columns), "the sides do not fit")
    return [_x(n, n), _x(rows, columns)], [_x(rows, columns)]


def _sytrd(given, attributes, is_complex):
    n = _square(given[0])
    _need(n >= 1, "the matrix is empty")
    return [_x(n, n)], [_x(n, n), _r(n), _r(n - 1), _x(n - 1), _INFO]


def _gehrd(given, attributes, is_complex):
    n = _square(given[0])
    _need(n >= 1 and attributes.get("low") == 1 and attributes.get("high") == n, "bad bounds")
    return [_x(n, n)], [_x(n, n), _x(n - 1), _INFO]


def _gtsv(given, attributes, is_complex):
    _, (n,), _, (rows, columns) = given
    bands = [_x(n)] * 3
    return [*bands, _x(n, columns)], [*bands, _x(rows, columns), _INFO]


def _perturbed(given, attributes, is_complex):
    _, (n,), _, (rows, columns) = given
    return [*[_x(n)] * 3, _x(n, columns)], [_x(rows, columns)]


_SIGNATURES: Final[dict[str, Signature]] = {
    "potrf": _potrf, "getrf": _getrf, "geqrf": _geqrf, "geqp3": _geqp3, "orgqr": _orgqr,
    "ormqr": _ormqr, "syevd": _syevd, "gesdd": _svd, "gesvd": _svd, "geev": _geev, "gees": _gees,
    "trsm": _trsm, "sytrd": _sytrd, "gehrd": _gehrd, "gtsv": _gtsv,
}  # fmt: skip
# How many axes each operand has after the stack, where it is not two for the first.
_RANKS: Final = {
    "geqp3": (2, 1), "orgqr": (2, 1), "ormqr": (2, 1, 2), "trsm": (2, 2), "gtsv": (1, 1, 1, 2),
    "perturbed": (1, 1, 1, 2),
}  # fmt: skip


def is_known(target: str) -> bool:
    """Whether a native function is one of LAPACK whose shapes can be checked."""
    return target == _PERTURBED or _routine(target) is not None


def _routine(target: str) -> tuple[str, str] | None:
    found = _NAME.fullmatch(target)
    if found is None:
        return None
    letter, name = found.groups()
    name = _NAMES_OF_COMPLEX.get(name, name) if letter in "cz" else name
    return (letter, name) if name in _SIGNATURES else None


def problem_of(target: str, op: Any) -> str:
    """What is wrong with the types of a call of LAPACK, or ``""``; sizes have to be known."""
    operands = [ir.RankedTensorType(v.type) for v in op.operands]
    results = [ir.RankedTensorType(v.type) for v in op.results]
    if not all(t.has_static_shape for t in (*operands, *results)):
        return ""  # looked at again when they are
    if target == _PERTURBED:
        letter = {"f32": "s", "f64": "d"}.get(str(operands[0].element_type), "c")
        name, signature = "perturbed", _perturbed
    else:
        letter, name = _routine(target) or ("", "")
        signature = _SIGNATURES[name]
    try:
        ranks = _RANKS.get(name, (2,))
        _need(len(operands) == len(ranks), "it has more operands, or fewer")
        rank = operands[0].rank - ranks[0]
        _need(rank >= 0, "an operand has too few axes")
        stack = tuple(operands[0].shape[:rank])
        given = []
        for t, r in zip(operands, ranks):
            _need(t.rank == rank + r and tuple(t.shape[:rank]) == stack, "the stacks differ")
            given.append(tuple(t.shape[rank:]))
        wanted = signature(given, _attributes(op), letter in "cz")
        for what, types, expected in zip(("operands", "results"), (operands, results), wanted):
            found = [(tuple(t.shape), str(t.element_type)) for t in types]
            _need(len(found) == len(expected), f"it has more {what}, or fewer")
            said = [
                f if w is _ANY else ((*stack, *w.sizes), _ELEMENTS[letter][w.elements])
                for w, f in zip(expected, found)
            ]
            _need(said == found, f"its {what} should be {said} and are {found}")
    except _Misfit as e:
        return f"{target}: {e}"
    return ""


def _attributes(op: Any) -> dict[str, Any]:
    config = op.attributes["backend_config"] if "backend_config" in op.attributes else None
    if not isinstance(config, ir.DictAttr):
        return {}
    found: dict[str, Any] = {}
    # Asked for by name: going through all of them ends the process where a name is no text.
    for name in ("left", "mode", "side", "low", "high"):
        value = config[name] if name in config else None
        if isinstance(value, ir.BoolAttr):
            found[name] = bool(value.value)
        elif isinstance(value, ir.IntegerAttr):
            found[name] = int(value.value)
    return found
