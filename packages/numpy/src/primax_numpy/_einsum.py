"""Einstein summation. opt_einsum chooses the contraction order; each step is one
``dot_general``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Array, cast, dtypes
from primax_core.extend.dimensions import typical_size
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import DTypeLike, ShardingLike

from ._checks import check_arrays, check_out
from ._functions import compiled
from ._triangles import diagonal_of


class _Step(NamedTuple):
    """One contraction: the operands to remove from the list, and their subscripts."""

    taken: tuple[int, ...]
    inputs: tuple[str, ...]
    output: str


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] = lax.dot_general,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sum of products over labelled axes: ``einsum("ij,jk->ik", a, b)`` is the matrix product.

    Args:
      subscripts: a letter or digit for each axis of each operand, ``...`` for broadcast axes, and
        after ``->`` those of the result; without ``->``, the letters that occur once, sorted.
        Operands alternating with lists of labels are also accepted. Labels are numbers, strings
        or other values that can be hashed and sorted: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
      optimize: the strategy for the contraction order of three or more operands: a name of
        opt_einsum (``"auto"``, ``"optimal"``, ``"greedy"``), ``False`` for left to right, or a
        path.
      precision, preferred_element_type: passed to every contraction.
      _dot_general: the contraction of two operands, called as ``_dot_general(a, b,
        dimension_numbers, precision, preferred_element_type=...)`` with the dtype of the result.

    Raises:
      ValueError: if the subscripts do not match the operands.
      TypeError: if an operand is not an array.

    >>> einsum("ii->i", np.float32([[1, 2], [3, 4]]))
    Array([1., 4.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            einsum,
            out_sharding,
            subscripts,
            *operands,
            out=out,
            optimize=optimize,
            precision=precision,
            preferred_element_type=preferred_element_type,
            _dot_general=_dot_general,
        )
    check_out("einsum", out)
    text, arrays = _parsed_operands(subscripts, operands)
    check_arrays("einsum", *arrays)
    shapes = tuple([typeof(x).shape for x in arrays])
    steps = _steps(text, shapes, _hashable(optimize))
    preferred = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if preferred is not None:
        preferred = dtypes.canonicalize_dtype(preferred)
    return _einsum(
        *arrays, steps=steps, precision=precision, preferred=preferred, contract=_dot_general
    )


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | Sequence[Any] = "auto"
) -> Any:
    """The contraction order of :func:`einsum`, and its description by opt_einsum.

    Args:
      subscripts: the subscripts of :func:`einsum`, or the first operand of its other form.
      operands: arrays; only their shapes are read.
      optimize: the strategy of opt_einsum, such as ``"auto"``, ``"optimal"`` or ``"greedy"``.

    Returns:
      A pair: a list of the positions of the operands of each step, and the description.

    The path can be passed as ``optimize`` to :func:`einsum`.

    >>> a, b, c = np.ones((2, 10)), np.ones((10, 10)), np.ones((10,))
    >>> path, description = einsum_path("ij,jk,k->i", a, b, c)
    >>> path
    [(1, 2), (0, 1)]
    """
    import opt_einsum

    text, arrays = _parsed_operands(subscripts, operands)
    shapes = [typeof(x).shape for x in arrays]
    try:
        return opt_einsum.contract_path(text, *shapes, shapes=True, optimize=optimize)
    except (ValueError, KeyError) as e:
        raise ValueError(f"einsum_path: {e}") from None


def _hashable(optimize: Any) -> Any:
    if isinstance(optimize, (list, tuple)):
        return tuple([tuple(p) if isinstance(p, (list, tuple)) else p for p in optimize])
    return optimize


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parsed_operands(subscripts: Any, operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts as a string, and the operands."""
    if isinstance(subscripts, str):
        text = subscripts.replace(" ", "")
        expected = len(text.split("->")[0].split(","))
        if expected != len(operands):
            raise ValueError(
                f"Number of einsum subscripts, {expected}, must be equal to the number of "
                f"operands, {len(operands)}."
            )
        return text, tuple(operands)
    alternating = [subscripts, *operands]
    result = alternating.pop() if len(alternating) % 2 else None
    arrays, lists = alternating[::2], alternating[1::2]
    letters = _letters_of_labels(lists if result is None else [*lists, result])
    text = ",".join("".join(letters[a] for a in axes) for axes in lists)
    if result is not None:
        text += "->" + "".join(letters[a] for a in result)
    return text, tuple(arrays)


def _letter(position: int) -> str:
    """The letter of a label: one of the 52, or of a block of Unicode that has only letters."""
    return _LETTERS[position] if position < len(_LETTERS) else chr(0x4E00 + position)


