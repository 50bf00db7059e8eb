// The shapes of RMS normalization, for the CPU and for CUDA.

#ifndef NATIVE_EXAMPLES_RMS_NORM_H_
#define NATIVE_EXAMPLES_RMS_NORM_H_

#include <cstddef>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace rms_norm {

namespace ffi = xla::ffi;
using Floats = ffi::Buffer<ffi::F32>;
using Out = ffi::ResultBuffer<ffi::F32>;

// x has the shape [... n]. The weights have the shape [n], or under vmap [b n], where consecutive
// rows of x belong to each row of weights.
struct Shape {
  int64_t rows, n, rows_of_weights, rows_per_weights;
};

inline ffi::ErrorOr<Shape> ShapeOf(Floats x, Floats weights) {
  if (x.dimensions().size() == 0 || weights.dimensions().size() == 0) {
    return ffi::Unexpected(ffi::Error::InvalidArgument("rms_norm: an operand has no axis"));
  }
  int64_t n = x.dimensions().back();
  int64_t rows = 1, others = 1;
  for (size_t i = 0; i + 1 < x.dimensions().size(); ++i) rows *= x.dimensions()[i];
  for (size_t i = 0; i + 1 < weights.dimensions().size(); ++i) others *= weights.dimensions()[i];
  if (weights.dimensions().back() != n || (others == 0 ? rows != 0 : rows % others != 0)) {
    return ffi::Unexpected(ffi::Error::InvalidArgument("rms_norm: the shapes do not fit"));
  }
  return Shape{rows, n, others, others == 0 ? 0 : rows / others};
}

}  // namespace rms_norm

#endif  // NATIVE_EXAMPLES_RMS_NORM_H_
