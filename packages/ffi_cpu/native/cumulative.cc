// Cumulative sums, products, maxima and minima along an axis.
#include "cumulative.h"

#include <cstdint>

#include "dimensions.h"
#include "floats.h"
#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;
using ffi::DataType;

template <class E>
struct Complex {
  E real, imaginary;
};

// Complex products, element by element.
template <class E>
struct ComplexProduct : Plain {
  using Type = Complex<E>;
  static constexpr Type kNeutral = {1, 0};
  static constexpr bool kBlocked = false;
  static PRIMAX_INLINE Type apply(Type a, Type b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
};

// One call, with everything but the types.
struct Scan {
  ffi::ThreadPool& pool;
  const void* x;
  void* out;
  Lines lines;
  bool reverse;

  template <class Op, class Stored = typename Op::Type>
  ffi::Error run(double nanoseconds, Op op = {}) const {
    const auto* from = static_cast<const Stored*>(x);
    auto* to = static_cast<Stored*>(out);
    if constexpr (std::is_class_v<typename Op::Type>) {
      scan_side_by_side(pool, from, to, lines, reverse, op, nanoseconds);
    } else {
      scan(pool, from, to, lines, reverse, op, nanoseconds);
    }
    return ffi::Error::Success();
  }
};

ffi::Error unsupported(DataType dtype) {
  return ffi::Error::InvalidArgument("no cumulative operation for data type " +
                                     std::to_string(int(dtype)) + " of XLA");
}

template <template <class> class Op>
ffi::Error run_arithmetic(Scan scan, DataType dtype) {
  switch (dtype) {
    case DataType::S8:
    case DataType::U8:
      return scan.run<Op<uint8_t>>(0.1);
    case DataType::S16:
    case DataType::U16:
      return scan.run<Op<uint16_t>>(0.2);
    case DataType::S32:
    case DataType::U32:
      return scan.run<Op<uint32_t>>(0.3);
    case DataType::S64:
    case DataType::U64:
      return scan.run<Op<uint64_t>>(0.6);
    case DataType::F16:
      return scan.run<Op<float>, Half>(1);
    case DataType::BF16:
      return scan.run<Op<float>, Bfloat16>(0.6);
    case DataType::F32:
      return scan.run<Op<float>>(0.4);
    case DataType::F64:
      return scan.run<Op<double>>(0.8);
    default:
      return unsupported(dtype);
  }
}

ffi::Error run_sum(Scan scan, DataType dtype) {
  Scan parts = scan;  // complex sums are those of the real and the imaginary parts
  parts.lines.inner *= 2;
  switch (dtype) {
    case DataType::C64:
      return parts.run<Sum<float>>(0.4);
    case DataType::C128:
      return parts.run<Sum<double>>(0.8);
    default:
      return run_arithmetic<Sum>(scan, dtype);
  }
}

ffi::Error run_product(Scan scan, DataType dtype) {
  switch (dtype) {
    case DataType::C64:
      return scan.run<ComplexProduct<float>>(3);
    case DataType::C128:
      return scan.run<ComplexProduct<double>>(3);
    default:
      return run_arithmetic<Product>(scan, dtype);
  }
}

// Number of the NaNs of one sign, or 0.
int64_t nans_of(DataType dtype) {
  switch (dtype) {
    case DataType::F16:
      return (int64_t{1} << 10) - 1;
    case DataType::BF16:
      return (int64_t{1} << 7) - 1;
    case DataType::F32:
      return (int64_t{1} << 23) - 1;
    case DataType::F64:
      return (int64_t{1} << 52) - 1;
    default:
      return 0;
  }
}

template <class E>
ffi::Error run_extremum_of(Scan scan, int64_t nans, bool is_unsigned, bool smallest) {
  Maximum<E> op;
  op.inverted = nans ? std::numeric_limits<E>::max() : E(0);
  op.above = E(smallest ? -nans : nans);
  op.flip = E((is_unsigned ? std::numeric_limits<E>::min() : E(0)) ^ (smallest ? E(-1) : E(0)));
  return scan.run<Maximum<E>>(0.15 * sizeof(E), op);
}

ffi::Error run_extremum(Scan scan, DataType dtype, bool smallest) {
  const int64_t nans = nans_of(dtype);
  switch (dtype) {
    case DataType::S8:
    case DataType::U8:
      return run_extremum_of<int8_t>(scan, nans, dtype == DataType::U8, smallest);
    case DataType::S16:
    case DataType::U16:
    case DataType::F16:
    case DataType::BF16:
      return run_extremum_of<int16_t>(scan, nans, dtype == DataType::U16, smallest);
    case DataType::S32:
    case DataType::U32:
    case DataType::F32:
      return run_extremum_of<int32_t>(scan, nans, dtype == DataType::U32, smallest);
    case DataType::S64:
    case DataType::U64:
    case DataType::F64:
      return run_extremum_of<int64_t>(scan, nans, dtype == DataType::U64, smallest);
    default:
      return unsupported(dtype);
  }
}

using In = ffi::AnyBuffer;
using Out = ffi::Result<ffi::AnyBuffer>;

Scan scan_of(ffi::ThreadPool& pool, In x, Out& out, int64_t axis, bool reverse) {
  return {pool, x.untyped_data(), out->untyped_data(), lines_along(x.dimensions(), axis), reverse};
}

ffi::Error cumsum(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  return run_sum(scan_of(pool, x, out, axis, reverse), x.element_type());
}

ffi::Error cumprod(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  return run_product(scan_of(pool, x, out, axis, reverse), x.element_type());
}

ffi::Error cummax(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  return run_extremum(scan_of(pool, x, out, axis, reverse), x.element_type(), false);
}

ffi::Error cummin(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  return run_extremum(scan_of(pool, x, out, axis, reverse), x.element_type(), true);
}

}  // namespace
}  // namespace primax

#define PRIMAX_CPU_CUMULATIVE(name)                                  \
  PRIMAX_CPU_HANDLER(primax_cpu_##name, primax::name,                \
                     xla::ffi::Ffi::Bind()                           \
                         .Ctx<xla::ffi::ThreadPool>()                \
                         .Arg<xla::ffi::AnyBuffer>()                 \
                         .Ret<xla::ffi::AnyBuffer>()                 \
                         .Attr<int64_t>("axis")                      \
                         .Attr<bool>("reverse"))

PRIMAX_CPU_CUMULATIVE(cumsum);
PRIMAX_CPU_CUMULATIVE(cumprod);
PRIMAX_CPU_CUMULATIVE(cummax);
PRIMAX_CPU_CUMULATIVE(cummin);