def _letters_of_labels(lists: Sequence[Any]) -> dict[Any, str]:
    """A letter for each label of lists of axes. The order of the letters is that of the labels."""
    try:
        labels = sorted({a for axes in lists for a in axes if a is not Ellipsis})
    except TypeError as e:
        raise TypeError(
            "einsum: operands must alternate with lists of labels that are hashable and "
            f"comparable, such as numbers of axes, got {lists}: {e}"
        ) from None
    return {Ellipsis: "...", **{label: _letter(k) for k, label in enumerate(labels)}}


@lru_cache(maxsize=4096)
def _steps(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> tuple[_Step, ...]:
    """The contractions in order."""
    inputs, output = _explicit(text, shapes)
    _check_sizes(text, inputs, shapes)
    n = len(inputs)
    if n <= 2:
        return (_Step(tuple(range(n)), tuple(inputs), output),)
    path = _path(inputs, output, shapes, optimize)
    terms = list(inputs)
    steps = []
    for taken in path:
        positions = tuple(sorted(taken, reverse=True))
        parts = [terms.pop(i) for i in positions]
        rest = set("".join(terms)) | set(output)
        if terms:
            joint = "".join(dict.fromkeys(c for c in "".join(parts) if c in rest))
        else:
            joint = output
        for step in _pairwise(positions, parts, joint, rest):
            steps.append(step)
        terms.append(joint)
    return tuple(steps)


def _pairwise(positions, parts, final, rest) -> list[_Step]:
    """A contraction of more than two operands as a sequence of pairwise ones."""
    if len(parts) <= 2:
        return [_Step(positions, tuple(parts), final)]
    needed = rest | set("".join(parts[2:]))
    joint = "".join(dict.fromkeys(c for c in parts[0] + parts[1] if c in needed))
    # The result is appended to the list, after the remaining operands.
    first = _Step(positions[:2], tuple(parts[:2]), joint)
    end = positions[0] - 1
    return [first, *_pairwise((end, *positions[2:]), [joint, *parts[2:]], final, rest)]


def _path(inputs, output, shapes, optimize) -> Any:
    if optimize is False:
        return [(0, 1)] + [(0, len(inputs) - k) for k in range(2, len(inputs))]
    import opt_einsum

    # A symbolic size is replaced by a typical one to choose the order.
    costs = [tuple([typical_size(d) for d in s]) for s in shapes]
    try:
        path, _ = opt_einsum.contract_path(
            f"{','.join(inputs)}->{output}", *costs, shapes=True,
            optimize=[p for p in optimize if not isinstance(p, str)]
            if isinstance(optimize, tuple)
            else optimize,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as e:
        raise ValueError(f"einsum: cannot find a path with optimize={optimize!r}: {e}") from None
    return path


def _explicit(text: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[str], str]:
    """Subscripts of each operand and of the result, with letters for the axes of ``...``."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    for c in text.replace("...", "").replace("->", "").replace(",", ""):
        if not (c.isalpha() or c.isdigit()):
            raise ValueError(
                f"einsum: character {c!r} in {text!r} is neither a letter, a digit nor one of "
                "'...', ',' and '->'"
            )
    ranks = [len(s) - len(t.replace("...", "")) for t, s in zip(terms, shapes)]
    for t, s, extra in zip(terms, shapes, ranks):
        if extra < 0 or (extra and "..." not in t):
            raise ValueError(
                f"einsum: subscripts {t!r} of {text!r} do not fit an operand of shape {s}"
            )
    most = max([r for t, r in zip(terms, ranks) if "..." in t], default=0)
    spare = (c for c in map(_letter, count()) if c not in text)
    dots = "".join(islice(spare, most))
    inputs = [t.replace("...", dots[most - r :] if r else "") for t, r in zip(terms, ranks)]
    if arrow:
        output = right.replace("...", dots)
    else:
        letters = left.replace("...", "").replace(",", "")
        output = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    known = set("".join(inputs))
    for c in output:
        if c not in known:
            raise ValueError(
                f"einsum: output character {c!r} did not appear in the input, {text!r}"
            )
        if output.count(c) > 1:
            raise ValueError(f"einsum: output character {c!r} appears twice in {text!r}")
    return inputs, output


def _check_sizes(text: str, inputs: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> None:
    sizes: dict[str, int] = {}
    for k, (term, shape) in enumerate(zip(inputs, shapes)):
        own = dict(zip(term, shape))
        for c, d in zip(term, shape):
            if own[c] != d:
                raise ValueError(
                    f"einsum: axes of operand {k} with the repeated label {c!r} have different "
                    f"sizes ({d} and {own[c]}) in {text!r} with shapes {list(shapes)}"
                )
            known = sizes.setdefault(c, d)
            if d not in (1, known) and known != 1:
                raise ValueError(
                    f"einsum: size of label {c!r} for operand {k} ({d}) does not match previous "
                    f"terms ({known}) in {text!r} with shapes {list(shapes)}"
                )
            sizes[c] = 0 if 0 in (known, d) else known if d == 1 else d


@compiled("steps", "precision", "preferred", "contract")
def _einsum(*operands, steps, precision, preferred, contract):
    avals = [typeof(x) for x in operands]
    dtype, weak = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals]))
    values = [cast(x, a, dtype, weak) for x, a in zip(operands, avals)]
    for taken, inputs, output in steps:
        if len(taken) > 1:
            parts = [values[i] for i in taken]
            for i in sorted(taken, reverse=True):
                values.pop(i)
        else:
            parts = [values.pop(taken[0])]
        sizes = _sizes(inputs, parts)
        terms = [_without_broadcast(x, t, inputs[1 - k : 2 - k], sizes)
                 for k, (x, t) in enumerate(zip(parts, inputs))]  # fmt: skip
        terms = [_reduced_operand(x, t, output, "".join(u for _, u in terms[1 - k : 2 - k]))
                 for k, (x, t) in enumerate(terms)]  # fmt: skip
        if len(terms) == 1:
            values.append(_arranged(*terms[0], output))
        else:
            values.append(_joined(*terms[0], *terms[1], output, contract, precision, preferred))
    out = values[0]
    if preferred is not None and typeof(out).dtype != preferred:
        out = lax.convert_element_type(out, preferred)
    return out


def _sizes(inputs: Sequence[str], parts: Sequence[Any]) -> dict[str, int]:
    """The size of each label: the largest of its axes (0 if one is empty)."""
    sizes: dict[str, int] = {}
    for term, x in zip(inputs, parts):
        for c, d in zip(term, typeof(x).shape):
            known = sizes.get(c, d)
            sizes[c] = 0 if 0 in (known, d) else known if d == 1 else d
    return sizes


def _without_broadcast(x, term: str, others: Sequence[str], sizes) -> tuple[Any, str]:
    """An operand without the axes of size 1 whose label is larger in the other operand."""
    other = "".join(others)
    shape = typeof(x).shape
    drop = [i for i, c in enumerate(term) if shape[i] == 1 and sizes[c] != 1 and c in other]
    if not drop:
        return x, term
    return lax.squeeze(x, tuple(drop)), "".join(c for i, c in enumerate(term) if i not in drop)


def _reduced_operand(x, term: str, output: str, other: str) -> tuple[Any, str]:
    """Reduce one operand: diagonals of repeated labels, and sums over labels that only it has."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            x, term = _diagonal(x, term, c)
    gone = tuple([i for i, c in enumerate(term) if c not in output and c not in other])
    if gone:
        reduce = lax.reduce_or if typeof(x).dtype == np.bool_ else lax.reduce_sum
        x = reduce(x, gone)
        term = "".join(c for i, c in enumerate(term) if i not in gone)
    return x, term


def _diagonal(x, term: str, c: str) -> tuple[Any, str]:
    """The diagonal of the first two axes with the label ``c``, moved to the last axis."""
    i = term.index(c)
    j = term.index(c, i + 1)
    return diagonal_of(x, 0, (i, j)), "".join(t for k, t in enumerate(term) if k not in (i, j)) + c


def _arranged(x, term: str, output: str):
    """Axes transposed to the order of the output."""
    order = tuple([term.index(c) for c in output])
    return x if order == tuple(range(len(order))) else lax.transpose(x, order)


def _joined(a, s: str, b, t: str, output: str, contract, precision, preferred):
    """The contraction of two operands."""
    both = [c for c in s if c in t]
    batch = [c for c in output if c in both]
    summed = [c for c in both if c not in output]
    if not summed and preferred is None and contract is lax.dot_general:
        return _product(a, s, b, t, output)
    free = "".join(c for c in s if c not in both), "".join(c for c in t if c not in both)
    if "".join(batch) + free[0] + free[1] != output:
        if "".join(batch) + free[1] + free[0] == output:
            a, s, b, t, free = b, t, a, s, free[::-1]
    dims = tuple(
        tuple([tuple([term.index(c) for c in labels]) for term in (s, t)])
        for labels in (summed, batch)
    )
    if preferred is None and contract is not lax.dot_general:
        preferred = typeof(a).dtype
    out = contract(a, b, dims, precision, preferred_element_type=preferred)
    return _arranged(out, "".join(batch) + free[0] + free[1], output)


def _product(a, s: str, b, t: str, output: str):
    """The elementwise product, for two operands without summed labels."""
    sizes = _sizes((s, t), (a, b))
    shape = [sizes[c] for c in output]
    x, y = (
        lax.broadcast_in_dim(
            _arranged(v, term, "".join(c for c in output if c in term)),
            shape,
            tuple([i for i, c in enumerate(output) if c in term]),
        )
        for v, term in ((a, s), (b, t))
    )
    return (lax.bitwise_and if typeof(x).dtype == np.bool_ else lax.mul)(x, y)
