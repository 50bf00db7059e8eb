"""Exported functions against the real jax: fields, values, derivatives, errors, trees, shapes."""

import collections

import jax
import numpy as np
import pytest
from jax import export as their_export

import primax
from test_support import assert_close

OURS = {"np": primax.numpy, "lax": primax.lax, "jit": primax.jit, "x": primax.export, "lib": primax}
THEIRS = {"np": jax.numpy, "lax": jax.lax, "jit": jax.jit, "x": their_export, "lib": jax}

X = np.arange(3, dtype=np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.int32(3)


class Side:
    """One of the libraries."""

    def __init__(self, names):
        self.__dict__.update(names)

    def export(self, f, *args, **options):
        jitted = self.jit(f(self), **options.pop("jit", {}))
        kwargs = options.pop("kwargs", {})
        return self.x.export(jitted, **options)(*args, **kwargs)


BOTH = Side(OURS), Side(THEIRS)

FUNCTIONS = {
    "tree": (lambda s: lambda x, o: {"a": s.np.sin(x) * o["k"], "b": [x.sum(), None]},
             (X, {"k": 2.0}), {}),
    "unused": (lambda s: lambda x, y: y + 1, (X, X), {}),
    "kept": (lambda s: lambda x, y: y + 1, (X, X), {"jit": {"keep_unused": True}}),
    "keyword": (lambda s: lambda x, *, k: x * k, (X,), {"kwargs": {"k": X}}),
    "static": (lambda s: lambda x, n: x * n, (X, 3), {"jit": {"static_argnums": 1}}),
    "weak": (lambda s: lambda x: (x + 1, 1, 2.0), (1.0,), {}),
    "integers": (lambda s: lambda x, i: (x * i, i, i > 2), (X, K), {}),
    "nothing": (lambda s: lambda: 1.0, (), {}),
    "matrix": (lambda s: lambda x: s.np.dot(x, x.T), (M,), {}),
    "loop": (lambda s: lambda x: s.lax.fori_loop(0, 3, lambda i, y: y * x + i, x), (X,), {}),
    "scan": (lambda s: lambda x: s.lax.scan(lambda c, v: (c + v, c * v), 0.0, x), (X,), {}),
    "cond": (lambda s: lambda x: s.lax.cond(x[0] > 1, s.np.sin, s.np.cos, x), (X,), {}),
    "several": (lambda s: lambda x: s.np.sin(x) * 2, (X,), {"platforms": ("cpu", "cuda", "tpu")}),
    "dependent": (
        lambda s: lambda x: s.lax.platform_dependent(x, cpu=s.np.sin, default=s.np.cos),
        (X,), {"platforms": ("tpu", "cpu")},
    ),
    "elsewhere": (lambda s: lambda x: x + 1, (X,), {"platforms": ["cuda"]}),
    "checks": (lambda s: lambda x: x + 1, (X,), {"disabled": "platform"}),
    "donated": (lambda s: lambda x: x + 1, (X,), {"jit": {"donate_argnums": 0}}),
}  # fmt: skip


def exported(side, name):
    f, args, options = FUNCTIONS[name]
    options = dict(options)
    if options.pop("disabled", None):
        options["disabled_checks"] = [side.x.DisabledSafetyCheck.platform()]
    return side.export(f, *args, **options)


def described(e, weak=True):
    """The fields on which the libraries should agree, as text."""
    fields = {
        n: str(getattr(e, n))
        for n in ("fun_name", "in_tree", "out_tree", "nr_devices", "platforms", "ordered_effects",
                  "unordered_effects", "disabled_safety_checks", "module_kept_var_idx",
                  "uses_global_constants", "in_shardings_hlo", "out_shardings_hlo",
                  "calling_convention_version")
    }  # fmt: skip
    for n in ("in_avals", "out_avals"):
        avals = [(a.shape, np.dtype(a.dtype), weak and bool(a.weak_type)) for a in getattr(e, n)]
        fields[n] = str([a[:2] if a[1] == jax.float0 else a for a in avals])
    return {**fields, "has_vjp": e.has_vjp(), "text": str(e)}


def values(tree):
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(tree)]


def same(ours, theirs):
    assert_close(ours, theirs, rtol=2e-6, atol=0.0, check_dtype=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fields(name):
    ours, theirs = (described(exported(s, name)) for s in BOTH)
    assert ours == theirs
    # The reference's format does not store weak types.
    ours, theirs = (
        described(s.x.deserialize(exported(s, name).serialize()), weak=False) for s in BOTH
    )
    assert ours == theirs


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("elsewhere",)])
def test_values(name):
    _, args, options = FUNCTIONS[name]
    static = options.get("jit", {}).get("static_argnums")
    args = args if static is None else args[:static]
    results = [exported(s, name).call(*args, **options.get("kwargs", {})) for s in BOTH]
    same(*map(values, results))


