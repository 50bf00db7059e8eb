"""Tests of the facade's names and of the errors for missing wheels."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import primax
import primax_core
from primax._modules import CORE, EXPERIMENTAL, EXTENDED

alone = pytest.mark.skipif(
    importlib.util.find_spec("primax_numpy") is not None, reason="the numpy wheel is installed"
)


WITH_PARAMETERS = {
    "custom_gradient": {"remat": False, "with_accums": None},
    "grad": {"reduce_axes": ()},
    "linear_transpose": {"reduce_axes": ()},
    "value_and_grad": {"reduce_axes": ()},
    "vjp": {"reduce_axes": ()},
}
"""Functions with parameters that only the reference has, and values that are accepted.

They are the only functions of the facade that are not the core's: the core has no parameters that
it ignores.
"""


def test_facade_has_every_public_core_name() -> None:
    names = {name for name in dir(primax_core) if not name.startswith("_")}
    names -= {
        "cache",  # a command, imported by that of the facade
        "config",
        "extend",
        "testing",
        *EXTENDED,
        *WITH_PARAMETERS,
    }  # the facade's own have more
    experimental = {*EXPERIMENTAL, "io_callback"}
    assert experimental <= names and names - experimental <= set(dir(primax))
    assert experimental <= set(dir(primax.experimental))
    for name in names:
        where = primax.experimental if name in experimental else primax
        assert getattr(where, name) is getattr(primax_core, name)


@pytest.mark.parametrize("name", EXPERIMENTAL)
def test_experimental_modules_are_importable(name: str) -> None:
    module = importlib.import_module(f"primax.experimental.{name}")
    assert module is importlib.import_module(f"primax_core.{name}")


@pytest.mark.parametrize("name", CORE)
def test_core_modules_are_importable_through_the_facade(name: str) -> None:
    module = importlib.import_module(f"primax.{name}")
    assert module is getattr(primax, name) is importlib.import_module(f"primax_core.{name}")


@pytest.mark.parametrize("name", EXTENDED)
def test_extended_modules_have_every_name_of_the_core(name: str) -> None:
    module, core = importlib.import_module(f"primax.{name}"), getattr(primax_core, name)
    assert module is getattr(primax, name) and module is not core
    for member in dir(core):
        if not member.startswith("_"):
            expected = primax if member in WITH_PARAMETERS else core
            assert getattr(module, member) is getattr(expected, member)


def test_names_of_the_reference_for_errors() -> None:
    assert primax.errors.JAXTypeError is primax_core.errors.PrimaxTypeError
    assert primax.errors.JAXIndexError is primax_core.errors.PrimaxIndexError
    assert not hasattr(primax_core.errors, "JAXTypeError")
    with pytest.raises(primax.errors.JAXTypeError, match=r"errors/TracerBoolConversionError\.html"):
        primax.jit(bool)(1.0)


def call(name: str, **parameters: object) -> float:
    """A derivative or value, 2.0, by a function with parameters of the reference."""
    function, double = getattr(primax, name), lambda x: primax.lax.mul(x, 2.0)
    if name == "vjp":
        return float(function(double, 1.0, **parameters)[1](1.0)[0])
    if name == "linear_transpose":
        return float(function(double, 1.0, **parameters)(1.0)[0])
    if name == "custom_gradient":
        with_rule = function(**parameters)(lambda x: (x, lambda ct: primax.lax.mul(ct, 2.0)))
        return float(primax_core.grad(with_rule)(1.0))
    result = function(double, **parameters)(1.0)
    return float(result[1] if name == "value_and_grad" else result)


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_parameters_of_the_reference(name: str) -> None:
    assert call(name) == call(name, **WITH_PARAMETERS[name]) == 2.0
    ours, core = getattr(primax, name), getattr(primax_core, name)
    parameters = inspect.signature(ours).parameters
    expected = inspect.signature(core).parameters
    assert {n: parameters[n].default for n in expected if n != "fun"} == {
        n: p.default for n, p in expected.items() if n != "fun"
    }
    assert parameters.keys() - expected.keys() == WITH_PARAMETERS[name].keys()
    assert ours.__doc__.startswith(inspect.getdoc(core))
    assert all(f"  {p}: " in ours.__doc__ for p in WITH_PARAMETERS[name])
    assert ours.__name__ == name and pickle.loads(pickle.dumps(ours)) is ours


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("custom_gradient", {"with_accums": True}),
        ("grad", {"reduce_axes": ("i",)}),
        ("linear_transpose", {"reduce_axes": ("i",)}),
        ("value_and_grad", {"reduce_axes": ("i",)}),
        ("vjp", {"reduce_axes": ("i",)}),
    ],
)
def test_parameters_that_would_change_results(name: str, parameters: dict[str, object]) -> None:
    (parameter,) = parameters
    with pytest.raises(NotImplementedError, match=f"{name}: {parameter}=.* is not supported: "):
        call(name, **parameters)


@pytest.mark.parametrize("remat", [False, True])
def test_logs_of_custom_gradient(remat: bool) -> None:
    def rule(x):
        return x, lambda ct: (ct * 2.0, {"ct": ct})

    fun = (lambda x: (x, rule)) if remat else rule
    _, pullback = primax.vjp(primax.custom_gradient(fun, with_logs=True, remat=remat), 1.0)
    (ct,), logs = pullback.with_logs(1.0)
    assert (float(ct), float(logs["ct"])) == (2.0, 1.0)


def test_rematerialized_custom_gradient() -> None:
    calls = []

    @primax.custom_gradient(remat=True)
    def f(x):
        factor = x * 3.0

        def rule(x):
            calls.append(x)
            return x * 2.0, lambda ct: ct * factor * x

        return x * 2.0, rule

    assert float(f(2.0)) == 4.0 and not calls
    assert float(primax.grad(f)(2.0)) == 12.0 and len(calls) == 1
    assert float(primax.jit(primax.grad(f))(2.0)) == 12.0


def test_functions_of_the_facade_are_not_in_tracebacks() -> None:
    with pytest.raises(ZeroDivisionError) as e:
        primax.vjp(lambda x: x / (1 // 0), 1.0)
    assert {entry.path.name for entry in e.traceback} == {"test_facade.py"}


def test_attributes_of_the_reference_on_classes_of_the_core() -> None:
    jaxpr = primax.make_jaxpr(lambda x: primax.lax.sin(x))(1.0)
    assert jaxpr.jaxpr is jaxpr and jaxpr.literals is jaxpr.consts
    assert jaxpr.map_jaxpr(lambda j: j.replace(eqns=[])).eqns == []
    pullback = primax.vjp(primax.lax.sin, 1.0)[1]
    assert pullback.structured_residuals == ()
    assert primax.Inline.JAX_EARLY is primax.Inline["JAX_EARLY"]
    assert [primax.Inline[n] for n in "JAX_EARLY JAX_LATE XLA_EARLY XLA_LATE AUTO".split()] == list(
        primax.Inline
    )
    inner = primax.jit(lambda x: x + 1.0, inline=primax.Inline.JAX_EARLY)
    assert [e.primitive.name for e in primax.make_jaxpr(inner)(1.0).eqns] == ["add"]


def test_core_alone_has_no_attributes_of_the_reference() -> None:
    code = (
        "import primax_core as px, primax_core.extend as e\n"
        "names = ['jaxpr', 'literals', 'map_jaxpr', 'JAX_EARLY', 'JAX_LATE']\n"
        "classes = [e.Jaxpr, px.Inline]\n"
        "found = [(c, n) for c in classes for n in names if hasattr(c, n)]\n"
        "pullback = px.vjp(lambda: ())[1]\n"
        "assert not found and not hasattr(pullback, 'structured_residuals'), found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_statements() -> None:
    import primax.lax
    from primax.lax import add, cond
    from primax.tree_util import tree_map

    assert primax.lax.add is add and callable(cond)
    assert tree_map(lambda x: x + 1, {"a": 1}) == {"a": 2}


def test_lazy_names_are_listed() -> None:
    assert {"numpy", "random", "jit", "lax"} <= set(dir(primax))


def test_version() -> None:
    assert primax.__version__.count(".") == 2


def test_import_loads_no_optional_modules() -> None:
    code = (
        "import sys, primax\n"
        "heavy = {'primax_numpy', 'jaxlib.mlir', 'scipy', 'jax'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@alone
def test_missing_methods_name_the_wheel() -> None:
    x = primax.device_put(np.ones(3))
    line = r"pip install .*primax\[numpy\]"
    with pytest.raises(ImportError, match=line):
        x[0]
    with pytest.raises(ImportError, match=line):
        x @ x
    with pytest.raises(AttributeError, match=line):
        x.sum()
    assert not hasattr(x, "at") and not hasattr(x, "reshape")


@alone
@pytest.mark.parametrize(
    "name",
    ["numpy", "numpy.linalg", "random", "image", "ops", "nn", "nn.initializers",
     "example_libraries.stax", "scipy", "scipy.special", "scipy.stats.norm", "insight",
     "profiler", "experimental.checkify", "experimental.jet"],
)  # fmt: skip
def test_missing_modules_name_the_wheel(name: str) -> None:
    extra = "nn" if name.startswith(("nn", "example_libraries")) else "numpy"
    extra = "scipy" if name.startswith("scipy") else extra
    extra = "interpreters" if name.startswith(("insight", "profiler", "experimental")) else extra
    with pytest.raises(ImportError, match=rf"pip install .*primax\[{extra}\]"):
        importlib.import_module(f"primax.{name}")


@alone
def test_missing_explain_names_the_wheel() -> None:
    with pytest.raises(ImportError, match=r"pip install .*primax\[interpreters\]"):
        _ = primax.explain
    for name in ("checkify", "jet"):
        with pytest.raises(ImportError, match=r"pip install .*primax\[interpreters\]"):
            getattr(primax.experimental, name)
    for name in ("breakpoint", "visualize_sharding"):
        with pytest.raises(ImportError, match=r"pip install .*primax\[interpreters\]"):
            getattr(primax.debug, name)


@alone
def test_core_works_without_the_numpy_wheel() -> None:
    x = primax.device_put(np.float32([1, 2]))
    assert (x + x).tolist() == [2, 4]
    assert primax.grad(lambda x: primax.lax.reduce_sum(x * x, (0,)))(x).tolist() == [2, 4]


@pytest.mark.parametrize(
    "module, name, similar",
    [("primax", "gradd", "grad"), ("primax.lax", "scann", "scan"),
     ("primax.extend.core", "Jaxprr", "Jaxpr")],
)  # fmt: skip
def test_python_can_suggest_names(module, name, similar):
    """Python looks for a similar name in the object that the error names."""
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert caught.value.name == name
    assert similar in dir(caught.value.obj)


def test_the_proxy_of_devices_is_that_of_jaxlib():
    from jaxlib import _ifrt_proxy

    from primax.extend import backend

    assert backend.ifrt_proxy is _ifrt_proxy
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        backend.missing
