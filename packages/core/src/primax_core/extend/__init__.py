"""The door: what other wheels and third parties build on.

Everything here is public and documented. What it does not offer, the core does not offer.
"""

from .._base.config import state as state
from .._base.source import register_internal_path as register_internal_path
from .._ir import dtypes as dtypes
from .._ir.avals import ShapedArray as ShapedArray
from .._ir.jaxpr import Eqn as Eqn
from .._ir.jaxpr import Jaxpr as Jaxpr
from .._ir.jaxpr import Literal as Literal
from .._ir.jaxpr import Var as Var
from .._ir.primitive import MissingRule as MissingRule
from .._ir.primitive import Primitive as Primitive
from .._ir.primitive import RuleKind as RuleKind
from .._ir.primitive import abstract as abstract
from .._ir.primitive import batch as batch
from .._ir.primitive import dce as dce
from .._ir.primitive import effects as effects
from .._ir.primitive import jvp as jvp
from .._ir.primitive import linearize as linearize
from .._ir.primitive import lower as lower
from .._ir.primitive import transpose as transpose
from .._ir.printer import hide_defaults as hide_defaults
from .._ir.samples import Operand as Operand
from .._ir.samples import Sample as Sample
from .._ir.samples import b1 as b1
from .._ir.samples import bf16 as bf16
from .._ir.samples import c64 as c64
from .._ir.samples import f16 as f16
from .._ir.samples import f32 as f32
from .._ir.samples import i8 as i8
from .._ir.samples import i32 as i32
from .._ir.samples import samples as samples
from .._ir.samples import u8 as u8
from .._ir.samples import u32 as u32
from .._runtime.dispatch import as_operand as as_operand
from .._trace.array import Array as Array
from .._trace.array import register_method as register_method
from .._trace.core import Tracer as Tracer
from .._trace.core import typeof as typeof
from .._trace.staging import eval_jaxpr as eval_jaxpr
from .._transform.batching import Axis as Axis
from .._transform.presenting import finished as finished
from .._transform.staged import library_function as library_function
from .._transform.symbolic import Linear as Linear
from .._transform.symbolic import Zero as Zero
from ..lax.promotion import any_number as any_number
from ..lax.promotion import cast as cast
from ..lax.promotion import inexact as inexact
from ..lax.promotion import is_operand as is_operand
from ..lax.promotion import promoted as promoted
from ..lax.promotion import same_rank as same_rank
from .short_roads import ShortRoads as ShortRoads
