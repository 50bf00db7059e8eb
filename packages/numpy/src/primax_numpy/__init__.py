"""primax-numpy: NumPy's functions on arrays that can be traced, and random numbers.

Importing the package also gives arrays their methods and indexing. Pages that few programs need are
imported when one of their names is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import TypeAlias

from primax_core import Array
from primax_core.extend import register_internal_path as _register

from . import _methods as _methods
from ._constants import e as e
from ._constants import inf as inf
from ._constants import nan as nan
from ._constants import newaxis as newaxis
from ._constants import pi as pi
from ._creation import arange as arange
from ._creation import array as array
from ._creation import asarray as asarray
from ._creation import eye as eye
from ._creation import full as full
from ._creation import full_like as full_like
from ._creation import linspace as linspace
from ._creation import ones as ones
from ._creation import ones_like as ones_like
from ._creation import zeros as zeros
from ._creation import zeros_like as zeros_like
from ._elementwise import abs as abs
from ._elementwise import add as add
from ._elementwise import clip as clip
from ._elementwise import cos as cos
from ._elementwise import divide as divide
from ._elementwise import equal as equal
from ._elementwise import exp as exp
from ._elementwise import expm1 as expm1
from ._elementwise import greater as greater
from ._elementwise import isfinite as isfinite
from ._elementwise import isnan as isnan
from ._elementwise import less as less
from ._elementwise import log as log
from ._elementwise import log1p as log1p
from ._elementwise import maximum as maximum
from ._elementwise import minimum as minimum
from ._elementwise import multiply as multiply
from ._elementwise import negative as negative
from ._elementwise import power as power
from ._elementwise import sin as sin
from ._elementwise import sqrt as sqrt
from ._elementwise import square as square
from ._elementwise import subtract as subtract
from ._elementwise import tan as tan
from ._elementwise import tanh as tanh
from ._elementwise import where as where
from ._methods import astype as astype
from ._products import dot as dot
from ._products import matmul as matmul
from ._products import outer as outer
from ._reading import take as take
from ._reductions import all as all
from ._reductions import any as any
from ._reductions import argmax as argmax
from ._reductions import argmin as argmin
from ._reductions import max as max
from ._reductions import mean as mean
from ._reductions import min as min
from ._reductions import prod as prod
from ._reductions import std as std
from ._reductions import sum as sum
from ._reductions import var as var
from ._shapes import broadcast_to as broadcast_to
from ._shapes import concatenate as concatenate
from ._shapes import expand_dims as expand_dims
from ._shapes import moveaxis as moveaxis
from ._shapes import ravel as ravel
from ._shapes import reshape as reshape
from ._shapes import squeeze as squeeze
from ._shapes import stack as stack
from ._shapes import swapaxes as swapaxes
from ._shapes import transpose as transpose
from ._types import bfloat16 as bfloat16
from ._types import bool_ as bool_
from ._types import complex128 as complex128
from ._types import complex64 as complex64
from ._types import float16 as float16
from ._types import float32 as float32
from ._types import float64 as float64
from ._types import int16 as int16
from ._types import int32 as int32
from ._types import int64 as int64
from ._types import int8 as int8
from ._types import uint16 as uint16
from ._types import uint32 as uint32
from ._types import uint64 as uint64
from ._types import uint8 as uint8

if TYPE_CHECKING:
    from . import fft as fft
    from . import linalg as linalg
    from . import random as random

ndarray: TypeAlias = Array

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])

_PAGES: dict[str, tuple[str, ...]] = {
    "fft": (),
    "linalg": (),
    "random": (),
}
_PAGE_OF = {name: page for page, names in _PAGES.items() for name in (*names, page)}


def __getattr__(name: str) -> _Any:
    page = _PAGE_OF.get(name)
    if page is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(f".{page}", __name__)
    value = globals()[name] = module if name == page else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PAGE_OF} - {"TYPE_CHECKING", "TypeAlias"})
