"""Primitives for random bits and random keys."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, f32, samples, u32
from .._lower.lazy import hlo, mlir, shaped
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, DTypeLike, Shape
from .._transform.batching import at_front, move_axis
from .conversion import converted
from .elementwise import (
    accepts,
    elementwise_batching,
    elementwise_lowering,
    joint_shape,
    no_derivative,
    weak,
)
from .joining import concatenate
from .out_sharding import batched_sharding, out_sharding_of, sharded_result, with_sharding
from .reshaping import expand_dims
from .shapes import canonical_shape, tail_of
from .slicing import index_in_dim, slice_in_dim

# threefry2x32

threefry2x32_p: Final = Primitive("threefry2x32", multiple_results=True)
no_derivative(threefry2x32_p)


@threefry2x32_p.rule(abstract)
def _threefry2x32_abstract(*avals):
    if any(a.dtype != dtypes.u32 for a in avals):
        raise TypeError(
            "Arguments to threefry2x32 must have uint32 type, got "
            f"{', '.join(a.str_short() for a in avals)}."
        )
    aval = ShapedArray(joint_shape("threefry2x32", avals), dtypes.u32)
    return [aval, aval]


_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))


def _emit_threefry(ctx, k1, k2, x1, x2):
    """The threefry cipher: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011)."""
    shape = ctx.out_avals[0].shape

    @cache
    def number(n: int):
        return shaped.full(np.uint32(n), shape)

    # Keys may be outputs of the cipher. Without the barrier XLA would fuse and recompute them for
    # each of their many uses here, and compile for minutes.
    k1, k2 = hlo.OptimizationBarrierOp([k1, k2]).results
    keys = (k1, k2, hlo.xor(hlo.xor(k1, k2), number(_PARITY)))
    x1, x2 = hlo.add(x1, keys[0]), hlo.add(x2, keys[1])
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x1 = hlo.add(x1, x2)
            rotated = hlo.or_(
                hlo.shift_left(x2, number(r)), hlo.shift_right_logical(x2, number(32 - r))
            )
            x2 = hlo.xor(x1, rotated)
        x1 = hlo.add(x1, keys[(group + 1) % 3])
        x2 = hlo.add(hlo.add(x2, keys[(group + 2) % 3]), number(group + 1))
    return [x1, x2]


elementwise_lowering(threefry2x32_p, _emit_threefry)
elementwise_batching(threefry2x32_p)


# Keys and their words


random_wrap_p: Final = Primitive("random_wrap")
random_unwrap_p: Final = Primitive("random_unwrap")
random_clone_p: Final = Primitive("random_clone")
for _prim in (random_wrap_p, random_unwrap_p, random_clone_p):
    no_derivative(_prim)


@random_wrap_p.rule(abstract)
def _random_wrap_abstract(words, *, impl):
    """Keys from words along the last axes.

    ``impl.dtype`` is the dtype of the keys; jaxprs are printed with ``str(impl)``.
    """
    dtype = impl.dtype
    stored = dtype.physical_aval(ShapedArray((), dtype))
    ndim = words.ndim - stored.ndim
    if words.dtype != stored.dtype or ndim < 0 or words.shape[ndim:] != stored.shape:
        raise TypeError(
            f"keys of dtype {dtype.name} are made of arrays of type {stored.str_short()}, got "
            f"{words.str_short()}"
        )
    return ShapedArray(words.shape[:ndim], dtype)


@random_unwrap_p.rule(abstract)
def _random_unwrap_abstract(keys):
    if not dtypes.issubdtype(keys.dtype, dtypes.prng_key):
        raise TypeError(f"random_unwrap takes keys, got an array of type {keys.str_short()}")
    return keys.dtype.physical_aval(keys)


@random_clone_p.rule(abstract)
def _random_clone_abstract(keys):
    return keys.strip_weak_type()


@random_wrap_p.rule(lower)
def _random_wrap_lower(ctx, words, **_):
    return words


@random_unwrap_p.rule(lower)
def _random_unwrap_lower(ctx, keys):
    return keys


@random_clone_p.rule(lower)
def _random_clone_lower(ctx, keys):
    return keys


@random_wrap_p.rule(batch)
def _random_wrap_batch(axis, args, dims, *, impl):
    (x,), (d,) = args, dims
    word_axes = len(tail_of(ShapedArray((), impl.dtype)))
    if d >= typeof(x).ndim - word_axes:
        x, d = move_axis(x, d, 0, axis.size), 0
    return random_wrap_p.bind(x, impl=impl), d


for _prim in (random_unwrap_p, random_clone_p):

    @_prim.rule(batch)
    def _prim_batch(axis, args, dims, prim=_prim):
        return prim.bind(*args), dims[0]


# rng_bit_generator


class RandomAlgorithm(enum.IntEnum):
    """Generators of random bits.

    ``RNG_THREE_FRY`` and ``RNG_PHILOX`` give the same bits on all platforms (J. Salmon et al.,
    "Parallel random numbers: as easy as 1, 2, 3", 2011); ``RNG_DEFAULT`` is the platform's
    fastest. It is the argument ``algorithm`` of :func:`rng_bit_generator`.

    >>> from primax_core.lax import RandomAlgorithm
    >>> str(RandomAlgorithm.RNG_PHILOX), int(RandomAlgorithm.RNG_DEFAULT)
    ('RNG_PHILOX', 0)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


