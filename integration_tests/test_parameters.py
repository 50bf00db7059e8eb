"""No parameter is accepted and ignored, except those in tables with the reason.

The functions of ``lax`` and the transformations are called with each optional parameter. For all
public functions, the code reads each parameter.
"""

from __future__ import annotations

import dis
import importlib
import inspect
import types
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from lax_parameters import CALLS
from transformation_parameters import TRANSFORMATIONS

import primax
from primax import lax

_ONE_DEVICE: Final = "the arrays are on this device anyway, and no mesh is set"
_SPARSE: Final = "sparse arrays are not divided over devices"
_HINT: Final = "a hint about performance: results are equal"
_LAPACK: Final = "as in the reference: XLA chooses the algorithm and owns its buffers"
_CONVERGENCE: Final = "the algorithm is direct, or has its own limit"
_PROTOCOL: Final = "the signature of a protocol whose functions ignore it"
_ADAPTER: Final = "a detail of the reference's own modules or jaxprs that Primax does not have"

WITHOUT_EFFECT_IN_LAX: Final[dict[tuple[str, str], str]] = {
    ("all_gather", "to"): "the type of a result does not contain the axes over which it varies",
    ("scan", "_split_transpose"): _HINT,
}
WITHOUT_EFFECT: Final[dict[tuple[str, str], str]] = {
    ("device_put", "donate"): "nothing is copied between places of one device",
    ("device_put", "src"): "the place of the array is known",
    ("jit", "device"): _ONE_DEVICE,
    ("jit", "in_shardings"): _ONE_DEVICE,
    ("new_ref", "kind"): "kinds belong to kernels; the reference ignores it elsewhere too",
    ("vmap", "spmd_axis_name"): _ONE_DEVICE,
}


def optional_parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # an alias of a type
        return []
    return [p.name for p in parameters if p.default is not p.empty]


def functions_with_options(module: Any) -> dict[str, list[str]]:
    functions = {
        name: getattr(module, name)
        for name in dir(module)
        if not name.startswith("_")
        and callable(getattr(module, name))
        and not isinstance(getattr(module, name), type)
    }
    options = {name: optional_parameters(function) for name, function in functions.items()}
    return {name: parameters for name, parameters in options.items() if parameters}


def observe(call: Any, **values: Any) -> str:
    """The jaxpr of a call, or the error."""
    try:
        jaxpr = primax.make_jaxpr(lambda: call(**values))()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return f"{jaxpr}{jaxpr.consts}"


def test_every_function_of_lax_is_in_the_table() -> None:
    expected = functions_with_options(lax)
    del expected["create_token"]  # its parameter orders operations in code for the reference
    del expected["ragged_all_to_all"]  # its groups need several devices
    assert {name: sorted(calls.values) for name, calls in CALLS.items()} == {
        name: sorted(options) for name, options in expected.items()
    }


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, p) for name, calls in CALLS.items() for p in calls.values]
)
def test_parameter_of_lax(name: str, parameter: str) -> None:
    calls = CALLS[name]
    default = observe(calls.call)
    changed = observe(calls.call, **{parameter: calls.values[parameter]})
    assert (default == changed) == ((name, parameter) in WITHOUT_EFFECT_IN_LAX)


def outcome(call: Any, **values: Any) -> str:
    """The results of a call, or the error."""
    try:
        return repr(call(**values))
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def test_every_transformation_is_in_the_table() -> None:
    for name, calls in TRANSFORMATIONS.items():
        function = getattr(primax, name)
        assert sorted(optional_parameters(function)) == sorted(calls.values), name


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, p) for name, calls in TRANSFORMATIONS.items() for p in calls.values],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_parameter_of_a_transformation(name: str, parameter: str) -> None:
    calls = TRANSFORMATIONS[name]
    default = outcome(calls.call)
    assert not default.partition(":")[0].endswith("Error"), default
    changed = outcome(calls.call, **{parameter: calls.values[parameter]})
    assert (default == changed) == ((name, parameter) in WITHOUT_EFFECT)


# All public functions: parameters that the code does not read

