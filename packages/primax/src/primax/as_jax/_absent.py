"""Modules of ``jax`` for backends that Primax does not have.

Libraries import them at their top beside code that never uses them on the present devices. So the
import succeeds, and every name is a class that raises an error where it is used: the error says
what to use instead. While a module of a library is imported, its own code may call such a class, to
decorate a function or to build a constant; the result is another absent name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from inspect import CO_OPTIMIZED
from types import ModuleType
from typing import Any, Final, NoReturn

from .._aliases import Loader
from . import _missing

_TRITON: Final = (
    "Kernels for NVIDIA GPUs are compiled by Triton: write them with primax.experimental.pallas, "
    "or call Triton's own functions with triton_call"
)
_EXPANDED: Final = "write the operations around a kernel outside of it, and let XLA fuse them"

# The modules under the names that an import statement asks for, and what to use instead.
ABSENT: Final = {
    "experimental.compute_on": "Functions compute where their arguments are: move these with "
    "device_put to a device or to primax.memory.Space.Host",
    "experimental.mosaic": _TRITON,
    "experimental.pallas.fuser": f"Kernels are not fused with other functions: {_EXPANDED}",
    "experimental.pallas.mosaic_gpu": _TRITON,
    "experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info": "The kernel of "
    "splash attention computes its blocks from the mask itself: call make_splash_mha",
    "experimental.pallas.tpu_sc": "Kernels for the sparse cores of TPUs cannot be written: use "
    "gather and scatter of primax.lax",
}
_KERNELS: Final = "experimental.pallas"


def absent_name(name: str) -> str | None:
    """The name below ``jax`` of an absent module; ``None`` for another module.

    A ``from`` import asks for the real name of the parent, such as ``primax_kernels.fuser``.
    """
    for prefix, public in (
        ("jax.", ""),
        ("primax_kernels.", f"{_KERNELS}."),
        ("primax.as_jax._tpu_kernels.", f"{_KERNELS}.ops.tpu."),
        ("primax.experimental.", "experimental."),
    ):
        if name.startswith(prefix):
            public += name[len(prefix) :]
            while public and public not in ABSENT:
                public = public.rpartition(".")[0]
            return public or None
    return None


class Absent(type):
    """Class of absent names."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{cls.__name__}.{name}", (), {"instead": cls.instead})

    def __getitem__(cls, index: Any) -> Any:
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        of_import = not frame.f_code.co_flags & CO_OPTIMIZED  # the body of a module or class
        if of_import and frame.f_globals.get("__name__") != "__main__":
            return Absent(f"{cls.__name__}()", (), {"instead": cls.instead})
        cls._refuse()

    def _refuse(cls) -> NoReturn:
        _missing.note(cls.__name__)
        raise NotImplementedError(f"Primax has no {cls.__name__}. {cls.instead}.")

    def __repr__(cls) -> str:
        return f"<absent {cls.__name__}>"


class AbsentModule(ModuleType):
    """A module whose names are absent."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        public = absent_name(self.__name__)
        assert public is not None
        return Absent(f"jax.{public}.{name}", (), {"instead": ABSENT[public]})


class AbsentLoader(Loader):
    """Loader of absent modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create a module without names."""
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the names are made when they are read."""


def find_spec(name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
    """The spec of an absent module."""
    return None if absent_name(name) is None else ModuleSpec(name, AbsentLoader(), is_package=True)


def remove() -> None:
    """Remove the absent modules that were imported."""
    for name, module in [*sys.modules.items()]:
        if isinstance(module, AbsentModule):
            del sys.modules[name]
            parent, _, last = name.rpartition(".")
            vars(sys.modules.get(parent, module)).pop(last, None)
