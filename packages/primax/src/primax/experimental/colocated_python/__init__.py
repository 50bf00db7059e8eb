"""Python functions on the hosts of the arrays' devices.

The reference's ``jax.experimental.colocated_python``. Here the devices must be CPU devices of this
process: a function runs in this process, on a copy of itself and of the objects that it refers to.
"""

from __future__ import annotations

from .api import (
    colocated_cpu_devices as colocated_cpu_devices,
    colocated_python as colocated_python,
    colocated_python_class as colocated_python_class,
)
