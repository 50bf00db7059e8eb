// Cholesky factors of small matrices, and the ways in which a handler fails.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace cholesky {

namespace ffi = xla::ffi;

// The lower factor l of one matrix, a = l lᵀ. Exceptions leave a handler as errors, with their text.
static int64_t Factor(const float* a, float* l, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = i < j ? 0 : a[i * n + j];
      for (int64_t k = 0; i >= j && k < j; ++k) sum -= double(l[i * n + k]) * l[j * n + k];
      if (std::isnan(sum)) throw std::domain_error("cholesky: the matrix contains NaN");
      if (i == j && sum <= 0) return j;
      l[i * n + j] = static_cast<float>(i < j ? 0 : i == j ? std::sqrt(sum) : sum / l[j * n + j]);
    }
  }
  return n;
}

static ffi::Error Cholesky(ffi::Buffer<ffi::F32> a, ffi::ResultBuffer<ffi::F32> l) {
  auto sizes = a.dimensions();
  if (sizes.size() < 2 || sizes[sizes.size() - 1] != sizes[sizes.size() - 2]) {
    return ffi::Error::InvalidArgument("cholesky: the operand has no square matrices");
  }
  int64_t n = sizes.back(), count = n == 0 ? 0 : a.element_count() / (n * n);
  for (int64_t i = 0; i < count; ++i) {
    int64_t pivot = Factor(a.typed_data() + i * n * n, l->typed_data() + i * n * n, n);
    if (pivot < n) {
      return ffi::Error::InvalidArgument("cholesky: pivot " + std::to_string(pivot) +
                                         " of matrix " + std::to_string(i) + " is not positive");
    }
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    examples_cholesky, Cholesky,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

}  // namespace cholesky
