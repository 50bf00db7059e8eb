"""Checks of the shardings in modules of unknown origin.

Of Shardy's dialect, only sharding constraints and shardings of arguments and results are accepted.
Collectives can wait for each other for ever, and XLA does not check the groups of partitions.
"""

from __future__ import annotations

import math
from typing import Any, Final, NoReturn

from jaxlib.mlir import ir

from .._base.errors import InvalidArtifactError
from .context import sdy

_COLLECTIVES: Final = frozenset((
    "all_gather", "all_reduce", "all_to_all", "async_done", "async_start", "collective_broadcast",
    "collective_permute", "cross-replica-sum", "partition_id", "reduce_scatter", "replica_id",
))  # fmt: skip
_HINT: Final = (
    "If you trust the source of the artifact, use export.deserialize(blob, trusted=True)."
)
_SHARDING: Final = "sdy.sharding"
# Looked up by name: an iteration over attributes ends the process if a name is not valid text.
_ELSEWHERE: Final = (_SHARDING, "sdy.sharding_rule", "mhlo.sharding")
_FRONTEND: Final = "mhlo.frontend_attributes"


def check(module: ir.Module, nr_devices: int) -> None:
    """Raise an error for operations and shardings that are not accepted from unknown sources.

    Args:
      nr_devices: the number of devices that the artifact declares.

    Raises:
      InvalidArtifactError: with the name of the operation or the sharding.
    """
    attributes = module.operation.attributes
    for name, expected in (("mhlo.num_partitions", nr_devices), ("mhlo.num_replicas", 1)):
        if name in attributes and ir.IntegerAttr(attributes[name]).value != expected:
            _refuse(f"its {name} is {ir.IntegerAttr(attributes[name]).value}, not {expected}")
    checker = _Checker(nr_devices)
    checker.attributes(attributes)
    for function in module.body.operations:
        checker.function(function.operation)


def _refuse(why: str) -> NoReturn:
    raise InvalidArtifactError(f"the artifact's module cannot be used: {why}")


class _Checker:
    def __init__(self, nr_devices: int) -> None:
        self.nr_devices = nr_devices
        self.sound: set[tuple[Any, Any]] = set()

    def function(self, function: Any) -> None:
        """Check a function with its body."""
        self.attributes(function.attributes)
        kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        for name, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
            if name not in function.attributes:
                continue
            for entry, value_type in zip(ir.ArrayAttr(function.attributes[name]), types):
                attributes = ir.DictAttr(entry)
                if _SHARDING in attributes:
                    self.sharding(attributes[_SHARDING], value_type)
                self.attributes(attributes, _ELSEWHERE[1:])
        waiting = [function]
        while waiting:
            for region in waiting.pop().regions:
                for block in region.blocks:
                    for op in block.operations:
                        self.operation(op.operation)
                        if len(op.operation.regions):
                            waiting.append(op.operation)

    def operation(self, op: Any) -> None:
        """Check an operation without its regions."""
        dialect, _, name = op.name.partition(".")
        if name in _COLLECTIVES and (self.nr_devices > 1 or name.startswith("async")):
            _refuse(
                f"its operation {op.name} communicates between devices, which can wait for ever. "
                + _HINT
            )
        if op.name == "sdy.sharding_constraint":
            self.sharding(op.attributes["sharding"], op.results[0].type)
            self.attributes(op.attributes)
            return
        if dialect == "sdy":
            _refuse(
                f"its operation {op.name} computes on the parts of arrays, and only sharding "
                f"constraints are accepted from unknown sources. {_HINT}"
            )
        self.attributes(op.attributes)

    def attributes(self, attributes: Any, names: tuple[str, ...] = _ELSEWHERE) -> None:
        """Refuse shardings in other places, and those of other partitioners."""
        for name in names:
            if name in attributes:
                _refuse(f"it has an attribute {name} in an unexpected place. {_HINT}")
        if _FRONTEND in attributes and "sdy" in str(attributes[_FRONTEND]):
            _refuse(f"it has shardings in {_FRONTEND}. {_HINT}")

    def sharding(self, attribute: Any, kind: Any) -> None:
        """Check the sharding of a value of a type."""
        if (attribute, kind) in self.sound:
            return
        dialect = sdy()
        if not dialect.TensorShardingAttr.isinstance(attribute):
            _refuse(f"{attribute} is no sharding")
        if not isinstance(kind, ir.RankedTensorType):
            _refuse(f"a value of type {kind} has a sharding")
        text = str(attribute)
        sharding = dialect.TensorShardingAttr(attribute)
        if not dialect.MeshAttr.isinstance(sharding.mesh_or_ref):
            _refuse(f"the sharding {text} does not contain its mesh")
        mesh = dialect.MeshAttr(sharding.mesh_or_ref)
        sizes = {(a := dialect.MeshAxisAttr(x)).name: a.size for x in mesh.axes}
        if len(sizes) != len(list(mesh.axes)) or list(mesh.device_ids):
            _refuse(f"the mesh of the sharding {text} has doubled axes, or an order of devices")
        if math.prod(sizes.values()) != self.nr_devices or min(sizes.values(), default=1) < 1:
            _refuse(f"the mesh of the sharding {text} does not have {self.nr_devices} devices")
        if list(sharding.replicated_axes) or list(sharding.unreduced_axes):
            _refuse(f"the sharding {text} has replicated or partial values. {_HINT}")
        dims = [dialect.DimensionShardingAttr(d) for d in sharding.dimension_shardings]
        if len(dims) != kind.rank:
            _refuse(f"the sharding {text} belongs to a value of type {kind}")
        used: list[str] = []
        for i, dim in enumerate(dims):
            references = [dialect.AxisRefAttr(a) for a in dim.axes]
            names = [r.name for r in references]
            if any(r.sub_axis_info is not None for r in references) or {*names} - {*sizes}:
                _refuse(f"the sharding {text} has an axis that its mesh does not have")
            used += names
            parts = math.prod(sizes[n] for n in names)
            if not kind.is_dynamic_dim(i) and kind.get_dim_size(i) % parts:
                _refuse(f"the sharding {text} does not divide a value of type {kind}")
            if dim.priority not in (None, -1):
                _refuse(f"the sharding {text} has priorities. {_HINT}")
        if len({*used}) != len(used):
            _refuse(f"the sharding {text} uses an axis twice")
        self.sound.add((attribute, kind))
