"""Values of user-defined types, as operands of operations and transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import primax
from primax import lax
from primax.experimental.hijax import (
    HiPrim,
    HiType,
    MappingSpec,
    ShapedArray,
    aval_method,
    aval_property,
    instantiate_zeros,
    register_hitype,
)

F32 = np.dtype(np.float32)


# Tuples of values


@dataclass
class Tup:
    elements: tuple[Any, ...]


@dataclass(frozen=True)
class TupAxes(MappingSpec):
    axes: tuple[Any, ...]


@dataclass(frozen=True)
class TupType(HiType):
    types: tuple[Any, ...]

    def lo_ty(self) -> list[Any]:
        return [lo for t in self.types for lo in t.lo_ty()]

    def lower_val(self, value: Any, /) -> list[Any]:
        return [lo for t, x in zip(self.types, value.elements) for lo in t.lower_val(x)]

    def raise_val(self, *arrays: Any) -> Tup:
        rest = iter(arrays)
        return Tup(tuple(t.raise_val(*[next(rest) for _ in t.lo_ty()]) for t in self.types))

    def to_tangent_aval(self) -> TupType:
        return TupType(tuple(t.to_tangent_aval() for t in self.types))

    def dec_rank(self, size: int | None, spec: Any) -> TupType:
        return TupType(tuple(t.dec_rank(size, a) for t, a in zip(self.types, spec.axes)))

    def inc_rank(self, size: int | None, spec: Any) -> TupType:
        return TupType(tuple(t.inc_rank(size, a) for t, a in zip(self.types, spec.axes)))

    def leading_axis_spec(self) -> TupAxes:
        return TupAxes(tuple(0 for _ in self.types))

    count = aval_property(lambda value: len(value.aval.types))
    total = aval_method(lambda value: get(value, 0) + get(value, 1))

    def _add(self, value: Any, other: Any) -> Any:
        return get(value, 0) + get(other, 0)

    def _getitem(self, value: Any, i: int) -> Any:
        return get(value, i)


register_hitype(Tup, lambda value: TupType(tuple(primax.typeof(x) for x in value.elements)))


class Make(HiPrim):
    def __init__(self, types: Sequence[Any]) -> None:
        self.in_avals = tuple(types)
        self.out_aval = TupType(tuple(types))
        self.params = {}
        super().__init__()

    def expand(self, *elements: Any) -> Tup:
        return Tup(elements)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        return make(*primals), make(*map(instantiate_zeros, tangents))

    def transpose(self, ct: Any, *accums: Any) -> None:
        for i, accum in enumerate(accums):
            if hasattr(accum, "accum"):
                accum.accum(get_linear(ct, i))


def make(*elements: Any) -> Any:
    return Make([primax.typeof(x) for x in elements])(*elements)


class Get(HiPrim):
    """Element ``i``, with a rule for reverse mode."""

    def __init__(self, aval: TupType, i: int) -> None:
        self.in_avals = (aval,)
        self.out_aval = aval.types[i]
        self.params = {"i": i}
        super().__init__()

    def expand(self, value: Tup) -> Any:
        assert type(value) is Tup
        return value.elements[self.i]  # type: ignore[attr-defined]

    def vjp_fwd(self, nzs_in: Any, /, value: Any) -> tuple[Any, Any]:
        return get(value, self.i), value  # type: ignore[attr-defined]

    def vjp_bwd_retval(self, res: Any, ct: Any, /) -> tuple[Any]:
        types = self.in_avals[0].types
        zeros: list[Any] = [np.zeros(t.shape, t.dtype) for t in types]
        zeros[self.i] = ct  # type: ignore[attr-defined]
        return (make(*zeros),)


class GetLinear(Get):
    """Element ``i``, with rules for forward mode and transposition."""

    def vjp_fwd(self, nzs_in: Any, /, value: Any) -> tuple[Any, Any]:
        raise AssertionError("jvp is used instead")

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        i = self.i  # type: ignore[attr-defined]
        return get_linear(primals[0], i), get_linear(tangents[0], i)

    def transpose(self, ct: Any, accum: Any) -> None:
        accum.accum(self.vjp_bwd_retval(None, ct)[0])


def get(value: Any, i: int) -> Any:
    return Get(primax.typeof(value), i)(value)


def get_linear(value: Any, i: int) -> Any:
    return GetLinear(primax.typeof(value), i)(value)


T = Tup((np.float32(2), np.arange(3, dtype=np.float32)))
BATCH = Tup((np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32) + 10))


def total(x: Any) -> Any:
    return lax.reduce_sum(x, tuple(range(len(primax.typeof(x).shape))))


def product(t: Any) -> Any:
    return total(get(t, 0) * get(t, 1))


def linear_product(t: Any) -> Any:
    return total(get_linear(t, 0) * get_linear(t, 1))


def check(value: Any, *elements: Any) -> None:
    assert type(value) is Tup
    for x, expected in zip(value.elements, elements, strict=True):
        np.testing.assert_allclose(x, expected)


def test_operations_without_trace() -> None:
    assert get(T, 1) is T.elements[1]
    check(make(np.float32(1), 2.0), 1, 2)
    assert primax.typeof(T) == TupType((ShapedArray((), F32), ShapedArray((3,), F32)))
    assert primax.tree_util.tree_leaves([T]) == [T]


def test_traced_values() -> None:
    seen: list[Any] = []

    @primax.jit
    def f(t: Any) -> Any:
        seen.append(t)
        assert isinstance(t, primax.core.Tracer) and not isinstance(t, Tup)
        assert primax.typeof(t) == t.aval == primax.typeof(T)
        assert t.count == 2 and "TupType" in repr(t)
        with pytest.raises(AttributeError, match="'TupType' object has no attribute 'nothing'"):
            _ = t.nothing
        with pytest.raises(TypeError, match="has no truth value"):
            bool(t)
        with pytest.raises(TypeError, match="defines no _len, which __len__"):
            len(t)
        with pytest.raises(TypeError, match="unsupported operand"):
            t - t
        with pytest.raises(TypeError, match=r"value of the type TupType is no array.*HiPrim"):
            lax.sin(t)
        assert t == t and len({t}) == 1
        return t.total(), t + t, t[1]

    added, twice, second = f(T)
    np.testing.assert_array_equal(added, [2, 3, 4])
    np.testing.assert_array_equal(second, [0, 1, 2])
    assert twice == 4
    f(Tup((np.float32(5), np.ones(3, np.float32))))
    assert len(seen) == 1


def test_jit() -> None:
    check(primax.jit(lambda t: t)(T), *T.elements)
    check(primax.jit(lambda x: make(x, x * 2))(3.0), 3, 6)
    assert primax.jit(lambda x: get(T, 0) * x)(3.0) == 6
    assert primax.jit(product).lower(T).compile()(T) == 6
    nested = make(T, np.float32(3))
    np.testing.assert_array_equal(primax.jit(lambda n: get(get(n, 0), 1))(nested), [0, 1, 2])
    assert primax.eval_shape(lambda x: make(x, x), np.float32(1)) == TupType(
        (ShapedArray((), F32),) * 2
    )
    assert len(primax.make_jaxpr(product)(T).jaxpr.invars) == 2


@pytest.mark.parametrize("f", [product, linear_product])
@pytest.mark.parametrize("wrap", [lambda f: f, primax.jit, primax.checkpoint])
def test_reverse_mode(f: Callable[..., Any], wrap: Callable[..., Any]) -> None:
    check(primax.grad(wrap(f))(T), 3, [2, 2, 2])
    check(primax.jit(primax.grad(wrap(f)))(T), 3, [2, 2, 2])
    through = primax.grad(lambda x: wrap(f)(make(x, x * np.arange(3, dtype=np.float32))))
    assert through(2.0) == 12
    out, pull = primax.vjp(wrap(lambda t: make(get(t, 1), get_linear(t, 0))), T)
    check(out, [0, 1, 2], 2)
    check(pull(make(np.ones(3, np.float32), np.float32(2)))[0], 2, [1, 1, 1])
    value, (g, h) = primax.value_and_grad(lambda t, x: wrap(f)(t) * x, argnums=(0, 1))(T, 2.0)
    assert value == 12 and h == 6
    check(g, 6, [4, 4, 4])


def test_forward_mode() -> None:
    f = linear_product
    assert [float(x) for x in primax.jvp(f, (T,), (T,))] == [6, 12]
    assert primax.linearize(f, T)[1](T) == 12
    check(primax.jvp(primax.grad(f), (T,), (T,))[1], 3, [2, 2, 2])
    hessian = primax.jacfwd(primax.grad(lambda x: f(make(x, x * np.arange(3, dtype=np.float32)))))
    assert hessian(2.0) == 6
    check(primax.linear_transpose(lambda t: get_linear(t, 0) * 2, T)(1.0)[0], 2, [0, 0, 0])


def test_vmap() -> None:
    np.testing.assert_array_equal(primax.vmap(product)(BATCH), [0, 11, 24])
    seen = []

    def f(t: Any) -> Any:
        seen.append(primax.typeof(t))
        return get(t, 0) * get(t, 1)

    out = primax.vmap(f, in_axes=(TupAxes((0, None)),))(BATCH)
    np.testing.assert_array_equal(out, np.outer(np.arange(3), [10, 11, 12]))
    assert seen == [TupType((ShapedArray((), F32), ShapedArray((3,), F32)))]
    check(primax.vmap(lambda x: make(x, x + 1))(np.arange(3.0)), [0, 1, 2], [1, 2, 3])
    square = Tup((np.arange(3, dtype=np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)))
    out = primax.vmap(lambda t: get(t, 1), in_axes=TupAxes((0, 1)))(square)
    np.testing.assert_array_equal(out, square.elements[1].T)
    out = primax.vmap(
        lambda x, row: make(x, row), in_axes=(0, 1), out_axes=TupAxes((0, 1))
    )(*square.elements)  # fmt: skip
    check(out, *square.elements)
    grads = primax.vmap(primax.grad(product), in_axes=TupAxes((0, 0)))(BATCH)
    check(grads, *reversed(BATCH.elements))


def test_loops_and_branches() -> None:
    def step(c: Any, _: Any = None) -> Any:
        return make(get(c, 0) + 1, get(c, 1) * 2)

    carry, ys = lax.scan(lambda c, x: (step(c), get(c, 0)), T, None, length=3)
    check(carry, 5, [0, 8, 16])
    np.testing.assert_array_equal(ys, [2, 3, 4])
    last, stacked = lax.scan(lambda c, t: (c + get(t, 0), make(get(t, 0), c)), np.float32(0), BATCH)
    assert last == 3
    check(stacked, [0, 1, 2], [0, 0, 1])
    check(lax.while_loop(lambda c: get(c, 0) < 4, step, T), 4, [0, 4, 8])
    check(lax.fori_loop(0, 3, lambda i, c: step(c), T), 5, [0, 8, 16])
    check(primax.jit(lambda b, t: lax.cond(b, lambda t: t, step, t))(False, T), 3, [0, 2, 4])
    g = primax.grad(lambda t: product(lax.scan(lambda c, _: (step(c), None), t, None, 2)[0]))(T)
    check(g, 12, [16, 16, 16])
    with pytest.raises(TypeError, match=r"a value of type TupType.*their types differ"):
        lax.scan(lambda c, _: (make(get(c, 0)), None), T, None, length=3)


def test_custom_rules() -> None:
    @primax.custom_vjp
    def f(t: Any) -> Any:
        return get(t, 0) * 2

    f.defvjp(lambda t: (f(t), t), lambda t, ct: (make(ct * 5, get(t, 1)),))
    check(primax.grad(f)(T), 5, [0, 1, 2])

    @primax.custom_jvp
    def g(t: Any) -> Any:
        return get(t, 0) * 2

    g.defjvp(lambda primals, tangents: (g(*primals), get_linear(tangents[0], 0) * 7))
    check(primax.grad(g)(T), 7, [0, 0, 0])


def test_other_type() -> None:
    with pytest.raises(TypeError, match=r"Get.i=0. expects TupType.*got TupType"):
        Get(primax.typeof(BATCH), 0)(T)
    with pytest.raises(TypeError, match=r"Get.i=0. expects TupType.*got float32"):
        Get(primax.typeof(BATCH), 0)(np.ones(3, np.float32))


class Sized(Tup):
    pass


@dataclass(frozen=True)
class SizedType(TupType):
    """A type that accepts only the actual size of the mapped axis."""

    def raise_val(self, *arrays: Any) -> Tup:
        return Sized(super().raise_val(*arrays).elements)

    def dec_rank(self, size: int | None, spec: Any) -> SizedType:
        for t, axis in zip(self.types, spec.axes):
            assert axis is None or t.shape[axis] == size
        return SizedType(super().dec_rank(size, spec).types)

    def inc_rank(self, size: int | None, spec: Any) -> SizedType:
        return SizedType(super().inc_rank(size, spec).types)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "+".join(t.str_short(short_dtypes, mesh_axis_types) for t in self.types)


register_hitype(Sized, lambda value: SizedType(tuple(primax.typeof(x) for x in value.elements)))


def test_vmap_of_types_that_check_the_size() -> None:
    value = Sized((np.ones((3, 2), np.float32), np.zeros((2, 4), np.float32)))
    for axes, shapes in (((0, None), [(2,), (2, 4)]), ((1, 0), [(3,), (4,)])):
        seen: list[Any] = []

        def same(x: Any, seen: list[Any] = seen) -> Any:
            seen.append([t.shape for t in primax.typeof(x).types])
            return x

        out = primax.vmap(same, in_axes=(TupAxes(axes),), out_axes=TupAxes(axes))(value)
        assert seen == [shapes] and primax.typeof(out) == primax.typeof(value)
    assert primax.typeof(value).str_short() == "float32[3,2]+float32[2,4]"
    assert primax.typeof(value).str_short(True) == "f32[3,2]+f32[2,4]"


# A type without derivatives and mappings, and an operation with an effect


@dataclass
class Scaled:
    """An array of integers and a factor."""

    integers: Any
    factor: Any


@dataclass(frozen=True)
class ScaledType(HiType):
    shape: tuple[int, ...]

    def lo_ty(self) -> list[Any]:
        return [ShapedArray(self.shape, np.dtype(np.int8)), ShapedArray((), F32)]

    def lower_val(self, value: Any, /) -> list[Any]:
        return [value.integers, value.factor]

    def raise_val(self, *arrays: Any) -> Scaled:
        return Scaled(*arrays)

    def to_tangent_aval(self) -> Any:
        return ShapedArray(self.shape, F32)


register_hitype(Scaled, lambda x: ScaledType(x.integers.shape))
VALUE = Scaled(np.full(3, 2, np.int8), np.float32(2))


class Dequantize(HiPrim):
    def __init__(self, aval: Any) -> None:
        self.in_avals = (aval,)
        self.out_aval = ShapedArray(aval.shape, F32)
        self.params = {}
        super().__init__()

    def expand(self, value: Any) -> Any:
        return lax.convert_element_type(value.integers, np.float32) * value.factor

    def vjp_fwd(self, nzs_in: Any, /, value: Any) -> tuple[Any, Any]:
        return self(value), None

    def vjp_bwd_retval(self, res: Any, ct: Any, /) -> tuple[Any]:
        return (ct,)


class SetFactor(HiPrim):
    def __init__(self, aval: Any) -> None:
        self.in_avals = (aval, ShapedArray((), F32))
        self.out_aval = ()
        self.params = {}
        super().__init__()

    def expand(self, value: Any, factor: Any) -> tuple[()]:
        value.factor = factor
        return ()

    def staging(self, trace: Any, source_info: Any, /, *args: Any) -> Any:
        raise ValueError("the factor cannot be set in a traced function")


def dequantize(x: Any) -> Any:
    return Dequantize(primax.typeof(x))(x)


def test_type_without_derivatives() -> None:
    np.testing.assert_array_equal(primax.jit(dequantize)(VALUE), [4, 4, 4])
    g = primax.grad(lambda y: total(dequantize(VALUE) * y))(np.ones(3, np.float32))
    np.testing.assert_array_equal(g, [4, 4, 4])
    with pytest.raises(TypeError, match="requires real- or complex-valued inputs"):
        primax.grad(lambda x: total(dequantize(x)))(VALUE)
    with pytest.raises(NotImplementedError, match=r"their tangents have the type.*tangents of the"):
        primax.grad(lambda x: total(dequantize(x)), allow_int=True)(VALUE)
    batch = Scaled(np.ones((2, 3), np.int8), np.ones(2, np.float32))
    with pytest.raises(TypeError, match=r"must define to_tangent_aval.*dec_rank, inc_rank"):
        primax.vmap(dequantize)(batch)


def test_effects() -> None:
    value = Scaled(np.ones(3, np.int8), np.float32(2))
    change = SetFactor(primax.typeof(value))
    assert change(value, np.float32(5)) == ()
    assert value.factor == 5
    for call in (
        lambda: primax.jit(lambda x: change(x, np.float32(1)))(value),
        lambda: primax.jit(lambda y: change(value, y))(np.float32(1)),
        lambda: primax.jit(lambda: change(value, np.float32(1)))(),
    ):
        with pytest.raises(ValueError, match="cannot be set in a traced function"):
            call()
    assert value.factor == 5


class Doubled(HiPrim):
    """An operation on arrays with a rule for functions that are traced."""

    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x * 2

    def staging(self, trace: Any, source_info: Any, /, *args: Any) -> Any:
        return super().staging(trace, source_info, *args) + 100


def test_staging_of_arrays() -> None:
    double = Doubled(ShapedArray((), F32))
    assert double(np.float32(3)) == 6
    assert primax.jit(double)(np.float32(3)) == 106
