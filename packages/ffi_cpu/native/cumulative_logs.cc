// Cumulative log-sum-exps along an axis.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dimensions.h"
#include "floats.h"
#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;

// log(1 + x) for x >= 0, precise to T.
template <class T>
PRIMAX_INLINE double log_of_one_plus(double x) {
  if constexpr (std::is_same_v<T, double>) return std::log1p(x);
  return x < 1e-4 ? x - x * x / 2 : std::log(1 + x);
}

// The logarithm of a sum of exponentials, as the greatest exponent and the sum of the others
// divided by the greatest. The sum is kept in twice the precision.
template <class T>
class LogSum {
 public:
  PRIMAX_INLINE void add(T x) {
    if (x <= greatest_) {
      if (x == greatest_ && std::isinf(x)) return;
      add_other(std::exp(x - greatest_));
    } else if (x > greatest_) {
      const double factor = std::exp(greatest_ - x);
      others_ = (1 + others_) * factor;
      error_ *= factor;
      if (greatest_ == -kInfinity) others_ = 0;
      greatest_ = x;
    } else {  // NaN, now or before
      greatest_ += x;
    }
  }

  PRIMAX_INLINE T value() const {
    return T(double(greatest_) + log_of_one_plus<T>(others_ + error_));
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  PRIMAX_INLINE void add_other(double x) {
    if constexpr (std::is_same_v<T, double>) {
      const double sum = others_ + x, part = sum - others_;
      error_ += (others_ - (sum - part)) + (x - part);
      others_ = sum;
    } else {
      others_ += x;
    }
  }

  T greatest_ = -kInfinity;
  double others_ = 0, error_ = 0;
};

constexpr int64_t kTogether = 32;  // adjacent lines, for the cache

template <class Stored, class T>
void scan_logs(const Stored* x, Stored* out, int64_t length, int64_t inner, int64_t width, bool reverse) {
  LogSum<T> sums[kTogether];
  for (int64_t k = 0; k < length; ++k) {
    const int64_t at = (reverse ? length - 1 - k : k) * inner;
    for (int64_t i = 0; i < width; ++i) {
      sums[i].add(T(x[at + i]));
      out[at + i] = Stored(sums[i].value());
    }
  }
}

template <class Stored, class T>
ffi::Error run(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer>& out, Lines lines,
               bool reverse) {
  const auto* from = static_cast<const Stored*>(x.untyped_data());
  auto* to = static_cast<Stored*>(out->untyped_data());
  const int64_t parts = (lines.inner + kTogether - 1) / kTogether;
  const double nanoseconds = 10.0 * double(lines.length * std::min(lines.inner, kTogether));
  for_each_part(pool, lines.outer * parts, nanoseconds, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % parts * kTogether;
      const int64_t at = i / parts * lines.length * lines.inner + first;
      scan_logs<Stored, T>(from + at, to + at, lines.length, lines.inner,
                           std::min(kTogether, lines.inner - first), reverse);
    }
  });
  return ffi::Error::Success();
}

ffi::Error cumlogsumexp(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                        int64_t axis, bool reverse) {
  if (x.element_count() == 0) return ffi::Error::Success();
  const Lines lines = lines_along(x.dimensions(), axis);
  switch (x.element_type()) {
    case ffi::DataType::F16:
      return run<Half, float>(pool, x, out, lines, reverse);
    case ffi::DataType::BF16:
      return run<Bfloat16, float>(pool, x, out, lines, reverse);
    case ffi::DataType::F32:
      return run<float, float>(pool, x, out, lines, reverse);
    case ffi::DataType::F64:
      return run<double, double>(pool, x, out, lines, reverse);
    default:
      return ffi::Error::InvalidArgument("no cumulative log-sum-exp for data type " +
                                         std::to_string(int(x.element_type())) + " of XLA");
  }
}

}  // namespace
}  // namespace primax

PRIMAX_CPU_HANDLER(primax_cpu_cumlogsumexp, primax::cumlogsumexp,
                   xla::ffi::Ffi::Bind()
                       .Ctx<xla::ffi::ThreadPool>()
                       .Arg<xla::ffi::AnyBuffer>()
                       .Ret<xla::ffi::AnyBuffer>()
                       .Attr<int64_t>("axis")
                       .Attr<bool>("reverse"));
