"""Primitives whose results over explicit axes do not follow from Shardy's rules.

A rule takes the mesh axes of the operands, the types of operands and results, the parameters, and
the sizes of the mesh axes; it returns the mesh axes of each result, or raises `Ambiguous`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core import lax
from primax_core.extend import Primitive

from ._explicit import Ambiguous, Names, Sizes, Spec, joined_names, merged, text

Specs = Sequence[Spec]
Avals = Sequence[Any]
Params = dict[str, Any]
Rule = Callable[[Specs, Avals, Avals, Params, Sizes], list[Spec]]

_rules: Final[dict[Any, Rule]] = {}


def rule_of(prim: Primitive) -> Rule | None:
    """The rule of a primitive, if it has one."""
    rule = _rules.get(prim)
    if rule is None and prim.name in _RANKS:
        if prim is getattr(lax.linalg, f"{prim.name}_p", None):
            rule = _rules[prim] = _linalg(_RANKS[prim.name])
    return rule


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            _rules[getattr(lax, f"{name}_p")] = rule
        return rule

    return register


def _whole(spec: Spec, axes: Sequence[int], what: str) -> None:
    for axis in axes:
        if spec[axis]:
            raise Ambiguous(f"axis {axis} is divided along {text(spec[axis])}, but {what}")


def _merged(specs: Sequence[Spec]) -> Spec:
    first, *others = specs
    for other in others:
        first = tuple(map(merged, first, other))
    return first


def _same(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    return [specs[0] for _ in outs]


_rule(
    "slice", "dynamic_slice", "split", "pad", "fft", "rev", "reduce_precision", "copy",
    "sharding_constraint", "reduce_window_sum", "reduce_window_max", "reduce_window_min",
)(_same)  # fmt: skip


@_rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(
    specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes
) -> list[Spec]:
    _whole(specs[0], [params["axis"]], "the operation runs along it")
    return [specs[0]]


@_rule("sort")
def _sort(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    spec = _merged(specs)
    _whole(spec, [params["dimension"]], "it is sorted")
    return [spec for _ in outs]


@_rule("top_k", "approx_top_k")
def _top_k(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    axis = params.get("axis", params.get("reduction_dimension", -1)) % avals[0].ndim
    _whole(specs[0], [axis], "its largest elements are selected")
    return [specs[0] for _ in outs]


@_rule("order_statistics")
def _order_statistics(
    specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes
) -> list[Spec]:
    shared = avals[1].ndim == 1  # the same ranks for all rows
    spec = specs[0] if shared else _merged(specs)
    _whole(spec, [avals[0].ndim - 1], "its elements are selected by rank")
    if shared:
        _whole(specs[1], [0], "it has the ranks of each row")
    return [spec]


@_rule("argmax", "argmin")
def _argmax(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    return [tuple([s for i, s in enumerate(specs[0]) if i not in params["axes"]])]


@_rule("clamp")
def _clamp(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    return [specs[1]]


@_rule("optimization_barrier")
def _each(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    return list(specs)


@_rule("device_put")
def _device_put(
    specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes
) -> list[Spec]:
    return list(specs)


@_rule("concatenate")
def _concatenate(
    specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes
) -> list[Spec]:
    return [_merged(specs)]


@_rule("select_n")
def _select_n(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    which, *cases = specs
    return [_merged(cases if not avals[0].ndim else [*cases, which])]


@_rule("dynamic_update_slice")
def _dynamic_update_slice(
    specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes
) -> list[Spec]:
    operand, update = specs[:2]
    for names, own in zip(update, operand):
        if names and names != own:
            raise Ambiguous(
                f"the update is divided along {text(names)}, where the array is "
                + (f"divided along {text(own)}" if own else "not divided")
            )
    return [operand]


@_rule("bitcast_convert_type")
def _bitcast(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    spec, n = specs[0], outs[0].ndim
    if n < len(spec):
        _whole(spec, [len(spec) - 1], "it becomes a part of the elements")
    return [(*spec[:n], *((),) * (n - len(spec)))]


@_rule("reshape", "squeeze")
def _reshape(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    order = params.get("dimensions") if "new_sizes" in params else None
    order = range(avals[0].ndim) if order is None else order
    shape = [avals[0].shape[i] for i in order]
    return [reshaped([specs[0][i] for i in order], shape, outs[0].shape, sizes)]


def reshaped(spec: Sequence[Names], shape: Sequence[int], new: Sequence[int], sizes: Sizes) -> Spec:
    """The mesh axes of a reshaped array.

    Axes are split, merged, or kept; axes of size 1 may come and go. Where several axes become
    several others, none may be divided.
    """
    out: list[Names] = [()] * len(new)
    i = j = 0
    while i < len(shape) or j < len(new):
        start, end = i, j
        a = b = 1
        while True:
            if a == b and (i > start or j > end):
                break
            if a <= b and i < len(shape):
                a *= shape[i]
                i += 1
            elif j < len(new):
                b *= new[j]
                j += 1
            else:
                a *= shape[i]
                i += 1
        old_axes = [k for k in range(start, i) if shape[k] != 1]
        new_axes = [k for k in range(end, j) if new[k] != 1]
        names = [spec[k] for k in old_axes]
        if not any(names):
            continue
        if len(new_axes) == 1:
            parts = [(shape[k], spec[k]) for k in old_axes]
            out[new_axes[0]] = joined_names(parts)
        elif len(old_axes) == 1:
            for k, own in zip(new_axes, _split(names[0], [new[k] for k in new_axes], sizes)):
                out[k] = own
        else:
            raise Ambiguous(f"axes {old_axes} become axes {new_axes}, and some of them are divided")
    return tuple(out)


def _split(names: Names, parts: Sequence[int], sizes: Sizes) -> list[Names]:
    """The mesh axes of the parts of an axis that is split, the major one first."""
    rest, out = list(names), []
    for size in parts:
        n, own = 1, []
        while rest and size % (n * sizes[rest[0]]) == 0:
            n *= sizes[rest[0]]
            own.append(rest.pop(0))
        out.append(tuple(own))
        if rest and n != size:
            break
    if rest:
        raise Ambiguous(f"an axis divided along {text(names)} cannot be split into {list(parts)}")
    return out + [()] * (len(parts) - len(out))


@_rule("gather")
def _gather(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    operand, indices = specs[:2]
    numbers, slice_sizes = params["dimension_numbers"], params["slice_sizes"]
    batching = tuple(numbers.operand_batching_dims)
    window = []
    for axis, names in enumerate(operand):
        if axis in batching:
            continue
        if slice_sizes[axis] != avals[0].shape[axis] and names:
            raise Ambiguous(f"axis {axis} of the array is divided along {text(names)}, and indexed")
        if axis not in numbers.collapsed_slice_dims:
            window.append(names)
    positions = list(indices[:-1])
    for axis, at in zip(batching, numbers.start_indices_batching_dims):
        positions[at] = merged(positions[at], operand[axis])
    slices, rest = iter(window), iter(positions)
    offsets = set(numbers.offset_dims)
    return [tuple([next(slices if i in offsets else rest) for i in range(outs[0].ndim)])]


@_rule("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")
def _scatter(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    operand, updates = specs[0], avals[2]
    numbers = params["dimension_numbers"]
    batching = tuple(numbers.operand_batching_dims)
    windows = iter([updates.shape[i] for i in sorted(numbers.update_window_dims)])
    for axis, names in enumerate(operand):
        if axis in batching:
            continue
        inserted = axis in numbers.inserted_window_dims
        size = 1 if inserted else next(windows)
        if names and size != avals[0].shape[axis]:
            raise Ambiguous(f"axis {axis} of the array is divided along {text(names)}, and indexed")
    return [operand]


@_rule("conv_general_dilated")
def _convolution(
    specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes
) -> list[Spec]:
    (x, k), numbers = specs[:2], params["dimension_numbers"]
    lhs, rhs, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    grouped = params["feature_group_count"] > 1 or params["batch_group_count"] > 1
    _whole(k, rhs[2:], "the windows of the convolution run along it")
    if grouped:
        _whole(x, lhs[:2], "it is divided into groups")
        _whole(k, rhs[:2], "it is divided into groups")
    _whole(x, lhs[1:2], "it is summed: pass out_sharding")
    _whole(k, rhs[1:2], "it is summed: pass out_sharding")
    spec: list[Names] = [()] * len(out)
    spec[out[0]], spec[out[1]] = x[lhs[0]], k[rhs[0]]
    for i, o in zip(lhs[2:], out[2:]):
        spec[o] = x[i]
    return [tuple(spec)]


@_rule("reduce_window", "select_and_scatter_add", "select_and_gather_add", "select_and_scatter")
def _window(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    return [_merged([s for s, a in zip(specs, avals) if a.shape == avals[0].shape])
            for _ in outs]  # fmt: skip


@_rule("rng_bit_generator")
def _bits(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    return [((),) * o.ndim for o in outs]


def _linalg(rank: int) -> Rule:
    def rule(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
        return _batches(specs, avals, outs, rank)

    return rule


def _batches(
    specs: Sequence[Spec], avals: Sequence[Any], outs: Sequence[Any], rank: int
) -> list[Spec]:
    """Of operations on matrices: leading axes correspond, the axes of matrices are whole."""
    n = avals[0].ndim - rank
    leading: list[Spec] = []
    for spec, aval in zip(specs, avals):
        if aval.ndim >= n:
            _whole(spec, range(n, aval.ndim), "it is an axis of matrices")
            leading.append(spec[:n])
    batch = _merged(leading)
    return [(*batch, *((),) * (o.ndim - n)) for o in outs]


_RANKS: Final = {
    "cholesky": 2, "eigh": 2, "eig": 2, "qr": 2, "geqrf": 2, "geqp3": 2, "svd": 2, "lu": 2,
    "schur": 2, "hessenberg": 2, "tridiagonal": 2, "triangular_solve": 2, "tridiagonal_solve": 1,
    "householder_product": 2, "symmetric_product": 2, "cholesky_update": 2, "ormqr": 2,
    "lu_pivots_to_permutation": 1,
}  # fmt: skip
"""Axes of a matrix or vector in the operands of functions of linear algebra."""


@_rule("stack")
def _stack(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    spec, axis = _merged(specs), params["axis"]
    return [(*spec[:axis], (), *spec[axis:])]


@_rule("unstack")
def _unstack(specs: Specs, avals: Avals, outs: Avals, params: Params, sizes: Sizes) -> list[Spec]:
    spec, axis = specs[0], params["axis"]
    _whole(spec, [axis], "it is taken apart")
    return [(*spec[:axis], *spec[axis + 1 :]) for _ in outs]
