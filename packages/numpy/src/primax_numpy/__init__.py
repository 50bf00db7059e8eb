"""primax-numpy: NumPy's functions on traceable arrays, and random numbers.

Importing the package also registers the methods and the indexing of arrays. Rarely used modules
are imported on the first use of one of their names.
"""

from importlib import import_module as _import_module
from types import FunctionType as _FunctionType
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import TypeAlias

from . import _core_version as _core_version
from primax_core import Array
from primax_core.extend import register_internal_path as _register

from . import _methods as _methods
from ._stages import add_stages as _add_stages
from ._array_api import __array_api_version__ as __array_api_version__
from ._array_api import __array_namespace_info__ as __array_namespace_info__
from ._arithmetic import abs as abs
from ._arithmetic import absolute as absolute
from ._arithmetic import divide as divide
from ._arithmetic import divmod as divmod
from ._arithmetic import fabs as fabs
from ._arithmetic import float_power as float_power
from ._arithmetic import floor_divide as floor_divide
from ._arithmetic import fmod as fmod
from ._arithmetic import gcd as gcd
from ._arithmetic import lcm as lcm
from ._arithmetic import mod as mod
from ._arithmetic import positive as positive
from ._arithmetic import pow as pow
from ._arithmetic import power as power
from ._arithmetic import reciprocal as reciprocal
from ._arithmetic import remainder as remainder
from ._arithmetic import sign as sign
from ._arithmetic import square as square
from ._arithmetic import true_divide as true_divide
from ._constants import e as e
from ._constants import euler_gamma as euler_gamma
from ._constants import inf as inf
from ._constants import nan as nan
from ._constants import newaxis as newaxis
from ._constants import pi as pi
from ._counting import bincount as bincount
from ._creation import array as array
from ._creation import asarray as asarray
from ._creation import astype as astype
from ._creation import copy as copy
from ._cumulative import cumprod as cumprod
from ._cumulative import cumsum as cumsum
from ._cumulative import cumulative_prod as cumulative_prod
from ._cumulative import cumulative_sum as cumulative_sum
from ._cumulative import nancumprod as nancumprod
from ._cumulative import nancumsum as nancumsum
from ._elementwise import broadcast_shapes as broadcast_shapes
from ._elementwise import clip as clip
from ._elementwise import fmax as fmax
from ._elementwise import fmin as fmin
from ._elementwise import select as select
from ._elementwise import where as where
from ._exponentials import cbrt as cbrt
from ._exponentials import exp as exp
from ._exponentials import exp2 as exp2
from ._exponentials import expm1 as expm1
from ._exponentials import i0 as i0
from ._exponentials import log as log
from ._exponentials import log10 as log10
from ._exponentials import log1p as log1p
from ._exponentials import log2 as log2
from ._exponentials import sqrt as sqrt
from ._filled import empty as empty
from ._filled import empty_like as empty_like
from ._filled import eye as eye
from ._filled import full as full
from ._filled import full_like as full_like
from ._filled import identity as identity
from ._filled import ones as ones
from ._filled import ones_like as ones_like
from ._filled import tri as tri
from ._filled import zeros as zeros
from ._filled import zeros_like as zeros_like
from ._joining import append as append
from ._joining import block as block
from ._joining import column_stack as column_stack
from ._joining import concat as concat
from ._joining import concatenate as concatenate
from ._joining import dstack as dstack
from ._joining import hstack as hstack
from ._joining import repeat as repeat
from ._joining import stack as stack
from ._joining import tile as tile
from ._joining import vstack as vstack
from ._logic import allclose as allclose
from ._logic import array_equal as array_equal
from ._logic import array_equiv as array_equiv
from ._logic import conj as conj
from ._logic import conjugate as conjugate
from ._logic import equal as equal
from ._logic import greater as greater
from ._logic import greater_equal as greater_equal
from ._logic import imag as imag
from ._logic import isclose as isclose
from ._logic import iscomplex as iscomplex
from ._logic import iscomplexobj as iscomplexobj
from ._logic import isfinite as isfinite
from ._logic import isinf as isinf
from ._logic import isnan as isnan
from ._logic import isneginf as isneginf
from ._logic import isposinf as isposinf
from ._logic import isreal as isreal
from ._logic import isrealobj as isrealobj
from ._logic import isscalar as isscalar
from ._logic import iterable as iterable
from ._logic import less as less
from ._logic import less_equal as less_equal
from ._logic import logical_not as logical_not
from ._logic import not_equal as not_equal
from ._logic import real as real
from ._numpy_ufuncs import add as add
from ._numpy_ufuncs import bitwise_and as bitwise_and
from ._numpy_ufuncs import bitwise_or as bitwise_or
from ._numpy_ufuncs import bitwise_xor as bitwise_xor
from ._numpy_ufuncs import logaddexp as logaddexp
from ._numpy_ufuncs import logaddexp2 as logaddexp2
from ._numpy_ufuncs import logical_and as logical_and
from ._numpy_ufuncs import logical_or as logical_or
from ._numpy_ufuncs import logical_xor as logical_xor
from ._numpy_ufuncs import maximum as maximum
from ._numpy_ufuncs import minimum as minimum
from ._numpy_ufuncs import multiply as multiply
from ._numpy_ufuncs import negative as negative
from ._numpy_ufuncs import subtract as subtract
from ._positions import argwhere as argwhere
from ._positions import compress as compress
from ._positions import extract as extract
from ._positions import flatnonzero as flatnonzero
from ._positions import nonzero as nonzero
from ._positions import ravel_multi_index as ravel_multi_index
from ._positions import unravel_index as unravel_index
from ._products import cross as cross
from ._products import dot as dot
from ._products import inner as inner
from ._products import kron as kron
from ._products import matmul as matmul
from ._products import matvec as matvec
from ._products import outer as outer
from ._products import tensordot as tensordot
from ._products import vdot as vdot
from ._products import vecdot as vecdot
from ._products import vecmat as vecmat
from ._ranges import arange as arange
from ._ranges import geomspace as geomspace
from ._ranges import linspace as linspace
from ._ranges import logspace as logspace
from ._reductions import all as all
from ._reductions import amax as amax
from ._reductions import amin as amin
from ._reductions import any as any
from ._reductions import argmax as argmax
from ._reductions import argmin as argmin
from ._reductions import count_nonzero as count_nonzero
from ._reductions import max as max
from ._reductions import min as min
from ._reductions import minmax as minmax
from ._reductions import prod as prod
from ._reductions import ptp as ptp
from ._reductions import sum as sum
from ._rounding import around as around
from ._rounding import ceil as ceil
from ._rounding import floor as floor
from ._rounding import rint as rint
from ._rounding import round as round
from ._rounding import trunc as trunc
from ._searching import digitize as digitize
from ._searching import searchsorted as searchsorted
from ._shapes import atleast_1d as atleast_1d
from ._shapes import atleast_2d as atleast_2d
from ._shapes import atleast_3d as atleast_3d
from ._shapes import broadcast_arrays as broadcast_arrays
from ._shapes import broadcast_to as broadcast_to
from ._shapes import expand_dims as expand_dims
from ._shapes import matrix_transpose as matrix_transpose
from ._shapes import moveaxis as moveaxis
from ._shapes import ndim as ndim
from ._shapes import permute_dims as permute_dims
from ._shapes import ravel as ravel
from ._shapes import reshape as reshape
from ._shapes import resize as resize
from ._shapes import rollaxis as rollaxis
from ._shapes import shape as shape
from ._shapes import size as size
from ._shapes import squeeze as squeeze
from ._shapes import swapaxes as swapaxes
from ._shapes import transpose as transpose
from ._sorting import argpartition as argpartition
from ._sorting import argsort as argsort
from ._sorting import lexsort as lexsort
from ._sorting import partition as partition
from ._sorting import sort as sort
from ._sorting import sort_complex as sort_complex
from ._sorting import top_k as top_k
from ._statistics import mean as mean
from ._statistics import std as std
from ._statistics import var as var
from ._taking import choose as choose
from ._taking import place as place
from ._taking import put as put
from ._taking import put_along_axis as put_along_axis
from ._taking import take as take
from ._taking import take_along_axis as take_along_axis
from ._triangles import diag as diag
from ._triangles import diag_indices as diag_indices
from ._triangles import diag_indices_from as diag_indices_from
from ._triangles import diagflat as diagflat
from ._triangles import diagonal as diagonal
from ._triangles import fill_diagonal as fill_diagonal
from ._triangles import mask_indices as mask_indices
from ._triangles import trace as trace
from ._triangles import tril as tril
from ._triangles import tril_indices as tril_indices
from ._triangles import tril_indices_from as tril_indices_from
from ._triangles import triu as triu
from ._triangles import triu_indices as triu_indices
from ._triangles import triu_indices_from as triu_indices_from
from ._triangles import vander as vander
from ._trigonometry import acos as acos
from ._trigonometry import acosh as acosh
from ._trigonometry import angle as angle
from ._trigonometry import arccos as arccos
from ._trigonometry import arccosh as arccosh
from ._trigonometry import arcsin as arcsin
from ._trigonometry import arcsinh as arcsinh
from ._trigonometry import arctan as arctan
from ._trigonometry import arctan2 as arctan2
from ._trigonometry import arctanh as arctanh
from ._trigonometry import asin as asin
from ._trigonometry import asinh as asinh
from ._trigonometry import atan as atan
from ._trigonometry import atan2 as atan2
from ._trigonometry import atanh as atanh
from ._trigonometry import cos as cos
from ._trigonometry import cosh as cosh
from ._trigonometry import deg2rad as deg2rad
from ._trigonometry import degrees as degrees
from ._trigonometry import hypot as hypot
from ._trigonometry import rad2deg as rad2deg
from ._trigonometry import radians as radians
from ._trigonometry import sin as sin
from ._trigonometry import sinc as sinc
from ._trigonometry import sinh as sinh
from ._trigonometry import tan as tan
from ._trigonometry import tanh as tanh
from ._flips import flip as flip
from ._flips import fliplr as fliplr
from ._flips import flipud as flipud
from ._flips import roll as roll
from ._flips import rot90 as rot90
from ._types import ComplexWarning as ComplexWarning
from ._types import bfloat16 as bfloat16
from ._types import bool as bool
from ._types import bool_ as bool_
from ._types import can_cast as can_cast
from ._types import cdouble as cdouble
from ._types import character as character
from ._types import complex128 as complex128
from ._types import complex64 as complex64
from ._types import complex_ as complex_
from ._types import complexfloating as complexfloating
from ._types import csingle as csingle
from ._types import double as double
from ._types import dtype as dtype
from ._types import finfo as finfo
from ._types import flexible as flexible
from ._types import float16 as float16
from ._types import float32 as float32
from ._types import float4_e2m1fn as float4_e2m1fn
from ._types import float64 as float64
from ._types import float6_e2m3fn as float6_e2m3fn
from ._types import float6_e3m2fn as float6_e3m2fn
from ._types import float8_e3m4 as float8_e3m4
from ._types import float8_e4m3 as float8_e4m3
from ._types import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from ._types import float8_e4m3fn as float8_e4m3fn
from ._types import float8_e4m3fnuz as float8_e4m3fnuz
from ._types import float8_e5m2 as float8_e5m2
from ._types import float8_e5m2fnuz as float8_e5m2fnuz
from ._types import float8_e8m0fnu as float8_e8m0fnu
from ._types import float_ as float_
from ._types import floating as floating
from ._types import generic as generic
from ._types import iinfo as iinfo
from ._types import inexact as inexact
from ._types import int1 as int1
from ._types import int16 as int16
from ._types import int2 as int2
from ._types import int32 as int32
from ._types import int4 as int4
from ._types import int64 as int64
from ._types import int8 as int8
from ._types import int_ as int_
from ._types import integer as integer
from ._types import isdtype as isdtype
from ._types import issubdtype as issubdtype
from ._types import number as number
from ._types import object_ as object_
from ._types import promote_types as promote_types
from ._types import result_type as result_type
from ._types import signedinteger as signedinteger
from ._types import single as single
from ._types import uint as uint
from ._types import uint1 as uint1
from ._types import uint16 as uint16
from ._types import uint2 as uint2
from ._types import uint32 as uint32
from ._types import uint4 as uint4
from ._types import uint64 as uint64
from ._types import uint8 as uint8
from ._types import unsignedinteger as unsignedinteger
from ._ufuncs import frompyfunc as frompyfunc
from ._ufuncs import ufunc as ufunc

