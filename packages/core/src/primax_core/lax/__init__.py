"""Primitives, in one module each or one for a family, and the public functions of ``lax``.

Rarely used modules are imported on the first use of one of their names.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import operators as operators
from .accuracy import AccuracyMode as AccuracyMode
from .accuracy import Tolerance as Tolerance
from .arithmetic import add as add
from .arithmetic import add_p as add_p
from .arithmetic import div as div
from .arithmetic import div_p as div_p
from .arithmetic import integer_pow as integer_pow
from .arithmetic import integer_pow_p as integer_pow_p
from .arithmetic import max as max
from .arithmetic import max_p as max_p
from .arithmetic import min as min
from .arithmetic import min_p as min_p
from .arithmetic import mul as mul
from .arithmetic import mul_p as mul_p
from .arithmetic import neg as neg
from .arithmetic import neg_p as neg_p
from .arithmetic import one_minus_square as one_minus_square
from .arithmetic import one_minus_square_p as one_minus_square_p
from .arithmetic import reciprocal as reciprocal
from .arithmetic import square as square
from .arithmetic import square_p as square_p
from .arithmetic import sub as sub
from .arithmetic import sub_p as sub_p
from .associative import associative_scan as associative_scan
from .bitwise import and_p as and_p
from .bitwise import bitwise_and as bitwise_and
from .bitwise import bitwise_not as bitwise_not
from .bitwise import bitwise_or as bitwise_or
from .bitwise import bitwise_xor as bitwise_xor
from .bitwise import clz as clz
from .bitwise import clz_p as clz_p
from .bitwise import mulhi as mulhi
from .bitwise import mulhi_p as mulhi_p
from .bitwise import not_p as not_p
from .bitwise import or_p as or_p
from .bitwise import population_count as population_count
from .bitwise import population_count_p as population_count_p
from .bitwise import shift_left as shift_left
from .bitwise import shift_left_p as shift_left_p
from .bitwise import shift_right_arithmetic as shift_right_arithmetic
from .bitwise import shift_right_arithmetic_p as shift_right_arithmetic_p
from .bitwise import shift_right_logical as shift_right_logical
from .bitwise import shift_right_logical_p as shift_right_logical_p
from .bitwise import xor_p as xor_p
from .broadcasting import broadcast as broadcast
from .broadcasting import broadcast_in_dim as broadcast_in_dim
from .broadcasting import broadcast_in_dim_p as broadcast_in_dim_p
from .broadcasting import broadcast_like as broadcast_like
from .broadcasting import broadcast_shapes as broadcast_shapes
from .broadcasting import broadcast_to_rank as broadcast_to_rank
from .broadcasting import broadcasted_iota as broadcasted_iota
from .broadcasting import empty as empty
from .broadcasting import full as full
from .broadcasting import full_like as full_like
from .broadcasting import iota as iota
from .broadcasting import iota_p as iota_p
from .comparison import eq as eq
from .comparison import eq_p as eq_p
from .comparison import eq_to_p as eq_to_p
from .comparison import ge as ge
from .comparison import ge_p as ge_p
from .comparison import gt as gt
from .comparison import gt_p as gt_p
from .comparison import le as le
from .comparison import le_p as le_p
from .comparison import le_to_p as le_to_p
from .comparison import lt as lt
from .comparison import lt_p as lt_p
from .comparison import lt_to_p as lt_to_p
from .comparison import ne as ne
from .comparison import ne_p as ne_p
from .contracting import DotDimensionNumbers as DotDimensionNumbers
from .contracting import batch_matmul as batch_matmul
from .contracting import dot as dot
from .contracting import dot_general as dot_general
from .contracting import dot_general_p as dot_general_p
from .control.cond import cond as cond
from .control.cond import cond_p as cond_p
from .control.cond import switch as switch
from .control.loops import fori_loop as fori_loop
from .control.loops import map as map
from .control.scan import scan as scan
from .control.scan import scan_p as scan_p
from .control.while_loop import while_loop as while_loop
from .control.while_loop import while_p as while_p
from .conv_numbers import ConvDimensionNumbers as ConvDimensionNumbers
from .conv_numbers import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
from .conv_numbers import conv_dimension_numbers as conv_dimension_numbers
from .conv_numbers import conv_general_permutations as conv_general_permutations
from .conv_numbers import conv_general_shape_tuple as conv_general_shape_tuple
from .conv_numbers import conv_shape_tuple as conv_shape_tuple
from .conv_numbers import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from .conv_numbers import padtype_to_pads as padtype_to_pads
from .conversion import bitcast_convert_type as bitcast_convert_type
from .conversion import bitcast_convert_type_p as bitcast_convert_type_p
from .conversion import convert_element_type as convert_element_type
from .conversion import convert_element_type_p as convert_element_type_p
from .conversion import reduce_precision as reduce_precision
from .conversion import reduce_precision_p as reduce_precision_p
from .cumulative import cumlogsumexp as cumlogsumexp
from .cumulative import cumlogsumexp_p as cumlogsumexp_p
from .cumulative import cummax as cummax
from .cumulative import cummax_p as cummax_p
from .cumulative import cummin as cummin
from .cumulative import cummin_p as cummin_p
from .cumulative import cumprod as cumprod
from .cumulative import cumprod_p as cumprod_p
from .cumulative import cumsum as cumsum
from .cumulative import cumsum_p as cumsum_p
from .dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from .dynamic_slicing import dynamic_slice as dynamic_slice
from .dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from .dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from .dynamic_slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from .dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from .dynamic_slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from .dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p
from .exponential import cbrt as cbrt
from .exponential import cbrt_p as cbrt_p
from .exponential import exp as exp
from .exponential import exp2 as exp2
from .exponential import exp2_p as exp2_p
from .exponential import exp_p as exp_p
from .exponential import expm1 as expm1
from .exponential import expm1_p as expm1_p
from .exponential import log as log
from .exponential import log1p as log1p
from .exponential import log1p_p as log1p_p
from .exponential import log2 as log2
from .exponential import log2_p as log2_p
from .exponential import log_p as log_p
from .exponential import logistic as logistic
from .exponential import logistic_p as logistic_p
from .exponential import pow as pow
from .exponential import pow_p as pow_p
from .exponential import rsqrt as rsqrt
from .exponential import rsqrt_p as rsqrt_p
from .exponential import sqrt as sqrt
from .exponential import sqrt_p as sqrt_p
from .reduce_any import reduce as reduce
from .reduce_any import reduce_p as reduce_p
from .reduce_any import reduce_prod as reduce_prod
from .reduce_any import reduce_prod_p as reduce_prod_p
from .gathering import gather as gather
from .gathering import gather_p as gather_p
from .gathering import index_take as index_take
from .index_numbers import GatherDimensionNumbers as GatherDimensionNumbers
from .index_numbers import GatherScatterMode as GatherScatterMode
from .index_numbers import ScatterDimensionNumbers as ScatterDimensionNumbers
from .joining import concatenate as concatenate
from .joining import concatenate_p as concatenate_p
from .joining import split as split
from .joining import split_p as split_p
from .magnitude import abs as abs
from .magnitude import abs_p as abs_p
from .magnitude import complex as complex
from .magnitude import complex_p as complex_p
from .magnitude import conj as conj
from .magnitude import conj_p as conj_p
from .magnitude import imag as imag
from .magnitude import imag_p as imag_p
from .magnitude import real as real
from .magnitude import real_p as real_p
from .magnitude import sign as sign
from .magnitude import sign_p as sign_p
from .permuting import rev as rev
from .permuting import rev_p as rev_p
from .permuting import transpose as transpose
from .permuting import transpose_p as transpose_p
from .placement import device_put_p as device_put_p
from .precision import DotAlgorithm as DotAlgorithm
from .precision import DotAlgorithmPreset as DotAlgorithmPreset
from .precision import Precision as Precision
from .precision import PrecisionLike as PrecisionLike
from .random_bits import RandomAlgorithm as RandomAlgorithm
from .random_bits import rng_bit_generator as rng_bit_generator
from .random_bits import rng_bit_generator_p as rng_bit_generator_p
from .random_bits import rng_uniform as rng_uniform
from .random_bits import rng_uniform_p as rng_uniform_p
from .random_bits import threefry2x32_p as threefry2x32_p
from .reducing import argmax as argmax
from .reducing import argmax_p as argmax_p
from .reducing import argmin as argmin
from .reducing import argmin_p as argmin_p
from .reducing import reduce_and as reduce_and
from .reducing import reduce_and_p as reduce_and_p
from .reducing import reduce_max as reduce_max
from .reducing import reduce_max_p as reduce_max_p
from .reducing import reduce_min as reduce_min
from .reducing import reduce_min_p as reduce_min_p
from .reducing import reduce_or as reduce_or
from .reducing import reduce_or_p as reduce_or_p
from .reducing import reduce_sum as reduce_sum
from .reducing import reduce_sum_p as reduce_sum_p
from .reducing import reduce_xor as reduce_xor
from .reducing import reduce_xor_p as reduce_xor_p
from .reshaping import collapse as collapse
from .reshaping import expand_dims as expand_dims
from .reshaping import reshape as reshape
from .reshaping import reshape_p as reshape_p
from .reshaping import squeeze as squeeze
from .reshaping import squeeze_p as squeeze_p
from .reshaping import tile as tile
from .reshaping import tile_p as tile_p
from .rounding import RoundingMethod as RoundingMethod
from .rounding import ceil as ceil
from .rounding import ceil_p as ceil_p
from .rounding import floor as floor
from .rounding import floor_p as floor_p
from .rounding import is_finite as is_finite
from .rounding import is_finite_p as is_finite_p
from .rounding import nextafter as nextafter
from .rounding import nextafter_p as nextafter_p
from .rounding import rem as rem
from .rounding import rem_p as rem_p
from .rounding import round as round
from .rounding import round_p as round_p
from .scattering import scatter as scatter
from .scattering import scatter_add as scatter_add
from .scattering import scatter_add_p as scatter_add_p
from .scattering import scatter_apply as scatter_apply
from .scattering import scatter_max as scatter_max
from .scattering import scatter_max_p as scatter_max_p
from .scattering import scatter_min as scatter_min
from .scattering import scatter_min_p as scatter_min_p
from .scattering import scatter_mul as scatter_mul
from .scattering import scatter_mul_p as scatter_mul_p
from .scattering import scatter_p as scatter_p
from .scattering import scatter_sub as scatter_sub
from .scattering import scatter_sub_p as scatter_sub_p
from .selection import clamp as clamp
from .selection import clamp_p as clamp_p
from .selection import select as select
from .selection import select_n as select_n
from .selection import select_n_p as select_n_p
from .slicing import index_in_dim as index_in_dim
from .slicing import pad as pad
from .slicing import pad_p as pad_p
from .slicing import slice as slice
from .slicing import slice_in_dim as slice_in_dim
from .slicing import slice_p as slice_p
from .sorting import sort as sort
from .sorting import sort_key_val as sort_key_val
from .sorting import sort_p as sort_p
from .sorting import top_k as top_k
from .sorting import top_k_p as top_k_p
from .special import erf as erf
from .special import erf_inv as erf_inv
from .special import erf_inv_p as erf_inv_p
from .special import erf_p as erf_p
from .special import erfc as erfc
from .special import erfc_p as erfc_p
from .stopping import stop_gradient as stop_gradient
from .stopping import stop_gradient_p as stop_gradient_p
from .trigonometric import acos as acos
from .trigonometric import acos_p as acos_p
from .trigonometric import acosh as acosh
from .trigonometric import acosh_p as acosh_p
from .trigonometric import asin as asin
from .trigonometric import asin_p as asin_p
from .trigonometric import asinh as asinh
from .trigonometric import asinh_p as asinh_p
from .trigonometric import atan as atan
from .trigonometric import atan2 as atan2
from .trigonometric import atan2_p as atan2_p
from .trigonometric import atan_p as atan_p
from .trigonometric import atanh as atanh
from .trigonometric import atanh_p as atanh_p
from .trigonometric import cos as cos
from .trigonometric import cos_p as cos_p
from .trigonometric import cosh as cosh
from .trigonometric import cosh_p as cosh_p
from .trigonometric import sin as sin
from .trigonometric import sin_p as sin_p
from .trigonometric import sinh as sinh
from .trigonometric import sinh_p as sinh_p
from .trigonometric import tan as tan
from .trigonometric import tan_p as tan_p
from .trigonometric import tanh as tanh
from .trigonometric import tanh_p as tanh_p

if TYPE_CHECKING:
    from . import linalg as linalg
    from .approximate import approx_max_k as approx_max_k
    from .approximate import approx_min_k as approx_min_k
    from .approximate import approx_top_k_p as approx_top_k_p
    from .axis_binding import axis_size as axis_size
    from .barrier import optimization_barrier as optimization_barrier
    from .barrier import optimization_barrier_p as optimization_barrier_p
    from .bessel import bessel_i0e as bessel_i0e
    from .bessel import bessel_i0e_p as bessel_i0e_p
    from .bessel import bessel_i1e as bessel_i1e
    from .bessel import bessel_i1e_p as bessel_i1e_p
    from .collective_exchanges import all_to_all as all_to_all
    from .collective_exchanges import all_to_all_p as all_to_all_p
    from .collective_exchanges import ppermute as ppermute
    from .collective_exchanges import ppermute_p as ppermute_p
    from .collective_exchanges import pshuffle as pshuffle
    from .collective_exchanges import pswapaxes as pswapaxes
    from .collective_gathers import all_gather as all_gather
    from .collective_gathers import all_gather_p as all_gather_p
    from .collective_gathers import pbroadcast as pbroadcast
    from .collective_gathers import psum_scatter as psum_scatter
    from .collective_gathers import psum_scatter_start as psum_scatter_start
    from .collective_reductions import pmax as pmax
    from .collective_reductions import pmax_p as pmax_p
    from .collective_reductions import pmean as pmean
    from .collective_reductions import pmin as pmin
    from .collective_reductions import pmin_p as pmin_p
    from .collective_reductions import psum as psum
    from .collective_reductions import psum_p as psum_p
    from .composites import composite as composite
    from .constraints import sharding_constraint_p as sharding_constraint_p
    from .constraints import with_sharding_constraint as with_sharding_constraint
    from .control.linear_solve import custom_linear_solve as custom_linear_solve
    from .control.linear_solve import linear_solve_p as linear_solve_p
    from .control.platform import platform_dependent as platform_dependent
    from .control.root import custom_root as custom_root
    from .conv_patches import conv_general_dilated_local as conv_general_dilated_local
    from .conv_patches import conv_general_dilated_patches as conv_general_dilated_patches
    from .convolution import conv as conv
    from .convolution import conv_general_dilated as conv_general_dilated
    from .convolution import conv_general_dilated_p as conv_general_dilated_p
    from .convolution import conv_transpose as conv_transpose
    from .convolution import conv_with_general_padding as conv_with_general_padding
    from .fourier import FftType as FftType
    from .fourier import fft as fft
    from .fourier import fft_p as fft_p
    from .gamma import digamma as digamma
    from .gamma import digamma_p as digamma_p
    from .gamma import lgamma as lgamma
    from .gamma import lgamma_p as lgamma_p
    from .gamma import polygamma as polygamma
    from .gamma import polygamma_p as polygamma_p
    from .gamma import zeta as zeta
    from .gamma import zeta_p as zeta_p
    from .identities import copy_p as copy_p
    from .identities import dce_sink as dce_sink
    from .identities import stage as stage
    from .identities import stage_p as stage_p
    from .incomplete_beta import betainc as betainc
    from .incomplete_beta import regularized_incomplete_beta_p as regularized_incomplete_beta_p
    from .incomplete_gamma import igamma as igamma
    from .incomplete_gamma import igamma_grad_a as igamma_grad_a
    from .incomplete_gamma import igamma_grad_a_p as igamma_grad_a_p
    from .incomplete_gamma import igamma_p as igamma_p
    from .incomplete_gamma import igammac as igammac
    from .incomplete_gamma import igammac_p as igammac_p
    from .incomplete_gamma import random_gamma_grad as random_gamma_grad
    from .named_axes import axis_index as axis_index
    from .named_axes import axis_index_p as axis_index_p
    from .named_axes import pcast as pcast
    from .polynomials import polynomial as polynomial
    from .polynomials import polynomial_p as polynomial_p
    from .ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
    from .ragged import ragged_dot as ragged_dot
    from .ragged import ragged_dot_general as ragged_dot_general
    from .ragged_exchange import ragged_all_to_all as ragged_all_to_all
    from .ragged_exchange import ragged_all_to_all_p as ragged_all_to_all_p
    from .rank_selection import order_statistics as order_statistics
    from .rank_selection import order_statistics_p as order_statistics_p
    from .scaled import scaled_dot as scaled_dot
    from .shape_dtype import dtype as dtype
    from .shape_dtype import shape_as_value as shape_as_value
    from .stacking import stack as stack
    from .stacking import stack_p as stack_p
    from .stacking import unstack as unstack
    from .stacking import unstack_p as unstack_p
    from .tokens import after_all as after_all
    from .tokens import after_all_p as after_all_p
    from .tokens import create_token as create_token
    from .tokens import create_token_p as create_token_p
    from .window_scatter import select_and_scatter_p as select_and_scatter_p
    from .windows import reduce_window as reduce_window
    from .windows import reduce_window_max_p as reduce_window_max_p
    from .windows import reduce_window_min_p as reduce_window_min_p
    from .windows import reduce_window_p as reduce_window_p
    from .windows import reduce_window_shape_tuple as reduce_window_shape_tuple
    from .windows import reduce_window_sum_p as reduce_window_sum_p
    from .windows import select_and_gather_add_p as select_and_gather_add_p
    from .windows import select_and_scatter_add_p as select_and_scatter_add_p

_MODULES = {
    "linalg": (),
    "approximate": (
        "approx_max_k",
        "approx_min_k",
        "approx_top_k_p",
    ),
    "axis_binding": ("axis_size",),
    "barrier": (
        "optimization_barrier",
        "optimization_barrier_p",
    ),
    "bessel": (
        "bessel_i0e",
        "bessel_i0e_p",
        "bessel_i1e",
        "bessel_i1e_p",
    ),
    "collective_exchanges": (
        "all_to_all",
        "all_to_all_p",
        "ppermute",
        "ppermute_p",
        "pshuffle",
        "pswapaxes",
    ),
    "collective_gathers": (
        "all_gather",
        "all_gather_p",
        "pbroadcast",
        "psum_scatter",
        "psum_scatter_start",
    ),
    "collective_reductions": (
        "pmax",
        "pmax_p",
        "pmean",
        "pmin",
        "pmin_p",
        "psum",
        "psum_p",
    ),
    "composites": ("composite",),
    "constraints": (
        "sharding_constraint_p",
        "with_sharding_constraint",
    ),
    "control.linear_solve": (
        "custom_linear_solve",
        "linear_solve_p",
    ),
    "control.platform": ("platform_dependent",),
    "control.root": ("custom_root",),
    "convolution": (
        "conv",
        "conv_general_dilated",
        "conv_general_dilated_p",
        "conv_transpose",
        "conv_with_general_padding",
    ),
    "conv_patches": (
        "conv_general_dilated_local",
        "conv_general_dilated_patches",
    ),
    "named_axes": (
        "axis_index",
        "axis_index_p",
        "pcast",
    ),
    "shape_dtype": (
        "dtype",
        "shape_as_value",
    ),
    "fourier": (
        "FftType",
        "fft",
        "fft_p",
    ),
    "gamma": (
        "digamma",
        "digamma_p",
        "lgamma",
        "lgamma_p",
        "polygamma",
        "polygamma_p",
        "zeta",
        "zeta_p",
    ),
    "identities": (
        "copy_p",
        "dce_sink",
        "stage",
        "stage_p",
    ),
    "incomplete_beta": (
        "betainc",
        "regularized_incomplete_beta_p",
    ),
    "incomplete_gamma": (
        "igamma",
        "igamma_grad_a",
        "igamma_grad_a_p",
        "igamma_p",
        "igammac",
        "igammac_p",
        "random_gamma_grad",
    ),
    "polynomials": (
        "polynomial",
        "polynomial_p",
    ),
    "rank_selection": (
        "order_statistics",
        "order_statistics_p",
    ),
    "ragged": (
        "RaggedDotDimensionNumbers",
        "ragged_dot",
        "ragged_dot_general",
    ),
    "ragged_exchange": (
        "ragged_all_to_all",
        "ragged_all_to_all_p",
    ),
    "scaled": ("scaled_dot",),
    "stacking": (
        "stack",
        "stack_p",
        "unstack",
        "unstack_p",
    ),
    "tokens": (
        "after_all",
        "after_all_p",
        "create_token",
        "create_token_p",
    ),
    "window_scatter": ("select_and_scatter_p",),
    "windows": (
        "reduce_window",
        "reduce_window_max_p",
        "reduce_window_min_p",
        "reduce_window_p",
        "reduce_window_shape_tuple",
        "reduce_window_sum_p",
        "select_and_gather_add_p",
        "select_and_scatter_add_p",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in (*names, module)}


def __getattr__(name: str) -> _Any:
    module_name = _MODULE_OF.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(f".{module_name}", __name__)
    value = globals()[name] = module if name == module_name else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF} - {"TYPE_CHECKING"})
