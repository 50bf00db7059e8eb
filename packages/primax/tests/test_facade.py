"""Tests of the facade's names and of the errors for missing wheels."""

from __future__ import annotations

import importlib
import importlib.util
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


def test_facade_has_every_public_core_name() -> None:
    names = {name for name in dir(primax_core) if not name.startswith("_")}
    names -= {"config", "extend", *EXTENDED}  # the facade's own have more names
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
            assert getattr(module, member) is getattr(core, member)


def test_names_of_the_reference_for_errors() -> None:
    assert primax.errors.JAXTypeError is primax_core.errors.PrimaxTypeError
    assert primax.errors.JAXIndexError is primax_core.errors.PrimaxIndexError
    assert not hasattr(primax_core.errors, "JAXTypeError")
    with pytest.raises(primax.errors.JAXTypeError, match="section TracerBoolConversionError"):
        primax.jit(bool)(1.0)


def test_attributes_of_the_reference_on_classes_of_the_core() -> None:
    jaxpr = primax.make_jaxpr(lambda x: primax.lax.sin(x))(1.0)
    assert jaxpr.jaxpr is jaxpr and jaxpr.literals is jaxpr.consts
    assert jaxpr.map_jaxpr(lambda j: j.replace(eqns=[])).eqns == []
    pullback = primax.vjp(primax.lax.sin, 1.0)[1]
    assert pullback.args_res == pullback.structured_residuals == ()
    assert primax.Inline.JAX_EARLY is primax.Inline["JAX_EARLY"]
    assert [primax.Inline[n] for n in "JAX_EARLY JAX_LATE XLA_EARLY XLA_LATE AUTO".split()] == list(
        primax.Inline
    )
    inner = primax.jit(lambda x: x + 1.0, inline=primax.Inline.JAX_EARLY)
    assert [e.primitive.name for e in primax.make_jaxpr(inner)(1.0).eqns] == ["add"]


def test_core_alone_has_no_attributes_of_the_reference() -> None:
    code = (
        "import primax_core as px, primax_core.extend as e\n"
        "names = ['jaxpr', 'literals', 'map_jaxpr', 'JAX_EARLY', 'JAX_LATE', 'args_res']\n"
        "classes = [e.Jaxpr, px.Inline, type(px.vjp(lambda: ())[1])]\n"
        "found = [(c, n) for c in classes[:2] for n in names if hasattr(c, n)]\n"
        "assert not found and not hasattr(classes[2], 'args_res'), found\n"
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
     "example_libraries.stax", "scipy", "scipy.special", "scipy.stats.norm"],
)  # fmt: skip
def test_missing_modules_name_the_wheel(name: str) -> None:
    extra = "nn" if name.startswith(("nn", "example_libraries")) else "numpy"
    extra = "scipy" if name.startswith("scipy") else extra
    with pytest.raises(ImportError, match=rf"pip install .*primax\[{extra}\]"):
        importlib.import_module(f"primax.{name}")


@alone
def test_core_works_without_the_numpy_wheel() -> None:
    x = primax.device_put(np.float32([1, 2]))
    assert (x + x).tolist() == [2, 4]
    assert primax.grad(lambda x: primax.lax.reduce_sum(x * x, (0,)))(x).tolist() == [2, 4]