MODULES: Final = """
primax primax.lax primax.lax.linalg primax.numpy primax.numpy.linalg primax.numpy.fft primax.nn
primax.nn.initializers primax.random primax.image primax.ops primax.tree_util primax.tree
primax.custom_derivatives primax.custom_batching primax.ad_checkpoint primax.debug primax.dtypes
primax.export primax.stages primax.test_util primax.flatten_util primax.dlpack
primax.experimental primax.experimental.checkify primax.experimental.jet
primax.experimental.pjit primax.experimental.random primax.profiler primax.scipy.special
primax.scipy.linalg primax.scipy.fft primax.scipy.optimize primax.scipy.stats
primax.scipy.integrate primax.scipy.sparse.linalg primax.experimental.sparse
primax.example_libraries.stax primax.example_libraries.optimizers primax.ref primax.monitoring
""".split()

_CHECKED: Final = ("overwrite_a", "overwrite_b", "overwrite_c", "check_finite", "debug")
UNREAD: Final[dict[str, str]] = {
    **dict.fromkeys((f"linalg.{p}" for p in _CHECKED), _LAPACK),
    "linalg.eigh.turbo": _LAPACK,
    "linalg.eigh_tridiagonal.key": _CONVERGENCE,
    "linalg.eigh_tridiagonal.tol": _CONVERGENCE,
    "linalg.polar.eps": _CONVERGENCE,
    "linalg.polar.max_iterations": _CONVERGENCE,
    "linalg.qr.lwork": _LAPACK,
    "linalg.solve_sylvester.tol": _CONVERGENCE,
    "linalg.svd.lapack_driver": _LAPACK,
    "linalg.null_space.lapack_driver": _LAPACK,
    "linalg.cholesky_banded.overwrite_ab": _LAPACK,
    "linalg.solve_banded.overwrite_ab": _LAPACK,
    "linalg.solveh_banded.overwrite_ab": _LAPACK,
    "linalg.solve_continuous_are.balanced": "the iteration is scaled in any case",
    "special.lambertw.tol": "the result is accurate to rounding in any case",
    "numpy.isin.assume_unique": _HINT,
    "numpy.nan_to_num.copy": "arrays are immutable",
    "numpy.top_k.sorted": _HINT,
    "numpy.unique.sorted": "the results are sorted, which satisfies both values",
    "lax.create_token._": _PROTOCOL,
    "lax.scan._split_transpose": _HINT,
    "jet.jet._": _PROTOCOL,
    "sharding": _SPARSE,
    "sparse.bcoo_gather.fill_value": _ADAPTER,
    "sparse.bcoo_gather.indices_are_sorted": _HINT,
    "sparse.bcoo_gather.mode": _ADAPTER,
    "sparse.bcoo_gather.unique_indices": _HINT,
}
"""Reasons by ``module.function.parameter``, or by ``module.parameter`` or ``parameter`` alone."""


def unwrapped(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def unread_parameters(function: types.FunctionType) -> list[str]:
    """The parameters that no instruction of the function loads."""
    names = list(inspect.signature(function).parameters)
    loaded: set[str] = set()
    stack = [function.__code__]
    while stack:
        code = stack.pop()
        stack.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
        for step in dis.get_instructions(code):
            if step.opname.startswith(("LOAD_", "STORE_FAST_LOAD")):
                values = step.argval if isinstance(step.argval, tuple) else (step.argval,)
                loaded.update(v for v in values if isinstance(v, str))
    return [] if "locals" in loaded else [n for n in names if n not in loaded]


def public_functions() -> Iterator[tuple[str, types.FunctionType]]:
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in dir(module):
            function = unwrapped(getattr(module, name, None))
            if name.startswith("_") or not isinstance(function, types.FunctionType):
                continue
            if function.__module__.startswith("primax") and function not in seen:
                seen.add(function)
                yield f"{module_name.rpartition('.')[2]}.{name}", function


def reason_of(function: str, parameter: str) -> str | None:
    module = function.partition(".")[0]
    keys = (f"{function}.{parameter}", f"{module}.{parameter}", parameter)
    return next((key for key in keys if key in UNREAD), None)


def test_code_reads_every_parameter() -> None:
    functions = list(public_functions())
    assert len(functions) > 1000
    unread = {(name, p): reason_of(name, p) for name, f in functions for p in unread_parameters(f)}
    assert not [f"{name}: {p}" for (name, p), reason in unread.items() if reason is None]
    assert set(UNREAD) == set(unread.values()), "a reason is no longer needed"


def test_unread_parameters_are_found() -> None:
    def ignores(used: Any, unused: Any = None) -> Any:
        return lambda: np.sum(used)

    assert unread_parameters(ignores) == ["unused"]