rng_bit_generator_p: Final = Primitive("rng_bit_generator", multiple_results=True)
no_derivative(rng_bit_generator_p)


def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: ShardingLike | None = None,
) -> Sequence[Array]:
    """Random bits from the platform's generator, and the next state.

    Args:
      key: the state: ``uint32[4]``, or ``uint64[2]``.
      shape: shape of the bits.
      dtype: an unsigned integer dtype of 8 to 64 bits.
      algorithm: the generator. The bits of a key are the same on all calls with one jaxlib on one
        platform; only those of ``RNG_PHILOX`` and ``RNG_THREE_FRY`` are the same across platforms.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``.

    Returns:
      The new state and the bits. Under ``vmap`` all bits are generated from the first example's
      state.

    Raises:
      TypeError: if the dtype is not an unsigned integer dtype, or the state is not of a type above.

    >>> state, bits = rng_bit_generator(np.arange(4, dtype=np.uint32), (2, 3))
    >>> bits.shape, state.shape
    ((2, 3), (4,))
    """
    return rng_bit_generator_p.bind(
        key,
        shape=canonical_shape(shape, "rng_bit_generator"),
        dtype=dtypes.canonicalize_user_dtype(dtype, "rng_bit_generator"),
        algorithm=RandomAlgorithm(algorithm),
        out_sharding=out_sharding_of("rng_bit_generator", out_sharding),
    )


@rng_bit_generator_p.rule(abstract)
def _rng_bit_generator_abstract(key, *, shape, dtype, algorithm, out_sharding):
    if dtype not in (dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64):
        raise TypeError(
            f"rng_bit_generator: unsupported dtype {dtype.name}. Supported are uint8, uint16, "
            "uint32 and uint64; convert their bits with bitcast_convert_type."
        )
    if (key.dtype, key.shape) not in ((dtypes.u32, (4,)), (dtypes.u64, (2,))):
        raise TypeError(
            f"rng_bit_generator key must be an array of type uint32[4] or uint64[2], got {key}."
        )
    bits = with_sharding(rng_bit_generator_p, ShapedArray(shape, dtype), out_sharding)
    return [key.strip_weak_type(), bits]


@rng_bit_generator_p.rule(lower)
@sharded_result(rng_bit_generator_p, result=1)
def _rng_bit_generator_lower(ctx, key, *, shape, dtype, algorithm, out_sharding):
    (aval,) = ctx.in_avals
    state = mlir.tensor_type((2,), dtypes.u64)
    if aval.dtype == dtypes.u32:
        pairs = hlo.reshape(mlir.tensor_type((2, 2), dtypes.u32), key)
        key = hlo.bitcast_convert(state, pairs)
    # Each narrow element uses a whole word.
    generated = dtypes.u64 if dtype == dtypes.u64 else dtypes.u32
    name = algorithm.name.removeprefix("RNG_")
    new, bits = shaped.rng_bit_generator(state, key, shape, generated, name)
    if aval.dtype == dtypes.u32:
        pairs = hlo.bitcast_convert(mlir.tensor_type((2, 2), dtypes.u32), new)
        new = hlo.reshape(mlir.type_of(aval), pairs)
    return [new, converted(ctx, bits, generated, dtype, shape)]


@rng_bit_generator_p.rule(batch)
def _rng_bit_generator_batch(axis, args, dims, *, shape, out_sharding, **params):
    keys = at_front(args[0], dims[0], axis.size)
    first = index_in_dim(keys, 0, keepdims=False)
    new, bits = rng_bit_generator_p.bind(
        first, shape=(axis.size, *shape), out_sharding=batched_sharding(out_sharding, 0, axis),
        **params,
    )  # fmt: skip
    rest = slice_in_dim(keys, 1, axis.size)
    return [concatenate([expand_dims(new, (0,)), rest], 0), bits], [0, 0]


# rng_uniform

