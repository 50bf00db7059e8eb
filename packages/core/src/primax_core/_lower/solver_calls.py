"""Checks of the shapes of calls of LAPACK and cuSOLVER: jaxlib's functions do not check them, and
write past their results.

E. Anderson et al., "LAPACK Users' Guide", third edition, SIAM 1999.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from jaxlib.mlir import ir


class _Type(NamedTuple):
    """Sizes after the batch axes, and the element kind: ``x`` the routine's type, ``r`` its real
    type, ``c`` its complex type, ``i`` integers.
    """

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
# The types of operands and results, from the sizes of the operands.
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


def _potrf(sizes, attributes, is_complex):
    n = _square(sizes[0])
    return [_x(n, n)], [_x(n, n), _INFO]


def _getrf(sizes, attributes, is_complex):
    m, n = sizes[0]
    return [_x(m, n)], [_x(m, n), _Type((min(m, n),), "i"), _INFO]


def _geqrf(sizes, attributes, is_complex):
    m, n = sizes[0]
    return [_x(m, n)], [_x(m, n), _x(min(m, n))]


def _geqp3(sizes, attributes, is_complex):
    m, n = sizes[0]
    order = _Type((n,), "i")
    return [_x(m, n), order], [_x(m, n), order, _x(min(m, n))]


def _orgqr(sizes, attributes, is_complex):
    (m, n), (k,) = sizes
    _need(m >= n >= k, "there are more reflections than columns, or columns than rows")
    return [_x(m, n), _x(k)], [_x(m, n)]


def _ormqr(sizes, attributes, is_complex):
    (rows, k), (taus,), (m, n) = sizes
    _need(k == taus, "there are more or fewer factors than reflections")
    _need(rows == (m if attributes.get("left") else n) >= k, "the reflections do not fit")
    return [_x(rows, k), _x(k), _x(m, n)], [_x(m, n)]


def _syevd(sizes, attributes, is_complex):
    n = _square(sizes[0])
    return [_x(n, n)], [_x(n, n), _r(n), _INFO]


def _svd(sizes, attributes, is_complex):
    m, n = sizes[0]
    k = min(m, n)
    mode = chr(attributes.get("mode", 0))
    _need(mode in "ANS", "it has an unknown mode")
    thin, full = [_x(m, k), _x(k, n)], [_x(m, m), _x(n, n)]
    # Without vectors their buffers are not written, and may have any size.
    vectors = {"A": full, "S": thin, "N": [_ANY, _ANY]}[mode]
    return [_x(m, n)], [_x(m, n), _r(k), *vectors, _INFO]


def _geev(sizes, attributes, is_complex):
    n = _square(sizes[0])
    vectors = [_Type((n, n), "c")] * 2
    return [_x(n, n)], [*([_x(n)] if is_complex else [_r(n), _r(n)]), *vectors, _INFO]


def _gees(sizes, attributes, is_complex):
    n = _square(sizes[0])
    values = [_x(n)] if is_complex else [_r(n), _r(n)]
    return [_x(n, n)], [_x(n, n), _x(n, n), *values, _INFO, _INFO]


def _trsm(sizes, attributes, is_complex):
    n, (rows, columns) = _square(sizes[0]), sizes[1]
    _need(n == (rows if attributes.get("side") == ord("L") else columns), "the sides do not fit")
    return [_x(n, n), _x(rows, columns)], [_x(rows, columns)]


def _sytrd(sizes, attributes, is_complex):
    n = _square(sizes[0])
    _need(n >= 1, "the matrix is empty")
    return [_x(n, n)], [_x(n, n), _r(n), _r(n - 1), _x(n - 1), _INFO]


def _gehrd(sizes, attributes, is_complex):
    n = _square(sizes[0])
    _need(n >= 1 and attributes.get("low") == 1 and attributes.get("high") == n, "bad bounds")
    return [_x(n, n)], [_x(n, n), _x(n - 1), _INFO]


def _gtsv(sizes, attributes, is_complex):
    _, (n,), _, (rows, columns) = sizes
    bands = [_x(n)] * 3
    return [*bands, _x(n, columns)], [*bands, _x(rows, columns), _INFO]


def _perturbed(sizes, attributes, is_complex):
    _, (n,), _, (rows, columns) = sizes
    return [*[_x(n)] * 3, _x(n, columns)], [_x(rows, columns)]


def _svd_on_gpus(sizes, attributes, is_complex):
    """``gesvd``: ``u`` and ``vh``, or exchanged if the matrix is passed as its transpose."""
    m, n = sizes[0]
    k, full = min(m, n), attributes.get("full_matrices")
    vectors = [_x(m, m if full else k), _x(n if full else k, n)]
    if attributes.get("transposed"):
        vectors.reverse()
    if not attributes.get("compute_uv"):
        vectors = [_ANY, _ANY]
    return [_x(m, n)], [_x(m, n), _r(k), *vectors, _INFO]


def _svd_by_rotations(sizes, attributes, is_complex):
    """``gesvdj``: ``u`` and ``v``, which exist without vectors too."""
    m, n = sizes[0]
    k, full = min(m, n), attributes.get("full_matrices")
    vectors = [_x(m, m if full else k), _x(n, n if full else k)]
    return [_x(m, n)], [_x(m, n), _r(k), *vectors, _INFO]


def _pivots(sizes, attributes, is_complex):
    ((k,),) = sizes
    rows = attributes["size of the result"]
    _need(rows >= k, "there are more pivots than rows")
    return [_Type((k,), "i")], [_Type((rows,), "i")]


# Functions of CUDA's plugin that artifacts may call, and the signatures of each
_ON_GPUS: Final = {
    "cu_lu_pivots_to_permutation": "pivots", "cusolver_geqrf_ffi": "geqrf",
    "cusolver_gesvd_ffi": "svd on gpus", "cusolver_gesvdj_ffi": "svd by rotations",
    "cusolver_getrf_ffi": "getrf", "cusolver_orgqr_ffi": "orgqr", "cusolver_potrf_ffi": "potrf",
    "cusolver_syevd_ffi": "syevd", "cusolver_sytrd_ffi": "sytrd", "cusparse_gtsv2_ffi": "perturbed",
}  # fmt: skip
_LETTERS: Final = {"f32": "s", "f64": "d", "complex<f32>": "c", "complex<f64>": "z", "i32": "s"}
_SIGNATURES: Final[dict[str, Signature]] = {
    "potrf": _potrf, "getrf": _getrf, "geqrf": _geqrf, "geqp3": _geqp3, "orgqr": _orgqr,
    "ormqr": _ormqr, "syevd": _syevd, "gesdd": _svd, "gesvd": _svd, "geev": _geev, "gees": _gees,
    "trsm": _trsm, "sytrd": _sytrd, "gehrd": _gehrd, "gtsv": _gtsv, "perturbed": _perturbed,
    "pivots": _pivots, "svd on gpus": _svd_on_gpus, "svd by rotations": _svd_by_rotations,
}  # fmt: skip
# Number of matrix or vector axes of each operand; the default is two axes of the first operand.
_RANKS: Final = {
    "geqp3": (2, 1), "orgqr": (2, 1), "ormqr": (2, 1, 2), "trsm": (2, 2), "gtsv": (1, 1, 1, 2),
    "perturbed": (1, 1, 1, 2), "pivots": (1,),
}  # fmt: skip


def is_known(target: str) -> bool:
    """Return True if a native function is a routine whose shapes can be checked."""
    return target in _ON_GPUS or runs_on_cpus(target)


def runs_on_cpus(target: str) -> bool:
    """Return True if a native function is a LAPACK routine whose shapes can be checked."""
    return target == _PERTURBED or _routine(target) is not None


def _routine(target: str) -> tuple[str, str] | None:
    match = _NAME.fullmatch(target)
    if match is None:
        return None
    letter, name = match.groups()
    name = _NAMES_OF_COMPLEX.get(name, name) if letter in "cz" else name
    return (letter, name) if name in _SIGNATURES else None


def problem_of(target: str, op: Any) -> str:
    """The error in the types of a call, or ``""``; requires static sizes."""
    operands = [ir.RankedTensorType(v.type) for v in op.operands]
    results = [ir.RankedTensorType(v.type) for v in op.results]
    if not all(t.has_static_shape for t in (*operands, *results)):
        return ""  # checked again after refinement
    if not operands or not results:
        return f"{target}: it has no operands or no results"
    letter, name = _routine(target) or ("", "")
    if not name:
        letter = _LETTERS.get(str(operands[0].element_type), "c")
        name = _ON_GPUS.get(target, "perturbed")
    signature = _SIGNATURES[name]
    attributes = {**_attributes(op), "size of the result": ([*results[0].shape] or [0])[-1]}
    try:
        ranks = _RANKS.get(name, (2,))
        _need(len(operands) == len(ranks), "it has more operands, or fewer")
        rank = operands[0].rank - ranks[0]
        _need(rank >= 0, "an operand has too few axes")
        stack = tuple(operands[0].shape[:rank])
        sizes = []
        for t, r in zip(operands, ranks):
            _need(t.rank == rank + r and tuple(t.shape[:rank]) == stack, "the stacks differ")
            sizes.append(tuple(t.shape[rank:]))
        signatures = signature(sizes, attributes, letter in "cz")
        for what, types, expected in zip(("operands", "results"), (operands, results), signatures):
            actual = [(tuple(t.shape), str(t.element_type)) for t in types]
            _need(len(actual) == len(expected), f"it has more {what}, or fewer")
            allowed = [
                f if w is _ANY else ((*stack, *w.sizes), _ELEMENTS[letter][w.elements])
                for w, f in zip(expected, actual)
            ]
            _need(allowed == actual, f"its {what} should be {allowed} and are {actual}")
    except _Misfit as e:
        return f"{target}: {e}"
    return ""


_READ: Final = (
    "left", "mode", "side", "low", "high", "compute_uv", "full_matrices", "transposed",
)  # fmt: skip


def _attributes(op: Any) -> dict[str, Any]:
    config = op.attributes["backend_config"] if "backend_config" in op.attributes else None
    if not isinstance(config, ir.DictAttr):
        return {}
    attributes: dict[str, Any] = {}
    # Looked up by name: iterating over all of them ends the process if a name is not valid text.
    for name in _READ:
        value = config[name] if name in config else None
        if isinstance(value, ir.BoolAttr):
            attributes[name] = bool(value.value)
        elif isinstance(value, ir.IntegerAttr):
            attributes[name] = int(value.value)
    return attributes
