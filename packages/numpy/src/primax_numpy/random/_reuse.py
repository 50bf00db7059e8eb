"""Detection of reused keys, enabled by the option ``debug_key_reuse``.

Every jaxpr is interpreted before it runs. Each typed key has a mark with the source location of its
use; reshaping, slicing and moving keys give views of the same marks. Bits, splits and gamma samples
consume a key, `fold_in` and `clone` do not. Raw keys are not tracked: they are numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.errors import KeyReuseError
from primax_core.extend import Eqn, Jaxpr, Literal, capture, jaxprs_in, summarize, watch_programs

from ._key_dtypes import is_key_dtype


class _Marks(NamedTuple):
    """Use flags of an array of keys, a view of memory shared by all aliases, and the source
    location of the first use."""

    used: np.ndarray
    place: list[str]

    def view(self, used: np.ndarray) -> _Marks:
        return _Marks(used, self.place)

    def copy(self) -> _Marks:
        return _Marks(self.used.copy(), list(self.place))


def _unused(shape: tuple[int, ...]) -> _Marks:
    return _Marks(np.zeros(shape, bool), [])


_by_id: Final[dict[int, tuple[Any, _Marks]]] = {}


def _marks_of(key: Any) -> _Marks:
    """The marks of a concrete array of keys, stored as long as the array exists."""
    entry = _by_id.get(id(key))
    if entry is None or entry[0]() is not key:
        return _keep(key, _unused(key.shape))
    return entry[1]


def _keep(key: Any, marks: _Marks) -> _Marks:
    number = id(key)
    _by_id[number] = (weakref.ref(key, lambda _: _by_id.pop(number, None)), marks)
    return marks


# Uses

_USING: Final = ("random_bits", "random_split", "random_gamma")


def _use(marks: _Marks, what: str, place: str) -> None:
    """Mark keys as used.

    Raises:
      KeyReuseError: if one of them was used before.
    """
    if marks.used.any():
        before = marks.place[0] if marks.place else "an earlier call"
        raise KeyReuseError(
            f"{what} at {place} uses a random key that was used before, by {before}. Derive a "
            "new key for each use with split or fold_in; clone gives a key for an intended "
            "reuse."
        )
    if marks.used.flags.writeable:
        marks.used[...] = True
    if not marks.place:
        marks.place.append(f"{what} at {place}")


class _Walk:
    """Interpreter that tracks the keys of a jaxpr.

    Attributes:
      place: source location of the call, for functions of the library, which are traced once for
        all callers; ``None`` if the equations have locations.
    """

    def __init__(self, place: str | None) -> None:
        self.place = place

    def run(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """Marks of the results of a jaxpr; a non-key is a concrete scalar value or ``None``."""
        values: dict[Any, Any] = dict(zip(jaxpr.invars, args))
        for var, const in zip(jaxpr.constvars, jaxpr.consts):
            values[var] = _known(const)

        def read(atom: Any) -> Any:
            return _known(atom.scalar) if type(atom) is Literal else values.get(atom)

        for eqn in jaxpr.eqns:
            outs = self.step(eqn, [read(a) for a in eqn.invars])
            values.update(zip(eqn.outvars, outs))
        return [read(a) for a in jaxpr.outvars]

    def step(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        """Abstract values of the results of an equation."""
        name = eqn.primitive.name
        if not any(isinstance(a, _Marks) for a in args):
            makes_keys = any(is_key_dtype(v.aval.dtype) for v in eqn.outvars)
            if not makes_keys and not jaxprs_in(eqn.params):
                return _computed(eqn, args)
        if name in _USING:
            _use(args[0], name, self.where(eqn))
            return _fresh(eqn)
        follow = _RULES.get(name)
        if follow is not None:
            out: list[Any] = follow(self, eqn, args)
            return out
        return self.inner(eqn, args)

    def where(self, eqn: Eqn) -> str:
        return summarize(eqn.source_info) if self.place is None else self.place

    def inner(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        """Interpret an equation with one sub-jaxpr of the same operands; others create new keys."""
        programs = jaxprs_in(eqn.params)
        if len(programs) == 1 and len(programs[0].invars) == len(args):
            outs = self.run(programs[0], args)
            return outs if len(outs) == len(eqn.outvars) else _fresh(eqn)
        return _fresh(eqn)


def _fresh(eqn: Eqn) -> list[Any]:
    return [_unused(v.aval.shape) if is_key_dtype(v.aval.dtype) else None for v in eqn.outvars]


def _known(value: Any) -> Any:
    """The value, if it is a concrete integer or boolean scalar, otherwise ``None``."""
    if type(value) is Literal:
        value = value.scalar
    dtype = getattr(value, "dtype", None)
    if isinstance(value, (bool, int)):
        return value
    if dtype is None or is_key_dtype(dtype) or np.shape(value) or dtype.kind not in "biu":
        return None
    try:
        return np.asarray(value)[()]
    except TypeError:  # a tracer
        return None


def _computed(eqn: Eqn, args: list[Any]) -> list[Any]:
    """Scalars computed from concrete ones, for indices."""
    scalar = all(not v.aval.shape and v.aval.dtype.kind in "biu" for v in eqn.outvars)
    if scalar and args and all(a is not None for a in args):
        compute = _SCALARS.get(eqn.primitive.name)
        if compute is not None:
            return [compute(*args)]
    return [None] * len(eqn.outvars)


_SCALARS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda x, y: int(x) + int(y),
    "sub": lambda x, y: int(x) - int(y),
    "lt": lambda x, y: x < y,
    "ge": lambda x, y: x >= y,
    "select_n": lambda which, *cases: cases[int(which)],
    "convert_element_type": int,
    "max": max,
    "min": min,
    "clamp": lambda low, x, high: min(max(x, low), high),
}


# Views


def _reshaped(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    marks = args[0]
    shape = eqn.outvars[0].aval.shape
    if marks.used.size == int(np.prod(shape)):
        return [marks.view(marks.used.reshape(shape))]
    return [_moved(walk, eqn, [marks])]


def _transposed(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    return [args[0].view(args[0].used.transpose(eqn.params["permutation"]))]


def _sliced(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    p = eqn.params
    steps = p["strides"] or [None] * len(p["start_indices"])
    index = tuple(map(slice, p["start_indices"], p["limit_indices"], steps))
    return [args[0].view(args[0].used[index])]


def _sliced_at(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    marks, starts = args[0], args[1:]
    sizes = eqn.params["slice_sizes"]
    if len(starts) != len(sizes) or any(s is None for s in starts):
        return _fresh(eqn)
    index = []
    for start, size, length in zip(starts, sizes, marks.used.shape):
        first = min(max(int(start), 0), length - size)
        index.append(slice(first, first + size))
    return [marks.view(marks.used[tuple(index)])]


def _same(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    return [args[0]]


def _moved(walk: _Walk, eqn: Eqn, args: list[Any]) -> _Marks:
    """Marks of keys copied to another array; the original keys count as used."""
    out = _unused(eqn.outvars[0].aval.shape)
    for marks in args:
        if isinstance(marks, _Marks):
            if marks.used.any():
                out.used[...] = True
                out.place.extend(marks.place[:1])
            elif marks.used.flags.writeable:
                marks.used[...] = True
                marks.place.append(f"{eqn.primitive.name} at {walk.where(eqn)}")
    return out


def _gathered(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    return [_moved(walk, eqn, args)]


def _unstacked(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    marks, axis = args[0], eqn.params["axis"]
    rows = np.moveaxis(marks.used, axis, 0)
    return [marks.view(rows[i : i + 1].reshape(rows.shape[1:])) for i in range(len(rows))]


# Control flow


def _conditional(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    """Each branch may use a key; afterwards it counts as used if any branch used it."""
    marks = [a for a in args if isinstance(a, _Marks)]
    before = [m.used.copy() for m in marks]
    after = [m.used.copy() for m in marks]
    used_in = [list(m.place) for m in marks]
    for branch in eqn.params["branches"]:
        walk.run(branch, args[1:])
        for m, old, total, places in zip(marks, before, after, used_in):
            total |= m.used
            places.extend(m.place[len(places) :])
            if m.used.flags.writeable:
                m.used[...] = old
    for m, total, places in zip(marks, after, used_in):
        if m.used.flags.writeable:
            m.used[...] = total
        m.place[:] = places
    return _fresh(eqn)


def _scanned(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    """The body is interpreted twice, so that a key used again in the second iteration is
    detected."""
    p = eqn.params
    nc, ni, n = p["num_consts"], p["num_carry"], p["length"]
    consts, carry, xs = args[:nc], args[nc : nc + ni], args[nc + ni :]
    body = p["jaxpr"]
    for _ in range(min(n, 2)):
        rows = [_row(x, v.aval) for x, v in zip(xs, body.invars[nc + ni :])]
        outs = walk.run(body, [*consts, *carry, *rows])
        carry = outs[:ni]
    if n:
        for x, row in zip(xs, rows):
            if isinstance(x, _Marks) and row.used.any():
                _use(x, "scan", row.place[0] if row.place else walk.where(eqn))
    return [*carry, *_fresh(eqn)[ni:]]


def _row(x: Any, aval: Any) -> Any:
    """One iteration's slice of scanned keys."""
    if not isinstance(x, _Marks):
        return None
    return _Marks(np.full(aval.shape, bool(x.used.any())), list(x.place))