@pytest.mark.parametrize(
    "name", ["tree", "integers", "matrix", "scan", "cond", "dependent", "weak"]
)
def test_derivatives(name):
    ours, theirs = (exported(s, name).vjp() for s in BOTH)
    a, b = described(ours), described(theirs)
    for field in (
        "in_avals",
        "out_avals",
        "in_tree",
        "out_tree",
        "module_kept_var_idx",
        "platforms",
    ):
        assert a[field] == b[field], field
    _, args, _ = FUNCTIONS[name]
    leaves = jax.tree_util.tree_leaves(args)
    cts = [np.ones(v.shape, v.dtype) for v in theirs.in_avals[len(leaves) :]]
    same(values(ours.call(*leaves, *cts)), values(theirs.call(*leaves, *cts)))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_derivative_orders(order):
    results = []
    for s in BOTH:
        e = s.x.deserialize(exported(s, "integers").serialize(vjp_order=order))
        chain = []
        while e.has_vjp():
            e = e.vjp()
            chain.append((len(e.in_avals), len(e.out_avals)))
        results.append(chain)
    assert results[0] == results[1] and len(results[0]) == order


def test_gradients_through_calls():
    for grads in (1, 2):
        results = []
        for s in BOTH:
            e = exported(s, "tree")
            f = lambda x, e=e: (e.call(x, {"k": 2.0})["a"] ** 2).sum()
            for _ in range(grads):
                g = s.lib.grad(f)
                f = lambda x, g=g: g(x).sum()
            results.append([np.asarray(g(X)), np.asarray(s.jit(g)(X))])
        same(*results)


def error_of(f):
    try:
        f()
    except Exception as e:
        return e
    return None