if TYPE_CHECKING:
    from . import fft as fft
    from . import linalg as linalg
    from . import random as random
    from ._bits import bitwise_count as bitwise_count
    from ._bits import bitwise_invert as bitwise_invert
    from ._bits import bitwise_left_shift as bitwise_left_shift
    from ._bits import bitwise_not as bitwise_not
    from ._bits import bitwise_right_shift as bitwise_right_shift
    from ._bits import invert as invert
    from ._bits import left_shift as left_shift
    from ._bits import packbits as packbits
    from ._bits import right_shift as right_shift
    from ._bits import unpackbits as unpackbits
    from ._convolving import convolve as convolve
    from ._convolving import correlate as correlate
    from ._covariance import average as average
    from ._covariance import corrcoef as corrcoef
    from ._covariance import cov as cov
    from ._differences import diff as diff
    from ._differences import ediff1d as ediff1d
    from ._differences import gradient as gradient
    from ._differences import trapezoid as trapezoid
    from ._editing import delete as delete
    from ._editing import insert as insert
    from ._editing import trim_zeros as trim_zeros
    from ._einsum import einsum as einsum
    from ._einsum import einsum_path as einsum_path
    from ._files import from_dlpack as from_dlpack
    from ._files import frombuffer as frombuffer
    from ._files import fromfile as fromfile
    from ._files import fromiter as fromiter
    from ._files import fromstring as fromstring
    from ._files import load as load
    from ._files import save as save
    from ._files import savez as savez
    from ._float_parts import copysign as copysign
    from ._float_parts import frexp as frexp
    from ._float_parts import heaviside as heaviside
    from ._float_parts import ldexp as ldexp
    from ._float_parts import modf as modf
    from ._float_parts import nan_to_num as nan_to_num
    from ._float_parts import nextafter as nextafter
    from ._float_parts import signbit as signbit
    from ._float_parts import spacing as spacing
    from ._grids import c_ as c_
    from ._grids import index_exp as index_exp
    from ._grids import indices as indices
    from ._grids import ix_ as ix_
    from ._grids import meshgrid as meshgrid
    from ._grids import mgrid as mgrid
    from ._grids import ogrid as ogrid
    from ._grids import r_ as r_
    from ._grids import s_ as s_
    from ._histograms import histogram as histogram
    from ._histograms import histogram2d as histogram2d
    from ._histograms import histogram_bin_edges as histogram_bin_edges
    from ._histograms import histogramdd as histogramdd
    from ._interpolation import interp as interp
    from ._interpolation import unwrap as unwrap
    from ._nan_reductions import nanargmax as nanargmax
    from ._nan_reductions import nanargmin as nanargmin
    from ._nan_reductions import nanmax as nanmax
    from ._nan_reductions import nanmean as nanmean
    from ._nan_reductions import nanmin as nanmin
    from ._nan_reductions import nanprod as nanprod
    from ._nan_reductions import nanstd as nanstd
    from ._nan_reductions import nansum as nansum
    from ._nan_reductions import nanvar as nanvar
    from ._padding import pad as pad
    from ._polynomial_fits import polyfit as polyfit
    from ._polynomials import poly as poly
    from ._polynomials import polyadd as polyadd
    from ._polynomials import polyder as polyder
    from ._polynomials import polydiv as polydiv
    from ._polynomials import polyint as polyint
    from ._polynomials import polymul as polymul
    from ._polynomials import polysub as polysub
    from ._polynomials import polyval as polyval
    from ._polynomials import roots as roots
    from ._printing import array_repr as array_repr
    from ._printing import array_str as array_str
    from ._printing import get_printoptions as get_printoptions
    from ._printing import printoptions as printoptions
    from ._printing import set_printoptions as set_printoptions
    from ._quantiles import median as median
    from ._quantiles import nanmedian as nanmedian
    from ._quantiles import nanpercentile as nanpercentile
    from ._quantiles import nanquantile as nanquantile
    from ._quantiles import percentile as percentile
    from ._quantiles import quantile as quantile
    from ._set_operations import intersect1d as intersect1d
    from ._set_operations import isin as isin
    from ._set_operations import setdiff1d as setdiff1d
    from ._set_operations import setxor1d as setxor1d
    from ._set_operations import union1d as union1d
    from ._splitting import array_split as array_split
    from ._splitting import dsplit as dsplit
    from ._splitting import hsplit as hsplit
    from ._splitting import split as split
    from ._splitting import unstack as unstack
    from ._splitting import vsplit as vsplit
    from ._unique import unique as unique
    from ._unique import unique_all as unique_all
    from ._unique import unique_counts as unique_counts
    from ._unique import unique_inverse as unique_inverse
    from ._unique import unique_values as unique_values
    from ._vectorizing import apply_along_axis as apply_along_axis
    from ._vectorizing import apply_over_axes as apply_over_axes
    from ._vectorizing import fromfunction as fromfunction
    from ._vectorizing import piecewise as piecewise
    from ._vectorizing import vectorize as vectorize
    from ._window_functions import bartlett as bartlett
    from ._window_functions import blackman as blackman
    from ._window_functions import hamming as hamming
    from ._window_functions import hanning as hanning
    from ._window_functions import kaiser as kaiser