def _repeated(walk: _Walk, eqn: Eqn, args: list[Any]) -> list[Any]:
    p = eqn.params
    first, second = p["cond_nconsts"], p["body_nconsts"]
    tests, consts, carry = args[:first], args[first : first + second], args[first + second :]
    carry = [a if isinstance(a, _Marks) else None for a in carry]
    for _ in range(2):
        walk.run(p["cond_jaxpr"], [*tests, *carry])
        outs = walk.run(p["body_jaxpr"], [*consts, *carry])
        carry = [o if isinstance(o, _Marks) else None for o in outs]
    return carry


_RULES: Final[dict[str, Callable[[_Walk, Eqn, list[Any]], Any]]] = {
    "reshape": _reshaped, "squeeze": _reshaped, "expand_dims": _reshaped,
    "broadcast_in_dim": _reshaped, "transpose": _transposed, "slice": _sliced,
    "dynamic_slice": _sliced_at, "unstack": _unstacked, "concatenate": _gathered,
    "stack": _gathered, "copy": _same, "copy_p": _same, "device_put": _same,
    "optimization_barrier": lambda walk, eqn, args: list(args),
    "cond": _conditional, "scan": _scanned, "while": _repeated,
}  # fmt: skip


# Executed jaxprs


def _watch(jaxpr: Jaxpr) -> Any:
    """The key tracker of a jaxpr, or ``None`` if it has no keys."""
    if not _has_keys(jaxpr):
        return None
    info = jaxpr.debug_info

    def before(args: Sequence[Any]) -> Callable[[Sequence[Any]], None]:
        marks = [_marks_of(a) if is_key_dtype(a.dtype) else _known(a) for a in args]
        place = None if info.filename else f"{summarize(capture())} in {info.name}"
        result_marks = _Walk(place).run(jaxpr, marks)

        def after(outs: Sequence[Any]) -> None:
            for out, m in zip(outs, result_marks):
                if isinstance(m, _Marks):
                    _keep(out, m)

        return after

    return before


def _has_keys(jaxpr: Jaxpr) -> bool:
    if any(is_key_dtype(v.aval.dtype) for v in (*jaxpr.invars, *jaxpr.constvars)):
        return True
    return any(
        any(is_key_dtype(v.aval.dtype) for v in eqn.outvars)
        or any(map(_has_keys, jaxprs_in(eqn.params)))
        for eqn in jaxpr.eqns
    )


watch_programs("debug_key_reuse", _watch)