CALLS = {
    "rank": lambda s, e: e.call(M, {"k": 2.0}),
    "size": lambda s, e: e.call(X[:2], {"k": 2.0}),
    "dtype": lambda s, e: e.call(X.astype(np.int32), {"k": 2.0}),
    "inner dtype": lambda s, e: e.call(X, {"k": 2}),
    "keys": lambda s, e: e.call(X, {"q": 2.0}),
    "number": lambda s, e: e.call(X),
    "keywords": lambda s, e: e.call(X, o={"k": 2.0}),
    "no array": lambda s, e: e.call("x", {"k": 2.0}),
    "no vjp": lambda s, e: s.x.deserialize(e.serialize()).vjp(),
    "no vjp in grad": lambda s, e: s.lib.grad(
        lambda x: s.x.deserialize(e.serialize()).call(x, {"k": 2.0})["b"][0]
    )(X),
    "forward": lambda s, e: s.lib.jvp(lambda x: e.call(x, {"k": 2.0})["a"], (X,), (X,)),
    "vmap": lambda s, e: s.lib.vmap(lambda x: e.call(x, {"k": 2.0})["a"])(M),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_errors(name):
    ours, theirs = (error_of(lambda s=s: CALLS[name](s, exported(s, "tree"))) for s in BOTH)
    assert theirs is not None and isinstance(ours, type(theirs)), (ours, theirs)
    for fragment in ("Shape mismatch for args[0].shape[0]", "Rank mismatch for args[0]",
                     "Dtype mismatch for args[0]", "Dtype mismatch for args[1]['k']",
                     "must have the same pytree structure", "No VJP is available"):  # fmt: skip
        assert (fragment in str(ours)) == (fragment in str(theirs)), fragment


P = collections.namedtuple("P", "a b")
Q = collections.namedtuple("Q", "a b")


class Node:
    def __init__(self, x):
        self.x = x


EXPORTS = {
    "not jitted": lambda s: s.x.export(lambda x: x),
    "text": lambda s: s.export(lambda s: lambda x: x, "text"),
    "closed over": lambda s: s.jit(lambda x: s.export(lambda s: lambda y: x + y, X).call(x))(X),
    "no branch": lambda s: s.export(
        lambda s: lambda x: s.lax.platform_dependent(x, tpu=s.np.sin), X
    ),
    "other platform": lambda s: s.export(lambda s: lambda x: x + 1, X, platforms=["cuda"]).call(X),
    "other platform in export": lambda s: s.export(
        lambda s: exported(s, "elsewhere").call, X, platforms=["cpu"]
    ),
    "no matching platform": lambda s: s.export(
        lambda s: exported(s, "elsewhere").call, X, platforms=["cuda", "cpu"]
    ),
    "tuple keys": lambda s: s.export(lambda s: lambda x: x, {(1, 2): X}).serialize(),
    "unregistered": lambda s: s.export(lambda s: lambda x: x, P(X, X)).serialize(),
    "no namedtuple": lambda s: s.x.register_namedtuple_serialization(int, serialized_name="i"),
    "no node": lambda s: s.x.register_pytree_node_serialization(
        Node, serialized_name="n", serialize_auxdata=bytes, deserialize_auxdata=bytes
    ),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_export_errors(name):
    ours, theirs = (error_of(lambda s=s: EXPORTS[name](s)) for s in BOTH)
    assert theirs is not None and isinstance(ours, type(theirs)), (ours, theirs)


def test_disabled_platform_check():
    for s in BOTH:
        check = s.x.DisabledSafetyCheck.platform()
        e = s.export(lambda s: s.np.sin, X, platforms=["cuda"], disabled_checks=[check])
        np.testing.assert_allclose(e.call(X), np.sin(X), rtol=1e-6)


def test_checks():
    for s in BOTH:
        D = s.x.DisabledSafetyCheck
        c = D.custom_call("a")
        assert (str(c), repr(D.platform())) == ("custom_call:a", "platform")
        assert c == D.custom_call("a") and c != D.custom_call("b") and c.is_custom_call() == "a"


@pytest.mark.parametrize(
    "tree", [(X, [X, None, ()]), {"b": X, "a": {}}, collections.OrderedDict(z=X, a=X), Q(X, X)]
)
def test_trees(tree):
    results = []
    for s in BOTH:
        try:
            s.x.register_namedtuple_serialization(Q, serialized_name="oracle.Q")
        except ValueError as e:
            assert "Duplicate serialization registration" in str(e)
        e = s.x.deserialize(s.export(lambda s: lambda t: t, tree).serialize())
        results.append((str(e.in_tree), str(e.out_tree), values(e.call(tree))))
    assert results[0][:2] == results[1][:2]
    same(results[0][2], results[1][2])


def test_module_values():
    for s in BOTH:
        least, most = (
            s.x.minimum_supported_calling_convention_version,
            s.x.maximum_supported_calling_convention_version,
        )
        assert (least, most, s.x.default_export_platform()) == (9, 10, "cpu")


@pytest.mark.parametrize("name", ["several", "dependent"])
def test_multi_platform_module_signature(name):
    """Both modules take an i32 before the arguments."""
    for s in BOTH:
        text = exported(s, name).mlir_module()
        assert "@main(%arg0: tensor<i32>" in text and '"_platform_index"' in text


def test_nested():
    results = []
    for s in BOTH:
        inner = exported(s, "dependent")
        outer = s.export(lambda s: lambda x: 2 * inner.call(x), X)  # noqa: B023
        again = s.x.deserialize(outer.serialize(vjp_order=1))
        g = s.lib.grad(lambda x: again.call(x).sum())  # noqa: B023
        results.append([np.asarray(again.call(X)), np.asarray(g(X))])
    same(*results)


def test_keys():
    for s in BOTH:
        random = s.lib.random
        f = lambda s: lambda k: (s.lib.random.bits(k, (2,)), s.lib.random.split(k, 2))
        e = s.x.deserialize(s.export(f, random.key(0)).serialize())
        assert str(e.in_avals[0].dtype) == "key<fry>"
        bits, _ = e.call(random.key(3))
        assert np.asarray(bits).tolist() == [318053758, 4029299397]


# Symbolic shapes


SYMBOLIC = {
    "sum": (lambda s: lambda x: x.sum(0) + x.shape[0], "(b, 3)", [(2, 3), (5, 3)]),
    "reshape": (lambda s: lambda x: x.reshape(-1, x.shape[0]), "(b, 2*c)", [(2, 4), (3, 6)]),
    "concatenate": (lambda s: lambda x: s.np.concatenate([x, x[:1]]), "(n, ...)", [(4, 3), (1, 3)]),
    "broadcast": (lambda s: lambda x: s.np.ones((x.shape[0], 2)) * x[:, :1], "(n, ...)", [(4, 3)]),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_shapes(name):
    f, spec, shapes = SYMBOLIC[name]
    results = []
    for s in BOTH:
        args = s.x.symbolic_args_specs((np.zeros(shapes[0], np.float32),), spec)
        e = s.export(f, *args)
        e = s.x.deserialize(e.serialize(vjp_order=1))
        texts = [str(a.shape) for a in (*e.in_avals, *e.out_avals)]
        outs = [np.asarray(e.call(np.ones(shape, np.float32))) for shape in shapes]
        g = s.lib.grad(lambda x: e.call(x).sum())  # noqa: B023
        grads = [np.asarray(g(np.ones(shape, np.float32))) for shape in shapes]
        results.append((texts, e.uses_global_constants, outs, grads))
    assert results[0][:2] == results[1][:2]
    same(results[0][2], results[1][2])
    same(results[0][3], results[1][3])


@pytest.mark.parametrize("shape", [(1, 4), (4, 3), (4,), (4, 4, 4), (3, 0)])
def test_shape_mismatches(shape):
    errors = []
    for s in BOTH:
        b, h = s.x.symbolic_shape("b, 2*h", constraints=["b >= 2"])
        e = s.export(lambda s: lambda x: x * 2, s.lib.ShapeDtypeStruct((b, h), np.float32))
        errors.append(error_of(lambda e=e: e.call(np.ones(shape, np.float32))))
    assert errors[1] is not None and isinstance(errors[0], type(errors[1])), errors
