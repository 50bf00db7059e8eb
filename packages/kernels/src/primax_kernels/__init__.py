"""primax-kernels: kernels over blocks of arrays, compiled, and differentiable like any function."""

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register
from . import _trusted as _trusted

from primax_core import ds as ds
from ._block_specs import BlockDim as BlockDim
from ._block_specs import Blocked as Blocked
from ._block_specs import BlockSpec as BlockSpec
from ._block_specs import BoundedSlice as BoundedSlice
from ._block_specs import Buffered as Buffered
from ._block_specs import CompilerParams as CompilerParams
from ._block_specs import CostEstimate as CostEstimate
from ._block_specs import Element as Element
from ._block_specs import GridSpec as GridSpec
from ._block_specs import Indirect as Indirect
from ._block_specs import PrefetchScalarGridSpec as PrefetchScalarGridSpec
from ._block_specs import RevisitMode as RevisitMode
from ._block_specs import Squeezed as Squeezed
from ._block_specs import no_block_spec as no_block_spec
from ._block_specs import squeezed as squeezed
from ._call import pallas_call as pallas_call
from ._control import debug_print as debug_print
from ._control import loop as loop
from ._control import run_scoped as run_scoped
from ._control import when as when
from ._control import with_scoped as with_scoped
from ._costs import estimate_cost as estimate_cost
from ._debugging import KernelCheckError as KernelCheckError
from ._debugging import debug_check as debug_check
from ._debugging import delay as delay
from ._debugging import enable_debug_checks as enable_debug_checks
from ._devices import DeviceIdType as DeviceIdType
from ._explaining import KernelExplanation as KernelExplanation
from ._explaining import explain_kernel as explain_kernel
from ._gpu_operations import multiple_of as multiple_of
from ._grid import num_programs as num_programs
from ._grid import program_id as program_id
from ._helpers import Slice as Slice
from ._helpers import align_to as align_to
from ._helpers import broadcast_to as broadcast_to
from ._helpers import cdiv as cdiv
from ._helpers import dslice as dslice
from ._helpers import next_power_of_2 as next_power_of_2
from ._helpers import strides_from_shape as strides_from_shape
from ._kernel_checks import KernelCheck as KernelCheck
from ._kernel_checks import check_kernel as check_kernel
from ._kernel_function import kernel as kernel
from ._lowered_text import lower_as_mlir as lower_as_mlir
from ._memory_spaces import ANY as ANY
from ._memory_spaces import HOST as HOST
from ._memory_spaces import MemoryRef as MemoryRef
from ._memory_spaces import MemorySpace as MemorySpace
from ._on_demand import get_global as get_global
from ._poison import enable_poison_buffers as enable_poison_buffers
from ._primitive import pallas_call_p as pallas_call_p
from ._selected import select_ref as select_ref
from ._semaphores import semaphore as semaphore
from ._semaphore_operations import semaphore_read as semaphore_read
from ._semaphore_operations import semaphore_signal as semaphore_signal
from ._semaphore_operations import semaphore_wait as semaphore_wait
from ._tuning.autotuned import Autotuned as Autotuned
from ._tuning.autotuned import TuningResult as TuningResult
from ._tuning.autotuned import autotune as autotune
from ._tuning.autotuned import export_table as export_table
from ._tuning.autotuned import tune_kernels as tune_kernels
from ._tuning.tables import load_table as load_table
from ._tuning.tables import unload_tables as unload_tables
from ._symbolic_export import pallas_export_experimental as pallas_export_experimental
from ._unwritten import empty as empty
from ._unwritten import empty_like as empty_like
from ._unwritten import empty_ref_like as empty_ref_like
from ._unwritten import run_state as run_state


__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])
