"""primax-interpreters: interpreters of the core's jaxprs, and tools for developers.

``jet``, ``checkify``, ``explain`` and ``export`` interpret jaxprs; ``profiler`` and ``debugger``
observe what runs.

Modules are imported when they are first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register

if TYPE_CHECKING:
    from . import checkify as checkify
    from . import debugger as debugger
    from . import export as export
    from . import insight as insight
    from . import jet as jet
    from . import profiler as profiler
    from ._checkify.faults import Check as Check
    from ._checkify.faults import error_checks as error_checks
    from ._checkify.faults import faults as faults
    from ._insight.cost_rules import Cost as Cost
    from ._insight.cost_rules import Run as Run
    from ._insight.cost_rules import cost as cost
    from ._jet.interpreter import taylor as taylor
    from .insight import explain as explain

__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])

_MODULES = ("checkify", "debugger", "export", "insight", "jet", "profiler")
_HOMES = {
    "Check": "_checkify.faults",
    "Cost": "_insight.cost_rules",
    "Run": "_insight.cost_rules",
    "cost": "_insight.cost_rules",
    "error_checks": "_checkify.faults",
    "explain": "insight",
    "faults": "_checkify.faults",
    "taylor": "_jet.interpreter",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOMES} - {"TYPE_CHECKING"})
