"""The layers up to the transformations import without jaxlib, but for the registry of pytrees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import primax_core

PROGRAM = """
import importlib, pkgutil, sys, types

ROOT = {root!r}


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "jaxlib":
            raise ImportError(name + " is blocked")


class Registered(type):
    # Every function of the registry, doing nothing.
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Registered(name, (), {{}})


sys.meta_path.insert(0, Blocked())
package = types.ModuleType(ROOT)  # the root itself imports all layers
package.__path__ = [{path!r}]
sys.modules[ROOT] = package
sys.modules[ROOT + "._base._pytree_native"] = StandIn("registry")
for layer in ("_base", "_ir", "_trace", "_transform"):
    layer = importlib.import_module(ROOT + "." + layer)
    for module in pkgutil.walk_packages(layer.__path__, layer.__name__ + "."):
        importlib.import_module(module.name)
below = [name[len(ROOT) + 1 :] for name in sys.modules if name.startswith(ROOT + ".")]
print(*sorted({{name.split(".")[0] for name in below}}))
"""


def test_layers_up_to_the_transformations_import_without_jaxlib() -> None:
    name, path = primax_core.__name__, str(Path(primax_core.__file__).parent)
    code = PROGRAM.format(root=name, path=path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["_base", "_ir", "_trace", "_transform"]
