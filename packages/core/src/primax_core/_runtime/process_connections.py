"""A first collective over the devices of all processes, which makes their connections.

Until it has run, the death of a process is noticed late. Its module is text, so that MLIR is not
loaded for it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir.avals import ShapedArray
from .devices import client_of
from .failures import raise_explained
from .jaxlib_errors import JaxRuntimeError
from .jaxlib_versions import GSPMDSharding, HloSharding, _jax, result_handler
from .process_abort import note_connections
from .processes import Member

_SUM: Final = """
module @connect attributes {{mhlo.num_replicas = {n} : i32}} {{
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {{
    %0 = "stablehlo.all_reduce"(%x) <{{
      replica_groups = dense<[[{all}]]> : tensor<1x{n}xi64>
    }}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }}
}}
"""


def connect_devices(member: Member) -> int:
    """Start the client, and run one collective over all devices of all processes.

    Connections between processes are made by the first collective. Making them at once shows
    failures early, with a clear error.

    Args:
      member: this process in its generation, as for :func:`join`.

    Returns:
      The number of devices.

    Raises:
      RuntimeError: if another process died.

    Every process calls it, right after :func:`join`. It returns when all have.
    """
    client = client_of()
    devices = client.devices()
    n = len(devices)
    text = _SUM.format(n=n, all=", ".join(map(str, range(n))))
    executable = client.compile_and_load(text, _jax.DeviceList(tuple(devices)), _options(devices))
    aval = ShapedArray((), np.dtype(np.float32))
    own = [d for d in devices if d.process_index == client.process_index()]
    sharding = GSPMDSharding(tuple(devices), HloSharding.replicate())
    ones = [np.ones((), np.float32) for _ in own]
    operand = _jax.batched_device_put(
        aval, sharding, ones, own, committed=True, enable_x64=True,
        host_buffer_semantics=_jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    )  # fmt: skip
    try:
        results = executable.execute_sharded([operand])
        (total,) = results.consume_with_handlers([result_handler(aval, sharding)])
        total.block_until_ready()
    except JaxRuntimeError as e:
        raise_explained(e)
    note_connections(member)
    return n


def _options(devices: list[Any]) -> Any:
    ids = np.array([[d.id] for d in devices], np.int32)
    options = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = len(devices), 1
    options.device_assignment = _jax.DeviceAssignment.create(ids)
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = len(devices), 1
    return options
