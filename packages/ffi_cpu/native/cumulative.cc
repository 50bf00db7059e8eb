// Cumulative sums along an axis.
#include <cstdint>

#include "dimensions.h"
#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;

template <class T>
void sum_line(const T* x, T* out, Lines lines, int64_t line, bool reverse) {
  const int64_t at = line / lines.inner * lines.length * lines.inner + line % lines.inner;
  const int64_t step = reverse ? -lines.inner : lines.inner;
  int64_t i = reverse ? at + (lines.length - 1) * lines.inner : at;
  T sum = 0;
  for (int64_t k = 0; k < lines.length; ++k, i += step) out[i] = sum += x[i];
}

ffi::Error cumsum(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> out,
                  int64_t axis, bool reverse) {
  const Lines lines = lines_along(x.dimensions(), axis);
  const float* from = x.typed_data();
  float* to = out->typed_data();
  for_each_part(pool, lines.count(), double(lines.length), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum_line(from, to, lines, i, reverse);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace primax

PRIMAX_CPU_HANDLER(primax_cpu_cumsum, primax::cumsum,
                   xla::ffi::Ffi::Bind()
                       .Ctx<xla::ffi::ThreadPool>()
                       .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                       .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                       .Attr<int64_t>("axis")
                       .Attr<bool>("reverse"));
