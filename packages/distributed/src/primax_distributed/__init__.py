"""primax-distributed: meshes of devices, shardings of arrays along their axes."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register
from . import _trusted as _trusted
from . import _inference as _inference
from ._current import concrete_mesh as concrete_mesh
from ._current import entered_mesh as entered_mesh
from ._current import get_abstract_mesh as get_abstract_mesh
from ._current import get_mesh as get_mesh
from ._current import mesh_of_specs as mesh_of_specs
from ._current import set_mesh as set_mesh
from ._current import use_abstract_mesh as use_abstract_mesh
from ._abstract_mesh import AbstractDevice as AbstractDevice
from ._abstract_mesh import AbstractMesh as AbstractMesh
from ._mesh_axes import AxisType as AxisType
from ._mesh_axes import BaseMesh as BaseMesh
from ._mesh import Mesh as Mesh
from ._abstract_mesh import empty_abstract_mesh as empty_abstract_mesh
from ._mesh import empty_mesh as empty_mesh
from ._mesh import make_mesh as make_mesh
from ._named import NamedSharding as NamedSharding
from ._named import make_single_device_sharding as make_single_device_sharding
from ._placement import ManualAxisType as ManualAxisType
from ._placement import manual_axis_type as manual_axis_type
from ._placement_errors import ShardingTypeError as ShardingTypeError
from ._spec import P as P
from ._spec import PartitionSpec as PartitionSpec
from ._spec import UnreducedKind as UnreducedKind
from primax_core.extend.runtime import Sharding as Sharding
from primax_core.extend.runtime import SingleDeviceSharding as SingleDeviceSharding

if TYPE_CHECKING:
    from . import mesh_utils as mesh_utils
    from ._arrays import make_array_from_callback as make_array_from_callback
    from ._arrays import make_array_from_process_local_data as make_array_from_process_local_data
    from ._arrays import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from ._explicit_axes import auto_axes as auto_axes
    from ._explicit_axes import explicit_axes as explicit_axes
    from ._explicit_axes import reshard as reshard
    from ._no_collectives import ForbiddenCollectiveError as ForbiddenCollectiveError
    from ._no_collectives import no_collectives as no_collectives
    from ._pmap import pmap as pmap
    from ._shard_map import shard_map as shard_map
    from ._shard_map_specs import Infer as Infer
    from ._smap import smap as smap

_HOMES = {
    "ForbiddenCollectiveError": "_no_collectives",
    "Infer": "_shard_map_specs",
    "auto_axes": "_explicit_axes",
    "explicit_axes": "_explicit_axes",
    "make_array_from_callback": "_arrays",
    "make_array_from_process_local_data": "_arrays",
    "make_array_from_single_device_arrays": "_arrays",
    "no_collectives": "_no_collectives",
    "pmap": "_pmap",
    "reshard": "_explicit_axes",
    "shard_map": "_shard_map",
    "smap": "_smap",
}
"""Names that are imported on first use."""


def __getattr__(name: str) -> _Any:
    if name == "mesh_utils":
        return _import_module(f".{name}", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "mesh_utils"} - {"TYPE_CHECKING"})


__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])
