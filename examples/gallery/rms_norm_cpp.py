"""RMSNorm in C++

Compiles a C++ function with a forward and a backward pass, and calls it from compiled programs. A
signature checks types and shapes while tracing; `custom_vjp` connects the two passes.

The handler works on rows in the order of memory. [Native functions](../ffi.md) describes the
interface, and `python -m primax_ffi new` writes a project with a build.
"""

# %%
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import random
from primax.ffi import ffi_call, include_dir
from primax_ffi import Signature, load_library

QUICK = "--quick" in sys.argv
SIZES = (64, 256, 1024) if QUICK else (64, 256, 1024, 4096)

# %% [markdown]
# ## The C++ functions
#
# For a row `x` and weights `w`: `y = w x s`, where `s = 1 / sqrt(mean(x²) + eps)`. The forward pass
# returns `s` for the backward pass.

# %%
SOURCE = r"""
#include <cmath>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using In = ffi::Buffer<ffi::F32>;
using Out = ffi::ResultBuffer<ffi::F32>;

static ffi::Error Forward(In x, In w, Out y, Out scales, float eps) {
  size_t n = w.element_count(), rows = n ? x.element_count() / n : 0;
  for (size_t row = 0; row < rows; ++row) {
    const float* in = x.typed_data() + row * n;
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum += in[i] * in[i];
    float s = 1 / std::sqrt(sum / n + eps);
    scales->typed_data()[row] = s;
    for (size_t i = 0; i < n; ++i) y->typed_data()[row * n + i] = w.typed_data()[i] * in[i] * s;
  }
  return ffi::Error::Success();
}

static ffi::Error Backward(In x, In w, In scales, In g, Out dx, Out dw) {
  size_t n = w.element_count(), rows = n ? x.element_count() / n : 0;
  float* total = dw->typed_data();
  for (size_t i = 0; i < n; ++i) total[i] = 0;
  for (size_t row = 0; row < rows; ++row) {
    const float *in = x.typed_data() + row * n, *ct = g.typed_data() + row * n;
    float s = scales.typed_data()[row], dot = 0;
    for (size_t i = 0; i < n; ++i) dot += ct[i] * w.typed_data()[i] * in[i];
    for (size_t i = 0; i < n; ++i) {
      dx->typed_data()[row * n + i] = s * (ct[i] * w.typed_data()[i] - in[i] * dot * s * s / n);
      total[i] += ct[i] * in[i] * s;
    }
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(gallery_forward, Forward, ffi::Ffi::Bind()
    .Arg<In>().Arg<In>().Ret<In>().Ret<In>().Attr<float>("eps"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(gallery_backward, Backward, ffi::Ffi::Bind()
    .Arg<In>().Arg<In>().Arg<In>().Arg<In>().Ret<In>().Ret<In>());
"""
folder = Path(tempfile.mkdtemp())
(folder / "rms_norm.cc").write_text(SOURCE)
command = ["c++", "-O3", "-std=c++17", "-shared", "-fPIC", "-isystem", include_dir()]
command += [str(folder / "rms_norm.cc"), "-o", str(folder / "rms_norm.so")]
subprocess.run(command, check=True)

# %% [markdown]
# ## Signatures and derivative

# %%
load_library(
    folder / "rms_norm.so",
    ["gallery_forward", "gallery_backward"],
    signatures={
        "gallery_forward": Signature(
            ["f32[... n]", "f32[n]"], ["f32[... n]", "f32[...]"], {"eps": "f32"}
        ),
        "gallery_backward": Signature(
            ["f32[... n]", "f32[n]", "f32[...]", "f32[... n]"], ["f32[... n]", "f32[n]"]
        ),
    },
)


@primax.custom_vjp
def rms_norm(x, weights):
    return forward(x, weights)[0]


def forward(x, weights):
    y, scales = ffi_call("gallery_forward")(x, weights, eps=np.float32(1e-6))
    return y, (x, weights, scales)


def backward(saved, g):
    return tuple(ffi_call("gallery_backward")(*saved, g))


rms_norm.defvjp(forward, backward)


def reference(x, weights):
    return weights * x * primax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


# %% [markdown]
# ## Comparison

# %%
x, weights = random.normal(random.key(0), (64, 96)), random.normal(random.key(1), (96,))
value = float(jnp.abs(rms_norm(x, weights) - reference(x, weights)).max())
gradients = [
    primax.jit(primax.grad(lambda x, w, f=f: jnp.sum(f(x, w) ** 3), argnums=(0, 1)))(x, weights)
    for f in (rms_norm, reference)
]
error = max(float(jnp.abs(a - b).max() / jnp.abs(b).max()) for a, b in zip(*gradients))
print(f"largest difference of the values {value:.1e}, of the gradients {error:.1e} (relative)")
assert value < 1e-5 and error < 1e-4
try:
    rms_norm(x, weights[:5])
except TypeError as problem:
    print(str(problem).splitlines()[0])

# %%
seconds = {"C++": [], "operations, compiled": []}
for n in SIZES:
    x, weights = random.normal(random.key(0), (n, n)), jnp.ones(n)
    for name, f in zip(seconds, (rms_norm, reference)):
        step = primax.jit(f).lower(x, weights).compile()
        times = []
        for _ in range(7):
            start = time.perf_counter()
            primax.block_until_ready(step(x, weights))
            times.append(time.perf_counter() - start)
        seconds[name].append(min(times))

plt.figure(figsize=(6, 3.6), layout="constrained")
for name, values in seconds.items():
    plt.loglog(SIZES, values, "o-", label=name)
plt.xlabel("n, for n x n elements")
plt.ylabel("seconds (shortest of 7)")
plt.legend()
plt.show()