ndarray: TypeAlias = Array

__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])

_MODULES: dict[str, tuple[str, ...]] = {
    "fft": (),
    "linalg": (),
    "random": (),
    "_bits": (
        "bitwise_count",
        "bitwise_invert",
        "bitwise_left_shift",
        "bitwise_not",
        "bitwise_right_shift",
        "invert",
        "left_shift",
        "packbits",
        "right_shift",
        "unpackbits",
    ),
    "_convolving": (
        "convolve",
        "correlate",
    ),
    "_covariance": (
        "average",
        "corrcoef",
        "cov",
    ),
    "_differences": (
        "diff",
        "ediff1d",
        "gradient",
        "trapezoid",
    ),
    "_editing": (
        "delete",
        "insert",
        "trim_zeros",
    ),
    "_einsum": (
        "einsum",
        "einsum_path",
    ),
    "_files": (
        "from_dlpack",
        "frombuffer",
        "fromfile",
        "fromiter",
        "fromstring",
        "load",
        "save",
        "savez",
    ),
    "_float_parts": (
        "copysign",
        "frexp",
        "heaviside",
        "ldexp",
        "modf",
        "nan_to_num",
        "nextafter",
        "signbit",
        "spacing",
    ),
    "_grids": (
        "c_",
        "index_exp",
        "indices",
        "ix_",
        "meshgrid",
        "mgrid",
        "ogrid",
        "r_",
        "s_",
    ),
    "_histograms": (
        "histogram",
        "histogram2d",
        "histogram_bin_edges",
        "histogramdd",
    ),
    "_interpolation": (
        "interp",
        "unwrap",
    ),
    "_nan_reductions": (
        "nanargmax",
        "nanargmin",
        "nanmax",
        "nanmean",
        "nanmin",
        "nanprod",
        "nanstd",
        "nansum",
        "nanvar",
    ),
    "_padding": ("pad",),
    "_polynomial_fits": ("polyfit",),
    "_polynomials": (
        "poly",
        "polyadd",
        "polyder",
        "polydiv",
        "polyint",
        "polymul",
        "polysub",
        "polyval",
        "roots",
    ),
    "_printing": (
        "array_repr",
        "array_str",
        "get_printoptions",
        "printoptions",
        "set_printoptions",
    ),
    "_quantiles": (
        "median",
        "nanmedian",
        "nanpercentile",
        "nanquantile",
        "percentile",
        "quantile",
    ),
    "_set_operations": (
        "intersect1d",
        "isin",
        "setdiff1d",
        "setxor1d",
        "union1d",
    ),
    "_splitting": (
        "array_split",
        "dsplit",
        "hsplit",
        "split",
        "unstack",
        "vsplit",
    ),
    "_unique": (
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
    ),
    "_vectorizing": (
        "apply_along_axis",
        "apply_over_axes",
        "fromfunction",
        "piecewise",
        "vectorize",
    ),
    "_window_functions": (
        "bartlett",
        "blackman",
        "hamming",
        "hanning",
        "kaiser",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in (*names, module)}

for _function in [v for k, v in globals().items() if k[0] != "_" and type(v) is _FunctionType]:
    _add_stages(_function)


def __getattr__(name: str) -> _Any:
    module_name = _MODULE_OF.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(f".{module_name}", __name__)
    value = globals()[name] = module if name == module_name else getattr(module, name)
    if type(value) is _FunctionType:
        _add_stages(value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF} - {"TYPE_CHECKING", "TypeAlias"})
