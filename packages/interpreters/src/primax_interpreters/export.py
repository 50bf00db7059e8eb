"""Export of functions as bytes that other processes, versions and machines can call."""

from primax_core.export import (
    SymbolicScope as SymbolicScope,
    is_symbolic_dim as is_symbolic_dim,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_dim_bounds as symbolic_dim_bounds,
    symbolic_shape as symbolic_shape,
)

from ._export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from ._export.envelope import deserialize as deserialize
from ._export.exported import Exported as Exported
from ._export.exporting import (
    default_export_platform as default_export_platform,
    export as export,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from ._export.trees import (
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)
