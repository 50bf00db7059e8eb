"""The share of public parameters whose type is ``Any``: ``python tools/any_share.py PACKAGE...``.

Each public function of the public modules counts once. ``*args`` and ``**kwargs``, which most often
go to a function of the user, are left out. ``nox -s typecheck`` compares the share with a limit.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

# Largest percentage of parameters with the type Any. Only lower a limit, never raise it.
LIMITS: dict[str, float] = {
    "primax_core": 8.5,
    "primax_distributed": 2,
    "primax_ffi": 7,
    "primax_interpreters": 3,
    "primax_kernels": 2,
    "primax_nn": 1,
    "primax_numpy": 3,
    "primax_scipy": 1,
}
DEFAULT_LIMIT = 10.0


def public_modules(package: str) -> Iterator[ModuleType]:
    """The package and its public modules that can be imported."""
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            try:
                yield importlib.import_module(info.name)
            except ImportError:  # of a package that is not installed
                continue


def functions(package: str) -> dict[Any, str]:
    """The package's public functions, each with one of its names."""
    named: dict[Any, str] = {}
    for module in public_modules(package):
        for name in dir(module):
            if name.startswith("_"):
                continue
            try:
                value = inspect.unwrap(getattr(module, name, None))
            except ImportError:  # a name of a package that is not installed
                continue
            if inspect.isfunction(value) and value.__module__.partition(".")[0] == package:
                named.setdefault(value, f"{module.__name__}.{name}")
    return named


def untyped(function: Any) -> tuple[list[str], int]:
    """The names of the parameters with the type ``Any`` or none, and the number of all."""
    names, count = [], 0
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name.startswith("_"):
            continue
        count += 1
        if p.annotation is p.empty or str(p.annotation).removeprefix("typing.") == "Any":
            names.append(p.name)
    return names, count


def is_within_its_limit(package: str, show: bool = False) -> bool:
    """Print the package's share and return True if it does not exceed its limit."""
    some = total = 0
    for function, name in functions(package).items():
        names, count = untyped(function)
        some, total = some + len(names), total + count
        if show and names:
            print(f"  {name}: {', '.join(names)}")
    share = 100 * some / max(total, 1)
    limit = LIMITS.get(package, DEFAULT_LIMIT)
    print(f"{package}: {some} of {total} parameters are Any, {share:.1f} %, limit {limit} %")
    return share <= limit


if __name__ == "__main__":
    packages = [a for a in sys.argv[1:] if a != "--show"]
    results = [is_within_its_limit(p, "--show" in sys.argv) for p in packages]
    sys.exit(not all(results))
