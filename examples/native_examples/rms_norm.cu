// RMS normalization with weights on an NVIDIA GPU: the handlers of rms_norm.cc under the same names.

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "rms_norm.h"
#include "xla/ffi/api/ffi.h"

namespace rms_norm {

constexpr int kThreads = 256;

// The sum over the threads of a block, in each of them.
__device__ double BlockSum(double x) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = x;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  double sum = sums[0];
  __syncthreads();  // the next call writes
  return sum;
}

// A block for each row.
__global__ void ForwardKernel(const float* x, const float* weights, float* y, float* scales,
                              int64_t n, int64_t rows_per_weights, float eps) {
  int64_t row = blockIdx.x;
  x += row * n;
  y += row * n;
  weights += row / rows_per_weights * n;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += double(x[i]) * x[i];
  float scale = static_cast<float>(1 / sqrt(BlockSum(sum) / n + eps));
  for (int64_t i = threadIdx.x; i < n; i += kThreads) y[i] = weights[i] * (scale * x[i]);
  if (threadIdx.x == 0) scales[row] = scale;
}

// A block for each row.
__global__ void BackwardKernel(const float* x, const float* weights, const float* scales,
                               const float* g, float* dx, int64_t n, int64_t rows_per_weights) {
  int64_t row = blockIdx.x;
  x += row * n;
  g += row * n;
  dx += row * n;
  weights += row / rows_per_weights * n;
  double dot = 0, scale = scales[row];
  for (int64_t i = threadIdx.x; i < n; i += kThreads) dot += double(x[i]) * weights[i] * g[i];
  double along = scale * scale * scale * BlockSum(dot) / n;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    dx[i] = static_cast<float>(scale * weights[i] * g[i] - along * x[i]);
  }
}

// A thread for each weight.
__global__ void WeightsKernel(const float* x, const float* scales, const float* g, float* dw,
                              int64_t n, int64_t rows_per_weights, int64_t size) {
  int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= size) return;
  int64_t first = i / n * rows_per_weights;
  double sum = 0;
  for (int64_t row = first; row < first + rows_per_weights; ++row) {
    int64_t at = row * n + i % n;
    sum += double(scales[row]) * x[at] * g[at];
  }
  dw[i] = static_cast<float>(sum);
}

// XLA waits for the stream: a handler launches, and returns.
static ffi::Error Launched() {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return ffi::Error::Success();
  return ffi::Error::Internal(std::string("rms_norm: ") + cudaGetErrorString(error));
}

constexpr int64_t kMaxBlocks = 2147483647;

static ffi::Error Forward(cudaStream_t stream, Floats x, Floats weights, Out y, Out scales,
                          float eps) {
  ffi::ErrorOr<Shape> shape = ShapeOf(x, weights);
  if (shape.has_error()) return shape.error();
  if (shape->rows > kMaxBlocks) return ffi::Error::InvalidArgument("rms_norm: too many rows");
  if (shape->rows > 0) {  // a grid without blocks is an error
    ForwardKernel<<<shape->rows, kThreads, 0, stream>>>(
        x.typed_data(), weights.typed_data(), y->typed_data(), scales->typed_data(), shape->n,
        shape->rows_per_weights, eps);
  }
  return Launched();
}

static ffi::Error Backward(cudaStream_t stream, Floats x, Floats weights, Floats scales, Floats g,
                           Out dx, Out dw) {
  ffi::ErrorOr<Shape> shape = ShapeOf(x, weights);
  if (shape.has_error()) return shape.error();
  if (g.element_count() != x.element_count() || int64_t(scales.element_count()) != shape->rows) {
    return ffi::Error::InvalidArgument("rms_norm: the shapes of the cotangent or scales differ");
  }
  int64_t size = shape->rows_of_weights * shape->n, blocks = (size + kThreads - 1) / kThreads;
  if (shape->rows > kMaxBlocks || blocks > kMaxBlocks) {
    return ffi::Error::InvalidArgument("rms_norm: too many rows");
  }
  if (shape->rows > 0) {
    BackwardKernel<<<shape->rows, kThreads, 0, stream>>>(
        x.typed_data(), weights.typed_data(), scales.typed_data(), g.typed_data(),
        dx->typed_data(), shape->n, shape->rows_per_weights);
  }
  if (size > 0) {
    WeightsKernel<<<blocks, kThreads, 0, stream>>>(x.typed_data(), scales.typed_data(),
                                                   g.typed_data(), dw->typed_data(), shape->n,
                                                   shape->rows_per_weights, size);
  }
  return Launched();
}

// Handlers that only launch kernels can be recorded in a CUDA graph.
XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_rms_norm, Forward,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>()
                                  .Attr<float>("eps"),
                              {ffi::Traits::kCmdBufferCompatible});

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_rms_norm_backward, Backward,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>(),
                              {ffi::Traits::kCmdBufferCompatible});

}  // namespace rms_norm
