"""Invalid input raises the reference's error classes, with the phrases that users search for."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from api_sides import same_error  # noqa: E402

F32 = np.float32
X2 = np.arange(2, dtype=F32)
X3 = np.arange(3, dtype=F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)


def ident(x):
    return x


def to_int(J, x):
    return J.lax.convert_element_type(x, np.int32)


def with_jvp(J, rule):
    f = J.custom_jvp(lambda x: x * x)
    f.defjvp(rule)
    return f


def with_vjp(J, fwd=lambda x: (x * x, x), bwd=lambda r, ct: (5.0 * ct,), fun=lambda x: x * x, **o):
    f = J.custom_vjp(fun, **o)
    f.defvjp(fwd, bwd)
    return f


def hundredfold(J):
    f = J.custom_vmap(lambda x, y: x * y)
    f.def_vmap(lambda n, marks, x, y: (x * y * np.float32(100), True))
    return f


def leaked(J, transform):
    tracers = []

    def f(x):
        tracers.append(x * 2.0)
        return x

    transform(f)
    return tracers[0] + 1


def gone(J):
    x = J.array(X3)
    x.delete()
    return x


def endless(J):
    f = J.jit(lambda x: f(x + 1.0))
    return f(1.0)


BOOL, CONCRETE = "TracerBoolConversionError", "ConcretizationTypeError"
INDEX, NUMPY, LEAK = (
    "TracerIntegerConversionError",
    "TracerArrayConversionError",
    "UnexpectedTracerError",
)
TRACED_ARRAY = "Abstract tracer value encountered where concrete value is expected: traced array"

ERRORS = {
    "jit 5": (lambda J: J.jit(5), TypeError, "Expected a callable value, got 5"),
    "jit generator": (
        lambda J: J.jit(lambda: (yield)),
        TypeError,
        "Expected a function, got a generator function",
    ),
    "unhashable": (
        lambda J: J.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        ValueError,
        (
            "Non-hashable static arguments are not supported. An error occurred while trying to "
            "hash an object of type <class 'list'>"
        ),
    ),
    "static position": (
        lambda J: J.jit(lambda x, y: x, static_argnums=2),
        ValueError,
        "Jitted function has static_argnums=(2,), but only accepts 2 positional arguments.",
    ),
    "static name": (
        lambda J: J.jit(lambda x, y: x, static_argnames="z"),
        ValueError,
        "invalid argnames {'z'} in static_argnames",
    ),
    "donated position": (
        lambda J: J.jit(lambda x, y: x, donate_argnums=2),
        ValueError,
        "donate_argnums=(2,)",
    ),
    "donated static": (
        lambda J: J.jit(lambda x, y: x, static_argnums=1, donate_argnums=1),
        ValueError,
        "static_argnames and donate_argnames cannot intersect",
    ),
    "str argument": (
        lambda J: J.jit(lambda p: p)({"a": "s"}),
        TypeError,
        "Error interpreting argument to",
        (
            "as an abstract array. The problematic value is of type <class 'str'> and was passed "
            "to the function at path p['a']."
        ),
    ),
    "str result": (
        lambda J: J.jit(lambda x: "a")(1.0),
        TypeError,
        "traced for jit returned a value of type <class 'str'>",
        "which is not a valid JAX type",
    ),
    "big int": (
        lambda J: J.jit(ident)(2**40),
        OverflowError,
        (
            "An overflow was encountered while parsing an argument to a jitted computation, whose "
            "argument path is"
        ),
    ),
    "compiler option": (
        lambda J: J.jit(ident, compiler_options={"zz": 1})(1.0),
        RuntimeError,
        "No such compile option: 'zz'",
    ),
    "deleted": (
        lambda J: gone(J) + 1,
        RuntimeError,
        "Array has been deleted with shape=float32[3].",
    ),
    "deleted argument": (
        lambda J: J.jit(lambda x: x + 1)(gone(J)),
        RuntimeError,
        "Array has been deleted with shape=float32[3].",
    ),
    "donated twice": (
        lambda J: (lambda a: J.jit(lambda x, y: x + y, donate_argnums=0)(a, a))(J.array(X3)),
        RuntimeError,
    ),
    "device": (lambda J: J.devices()[99], IndexError),
    "platform": (lambda J: J.devices("nope"), RuntimeError, "Unknown backend nope"),
    "aot shape": (
        lambda J: J.jit(ident).lower(X2).compile()(X3),
        TypeError,
        "Argument types differ from the types for which this computation was compiled.",
        "The mismatches are: Argument 'x' compiled with float32[2] and called with float32[3]",
    ),
    "aot tree": (
        lambda J: J.jit(ident).lower(X2).compile()(X2, X2),
        TypeError,
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    "aot grad": (
        lambda J: J.grad(J.jit(ident).lower(1.0).compile())(1.0),
        TypeError,
        (
            "Cannot apply JAX transformations to a function lowered and compiled for a particular "
            "signature."
        ),
    ),
    "aot dialect": (
        lambda J: J.jit(ident).lower(X2).as_text("foo"),
        ValueError,
        "unknown dialect: foo",
    ),
    "struct dtype": (
        lambda J: J.ShapeDtypeStruct((2,), None),
        ValueError,
        "dtype must be specified",
    ),
    "struct shape": (lambda J: J.ShapeDtypeStruct(2, F32), TypeError),
    "if": (
        lambda J: J.jit(lambda x: 1 if x > 0 else 2)(1.0),
        BOOL,
        "Attempted boolean conversion of traced array with shape bool[].",
        (
            "for jit. This concrete value was not available in Python because it depends on the "
            "value of the argument x."
        ),
    ),
    "if on many": (
        lambda J: J.jit(lambda x: 1 if x > 0 else 2)(X3),
        ValueError,
        "truth value of an array with more than one element is ambiguous",
    ),
    "if in vmap": (lambda J: J.vmap(lambda x: x if x > 0 else -x)(X3), BOOL, "shape bool[]."),
    "if in scan": (
        lambda J: J.lax.scan(lambda c, x: (c if c > 0 else x, x), 0.0, X3),
        BOOL,
        "the value of the argument c.",
    ),
    "if in checkpoint": (
        lambda J: J.checkpoint(lambda x: x if x > 0 else -x)(1.0),
        BOOL,
        "for checkpoint / remat",
    ),
    "int": (
        lambda J: J.jit(lambda x: int(x))(1.0),
        CONCRETE,
        TRACED_ARRAY + " with shape float32[]",
        "x.astype(int)",
    ),
    "item": (lambda J: J.jit(lambda x: x.item())(1.0), CONCRETE, TRACED_ARRAY, "item()"),
    "range": (
        lambda J: J.jit(lambda n: list(range(n)))(3),
        INDEX,
        "The __index__() method was called on traced array with shape int32[]",
    ),
    "numpy": (
        lambda J: J.jit(lambda x: np.sin(x))(1.0),
        NUMPY,
        "The numpy.ndarray conversion method __array__() was called on traced array",
    ),
    "numpy in grad": (
        lambda J: J.grad(lambda x: x * np.sin(x))(1.0),
        NUMPY,
        "with shape float32[]",
    ),
    "hash": (lambda J: J.jit(lambda x: hash(x))(1.0), TypeError, "unhashable type"),
    "set item": (
        lambda J: J.jit(lambda x: x.__setitem__(0, 1))(X3),
        TypeError,
        "arrays are immutable and do not support in-place item assignment",
    ),
    "leak jit": (
        lambda J: leaked(J, lambda f: J.jit(f)(1.0)),
        LEAK,
        "Encountered an unexpected tracer.",
    ),
    "leak grad": (
        lambda J: leaked(J, lambda f: J.grad(f)(1.0)),
        LEAK,
        "to escape the scope of the transformation",
    ),
    "leak vmap": (
        lambda J: leaked(J, lambda f: J.vmap(f)(X3)),
        LEAK,
        "intermediate value with type float32[]",
    ),
    "endless": (endless, RecursionError),
    "grad int": (
        lambda J: J.grad(ident)(1),
        TypeError,
        (
            "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            "np.inexact), but got int32."
        ),
        "allow_int",
    ),
    "grad int result": (
        lambda J: J.grad(lambda x: 1)(1.0),
        TypeError,
        (
            "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
            "but got int32."
        ),
    ),
    "grad complex result": (
        lambda J: J.grad(lambda x: x * 1j)(1.0),
        TypeError,
        "but got complex64. For holomorphic differentiation, pass holomorphic=True.",
    ),
    "grad array": (
        lambda J: J.grad(ident)(X2),
        TypeError,
        "Gradient only defined for scalar-output functions. Output had shape: (2,).",
    ),
    "grad tuple": (
        lambda J: J.grad(lambda x: (x, x))(1.0),
        TypeError,
        "Gradient only defined for scalar-output functions. Output was (",
    ),
    "grad str": (lambda J: J.grad(ident)("a"), TypeError, "is not a valid JAX type"),
    "grad argnums": (
        lambda J: J.grad(ident, argnums=1)(1.0),
        TypeError,
        (
            "argnums=1 requires at least 2 positional arguments to be passed by the caller, but "
            "got only 1 positional arguments."
        ),
    ),
    "grad aux": (
        lambda J: J.grad(ident, has_aux=True)(1.0),
        TypeError,
        "expected function with aux output to return a two-element tuple",
    ),
    "vjp tree": (
        lambda J: J.vjp(lambda x: (x, x), 1.0)[1](1.0),
        ValueError,
        "unexpected tree structure",
    ),
    "vjp type": (
        lambda J: J.vjp(lambda x: x * x, X3)[1](1.0),
        ValueError,
        (
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got float32[], "
            "but expected float32[3]"
        ),
    ),
    "jvp sequences": (
        lambda J: J.jvp(ident, 2.0, 1.0),
        TypeError,
        "must be tuples or lists; found float and float.",
    ),
    "jvp tree": (
        lambda J: J.jvp(lambda *a: a, (2.0, 3.0), (1.0,)),
        TypeError,
        "must have the same tree structure",
    ),
    "jvp int": (
        lambda J: J.jvp(ident, (2,), (1,)),
        TypeError,
        "the tangent dtype must be float0. Got primal dtype int32",
    ),
    "jvp shape": (
        lambda J: J.jvp(ident, (X3,), (1.0,)),
        ValueError,
        (
            "jvp called with different primal and tangent shapes; Got primal shape (3,) and "
            "tangent shape as ()"
        ),
    ),
    "linearize": (
        lambda J: J.linearize(lambda x: x * x, 2.0)[1](X3),
        ValueError,
        "linearized function called on tangent values inconsistent with the original primal values",
    ),
    "transpose int": (
        lambda J: J.linear_transpose(lambda x: to_int(J, x), 1.0)(2),
        TypeError,
        "linear_transpose only supports",
    ),
    "transpose tree": (
        lambda J: J.linear_transpose(lambda x: 3 * x, 1.0)((1.0, 2.0)),
        TypeError,
        "cotangent tree does not match function output",
    ),
    "jacfwd int": (
        lambda J: J.jacfwd(ident)(1),
        TypeError,
        "jacfwd requires real-valued inputs",
        "but got int32.",
    ),
    "jacrev complex": (
        lambda J: J.jacrev(lambda x: x * 1j)(1.0),
        TypeError,
        "jacrev requires real-valued outputs",
    ),
    "reverse while": (
        lambda J: J.grad(lambda x: J.lax.while_loop(lambda c: c < 9.0, lambda c: c * 2.0, x))(1.0),
        ValueError,
        (
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
            "dynamic start/stop values. Try using lax.scan, or using fori_loop with static "
            "start/stop."
        ),
    ),
    "no jvp rule": (
        lambda J: J.custom_jvp(ident)(1.0),
        AttributeError,
        "No JVP defined for custom_jvp function ident using defjvp.",
    ),
    "no vjp rule": (
        lambda J: J.custom_vjp(ident)(1.0),
        AttributeError,
        "No VJP defined for custom_vjp function ident using defvjp.",
    ),
    "no vmap rule": (
        lambda J: J.custom_vmap(ident)(1.0),
        AttributeError,
        "No batching rule defined for custom_vmap function ident using def_vmap.",
    ),
    "jvp rule single": (
        lambda J: J.grad(with_jvp(J, lambda p, t: p[0]))(1.0),
        TypeError,
        "must produce a pair (list or tuple of length two) representing primal and tangent outputs",
    ),
    "jvp rule shape": (
        lambda J: J.grad(with_jvp(J, lambda p, t: (p[0], X3)))(1.0),
        TypeError,
        (
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
            "and dtypes"
        ),
    ),
    "vjp rule single": (
        lambda J: J.grad(with_vjp(J, lambda x: x))(1.0),
        TypeError,
        "must produce a pair (list or tuple of length two)",
    ),
    "vjp rule bare": (
        lambda J: J.grad(with_vjp(J, bwd=lambda r, c: c))(1.0),
        TypeError,
        (
            "must produce an output with the same container (pytree) structure as the args tuple "
            "of the primal function"
        ),
    ),
    "vjp rule shape": (
        lambda J: J.grad(with_vjp(J, bwd=lambda r, c: (X3,)))(1.0),
        ValueError,
        "Custom VJP bwd rule",
        "float32[3]",
    ),
    "vjp rule forward": (
        lambda J: J.jvp(with_vjp(J), (1.0,), (1.0,)),
        TypeError,
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
    ),
    "vjp rule nondiff": (
        lambda J: J.jit(with_vjp(J, fun=lambda n, x: x, nondiff_argnums=(0,)))(1.0, 2.0),
        LEAK,
        "nondiff_argnums",
    ),
    "vmap rule reverse": (lambda J: J.grad(hundredfold(J))(1.0, 2.0), ValueError),
    "vmap 5": (lambda J: J.vmap(5), TypeError, "Expected a callable value, got 5"),
    "in_axes dict": (
        lambda J: J.vmap(ident, in_axes={"a": 0}),
        TypeError,
        "vmap in_axes must be an int, None, or a tuple of entries",
    ),
    "in_axes bool": (
        lambda J: J.vmap(ident, in_axes=True)(X3),
        TypeError,
        "vmap in_axes must be an int, None",
    ),
    "in_axes leaf": (
        lambda J: J.vmap(ident, in_axes=(0.5,))(X3),
        TypeError,
        "with those types as leaves",
    ),
    "in_axes length": (
        lambda J: J.vmap(ident, in_axes=(0, 0))(X3),
        ValueError,
        "got len(in_axes)=2, len(args)=1.",
    ),
    "in_axes prefix": (
        lambda J: J.vmap(ident, in_axes=({"b": 0},))({"a": X3}),
        ValueError,
        "vmap in_axes specification must be a tree prefix of the corresponding value",
        "(1 found)",
        "vmap in_axes[0]",
    ),
    "in_axes range": (
        lambda J: J.vmap(ident, in_axes=2)(X23),
        ValueError,
        (
            "vmap was requested to map its argument along axis 2, which implies that its rank "
            "should be at least 3, but is only 2 (its shape is (2, 3))"
        ),
    ),
    "out_axes range": (
        lambda J: J.vmap(ident, out_axes=2)(X3),
        ValueError,
        "axis 2 is out of bounds for array of dimension 1",
    ),
    "out_axes none": (
        lambda J: J.vmap(lambda x: {"b": x}, out_axes=None)(X3),
        ValueError,
        "at vmap out_axes['b'], got axis spec None but output was batched on axis 0",
    ),
    "out_axes prefix": (
        lambda J: J.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X3),
        ValueError,
        "vmap out_axes specification must be a tree prefix",
    ),
    "sizes": (
        lambda J: J.vmap(lambda x, y: x, axis_size=4)(X23, X3),
        ValueError,
        "vmap got inconsistent sizes for array axes to be mapped:",
        "* the `axis_size` argument was 4;",
        "* one axis had size 2: axis 0 of argument x of type float32[2,3];",
    ),
    "keyword sizes": (
        lambda J: J.vmap(lambda x, k: x)(X2, k=X3),
        ValueError,
        "axis 0 of argument x of type float32[2];",
        "kwargs['k'] of type float32[3]",
    ),
    "nothing mapped": (
        lambda J: J.vmap(ident, in_axes=None)(X3),
        ValueError,
        "vmap must have at least one non-None value in in_axes or axis_size must be specified",
    ),
    "no arguments": (
        lambda J: J.vmap(lambda: 1.0)(),
        ValueError,
        "vmap wrapped function must be passed at least one argument containing an array",
    ),
    "str in vmap": (lambda J: J.vmap(lambda x: "s")(X3), TypeError, "is not a valid JAX type"),
    "axis name": (
        lambda J: J.vmap(lambda x: J.lax.psum(x, "j"), axis_name="i")(X3),
        NameError,
        "Found an unbound axis name: j.",
    ),
    "groups": (
        lambda J: J.vmap(
            lambda x: J.lax.psum(x, "i", axis_index_groups=[[0], [1, 2]]), axis_name="i"
        )(X3),
        NotImplementedError,
        "axis_index_groups",
    ),
    "all_to_all": (
        lambda J: J.vmap(lambda x: J.lax.all_to_all(x, "i", 0, 0), axis_name="i")(X23),
        ValueError,
        "to equal x.shape[split_axis], but they are 2 and 3",
    ),
    "pshuffle": (
        lambda J: J.vmap(lambda x: J.lax.pshuffle(x, "i", [2, 0, 0]), axis_name="i")(X3),
        ValueError,
        "`perm` does not represent a permutation",
    ),
    "named_scope": (lambda J: J.named_scope(3), TypeError, "must be a string"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    case, expected, *phrases = ERRORS[name]
    same_error(case, expected, tuple(phrases))