rng_uniform_p: Final = Primitive("rng_uniform")
no_derivative(rng_uniform_p)


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Uniform random numbers in ``[a, b)``, from the platform's hidden state.

    Each call draws different numbers, and the state cannot be set: use keys for reproducible
    numbers.

    Args:
      a: lower bound, a scalar of integer or floating dtype.
      b: upper bound, a scalar of the dtype of ``a``.
      shape: shape of the result.

    Returns:
      An array of the given shape and of the dtype of the bounds.

    Raises:
      ValueError: if an operand is not a scalar or the dtypes differ.
      UnsupportedRule: if the bounds are mapped by ``vmap``: draw an array of the batch's shape
        outside, or use :func:`rng_bit_generator`.

    The derivative is zero. In a compiled function each run draws again.

    >>> rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    >>> bool(0 <= float(rng_uniform(0.0, 1.0, ())) < 1)
    True
    """
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape, "rng_uniform"))


@rng_uniform_p.rule(abstract)
def _rng_uniform_abstract(a, b, *, shape):
    if a.dtype != b.dtype:
        raise ValueError(
            "Arguments to rng_uniform must have identical dtypes, got "
            f"{a.dtype.name} and {b.dtype.name}."
        )
    if a.shape or b.shape:
        raise ValueError(
            f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}."
        )
    if not accepts(a.dtype, ("integer", "float")):
        raise TypeError(
            f"rng_uniform does not accept dtype {a.dtype.name}. Accepted dtypes are subtypes of "
            "integer, floating."
        )
    return ShapedArray(shape, a.dtype, weak((a, b)))


@rng_uniform_p.rule(lower)
def _rng_uniform_lower(ctx, a, b, *, shape):
    sizes = mlir.constant(np.array(shape, np.int64))
    return hlo.rng(a, b, sizes, hlo.RngDistributionAttr.get("UNIFORM"))


rng_uniform_p.unsupported(
    batch,
    "its bounds are scalars and its state is hidden. Draw an array of the batch's shape outside "
    "of vmap, or use rng_bit_generator",
)


class _Pairs(dtypes.ExtendedDType):
    """Dtype of keys of two words, for samples; also the implementation of the keys."""

    __slots__ = ()
    type: Any = dtypes.prng_key
    name = "key<pair>"
    itemsize = 8

    @property
    def dtype(self) -> _Pairs:
        """The dtype of the keys, as an attribute of the implementation."""
        return self

    def physical_aval(self, aval: ShapedArray) -> ShapedArray:
        """The type of the array that stores the keys."""
        return ShapedArray((*aval.shape, 2), dtypes.u32)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Pairs

    def __hash__(self) -> int:
        return hash(_Pairs)

    def __repr__(self) -> str:
        return "pair"


def _through(prim: Primitive | None) -> Any:
    """Wrap words as keys, apply an operation, and unwrap the result."""

    def call(words):
        keys = random_wrap_p.bind(words, impl=_Pairs())
        return random_unwrap_p.bind(keys if prim is None else prim.bind(keys))

    return call


@random_wrap_p.rule(samples)
def _random_wrap_samples():
    yield Sample(u32(3, 2)).set(call=_through(None))
    yield Sample(u32(2)).set(call=_through(None))
    yield Sample(u32(0, 2)).set(call=_through(None))


@random_unwrap_p.rule(samples)
def _random_unwrap_samples():
    yield Sample(u32(2, 3, 2)).set(call=_through(None))


@random_clone_p.rule(samples)
def _random_clone_samples():
    yield Sample(u32(3, 2)).set(call=_through(random_clone_p))
    yield Sample(u32(2)).set(call=_through(random_clone_p))


@threefry2x32_p.rule(samples)
def _threefry2x32_samples():
    yield Sample(u32(), u32(), u32(5), u32(5))
    yield Sample(u32(3), u32(3), u32(3), u32(3))
    yield Sample(u32(), u32(), u32(0), u32(0))


@rng_bit_generator_p.rule(samples)
def _rng_bit_generator_samples():
    options = {"dtype": np.dtype(np.uint32), "out_sharding": None}
    together = dict.fromkeys(("batching", "nested batching"), "a batch draws from its first key")
    for algorithm in (RandomAlgorithm.RNG_DEFAULT, RandomAlgorithm.RNG_THREE_FRY):
        yield Sample(u32(4), shape=(3, 2), algorithm=algorithm, **options).set(without=together)
    yield Sample(u32(4), shape=(0,), algorithm=RandomAlgorithm.RNG_PHILOX, **options).set(
        without=together
    )


@rng_uniform_p.rule(samples)
def _rng_uniform_samples():
    drawn = "each call draws other numbers"
    without = dict.fromkeys(
        ("compiled", "programs", "batching", "nested batching", "jvp", "transpose"), drawn
    )
    yield Sample(f32(high=0), f32(low=1), shape=(3,)).set(without=without)
