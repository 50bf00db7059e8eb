// An array seen along one of its axes.
#pragma once

#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace primax {

// Element i of line (a, b) of a row-major array is at (a * length + i) * inner + b.
struct Lines {
  int64_t outer = 1, length = 1, inner = 1;

  int64_t count() const { return outer * inner; }
};

inline Lines lines_along(xla::ffi::Span<const int64_t> dimensions, int64_t axis) {
  Lines lines;
  for (int64_t i = 0; i < int64_t(dimensions.size()); ++i) {
    (i < axis ? lines.outer : i == axis ? lines.length : lines.inner) *= dimensions[i];
  }
  return lines;
}

}  // namespace primax
