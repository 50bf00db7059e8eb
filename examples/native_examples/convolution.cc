// Causal convolution of real rows with a short kernel: y[t] = sum over j of k[j] x[t - j].

#include <algorithm>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace convolution {

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Out = ffi::ResultBuffer<ffi::F32>;

// Numbers of rows, and the lengths of a row and of the kernel.
struct Shape {
  int64_t rows, n, m;
};

static ffi::ErrorOr<Shape> ShapeOf(Floats x, int64_t m) {
  if (x.dimensions().size() == 0) {
    return ffi::Unexpected(ffi::Error::InvalidArgument("convolution: x has no axis"));
  }
  int64_t n = x.dimensions().back();
  return Shape{n == 0 ? 0 : int64_t(x.element_count()) / n, n, m};
}

static ffi::Error Convolve(Floats x, Floats kernel, Out y) {
  ffi::ErrorOr<Shape> shape = ShapeOf(x, kernel.element_count());
  if (shape.has_error()) return shape.error();
  auto [rows, n, m] = *shape;
  const float* k = kernel.typed_data();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.typed_data() + row * n;
    float* out = y->typed_data() + row * n;
    std::fill(out, out + n, 0.0f);
    // The inner loop runs along the row, so that compilers vectorize it.
    for (int64_t j = 0; j < std::min(n, m); ++j) {
      for (int64_t t = j; t < n; ++t) out[t] += k[j] * in[t - j];
    }
  }
  return ffi::Error::Success();
}

// dx[t] = sum over j of k[j] g[t + j], and dk[j] = sum over rows and t of x[t - j] g[t].
static ffi::Error Backward(Floats x, Floats kernel, Floats g, Out dx, Out dk) {
  ffi::ErrorOr<Shape> shape = ShapeOf(x, kernel.element_count());
  if (shape.has_error()) return shape.error();
  if (g.element_count() != x.element_count()) {
    return ffi::Error::InvalidArgument("convolution: the cotangent has another size");
  }
  auto [rows, n, m] = *shape;
  const float* k = kernel.typed_data();
  std::fill(dx->typed_data(), dx->typed_data() + x.element_count(), 0.0f);
  for (int64_t j = 0; j < m; ++j) {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const float* in = x.typed_data() + row * n;
      const float* cotangent = g.typed_data() + row * n;
      float* out = dx->typed_data() + row * n;
      for (int64_t t = j; t < n; ++t) {
        out[t - j] += k[j] * cotangent[t];
        sum += double(in[t - j]) * cotangent[t];
      }
    }
    dk->typed_data()[j] = static_cast<float>(sum);
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_convolve, Convolve,
                              ffi::Ffi::Bind().Arg<Floats>().Arg<Floats>().Ret<Floats>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    examples_convolve_backward, Backward,
    ffi::Ffi::Bind().Arg<Floats>().Arg<Floats>().Arg<Floats>().Ret<Floats>().Ret<Floats>());

}  // namespace convolution
