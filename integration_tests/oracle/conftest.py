"""Both libraries get several CPU devices, told before either is imported."""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")
os.environ.setdefault("PRIMAX_NUM_CPU_DEVICES", "4")
