// RMS normalization with weights, forward and backward.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "rms_norm.h"
#include "xla/ffi/api/ffi.h"

namespace rms_norm {

// y = w x s with s = 1 / sqrt(mean(x²) + eps), and s of each row for the backward pass.
static ffi::Error Forward(Floats x, Floats weights, Out y, Out scales, float eps) {
  ffi::ErrorOr<Shape> shape = ShapeOf(x, weights);
  if (shape.has_error()) return shape.error();
  int64_t n = shape->n;
  for (int64_t row = 0; row < shape->rows; ++row) {
    const float* in = x.typed_data() + row * n;
    const float* w = weights.typed_data() + row / shape->rows_per_weights * n;
    float* out = y->typed_data() + row * n;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(in[i]) * in[i];
    float scale = static_cast<float>(1 / std::sqrt(sum / n + eps));
    for (int64_t i = 0; i < n; ++i) out[i] = w[i] * (scale * in[i]);
    scales->typed_data()[row] = scale;
  }
  return ffi::Error::Success();
}

// dx = s w g - s³ x mean(x w g) for each row, and dw = sum over rows of s x g.
static ffi::Error Backward(Floats x, Floats weights, Floats scales, Floats g, Out dx, Out dw) {
  ffi::ErrorOr<Shape> shape = ShapeOf(x, weights);
  if (shape.has_error()) return shape.error();
  if (g.element_count() != x.element_count() || int64_t(scales.element_count()) != shape->rows) {
    return ffi::Error::InvalidArgument("rms_norm: the shapes of the cotangent or scales differ");
  }
  int64_t n = shape->n;
  std::vector<double> sums(n);
  for (int64_t k = 0; k < shape->rows_of_weights; ++k) {
    const float* w = weights.typed_data() + k * n;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t r = 0; r < shape->rows_per_weights; ++r) {
      int64_t row = k * shape->rows_per_weights + r;
      const float* in = x.typed_data() + row * n;
      const float* cotangent = g.typed_data() + row * n;
      float* out = dx->typed_data() + row * n;
      double scale = scales.typed_data()[row], dot = 0;
      for (int64_t i = 0; i < n; ++i) dot += double(in[i]) * w[i] * cotangent[i];
      double along = scale * scale * scale * dot / n;
      for (int64_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(scale * w[i] * cotangent[i] - along * in[i]);
        sums[i] += scale * in[i] * cotangent[i];
      }
    }
    for (int64_t i = 0; i < n; ++i) dw->typed_data()[k * n + i] = static_cast<float>(sums[i]);
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_rms_norm, Forward,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>()
                                  .Attr<float>("eps"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_rms_norm_backward, Backward,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>());

}  // namespace rms_norm
