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

  bool is_side_by_side() const { return lines.inner >= kSideBySide; }

  // Lines side by side, of the operation's type or of a narrower one.
  template <class Op, class Stored = typename Op::Type>
  ffi::Error side_by_side(double nanoseconds, Op op = {}) const {
    scan_side_by_side(pool, static_cast<const Stored*>(x), static_cast<Stored*>(out), lines, reverse,
                      op, nanoseconds);
    return ffi::Error::Success();
  }

  template <class Op, class Stored = typename Op::Type, int Alternating = 1>
  ffi::Error one_by_one(double nanoseconds, Op op = {}) const {
    scan_adjacent<Op, Stored, Alternating>(pool, x, out, lines, reverse, op, nanoseconds);
    return ffi::Error::Success();
  }

  template <class Op, class Stored = typename Op::Type>
  ffi::Error run(double nanoseconds) const {
    return is_side_by_side() ? side_by_side<Op, Stored>(nanoseconds) : one_by_one<Op, Stored>(nanoseconds);
  }

  // Real and imaginary parts, summed alike.
  template <class Op>
  ffi::Error run_pairs(double nanoseconds) const {
    Scan parts = *this;
    parts.lines.inner *= 2;
    if (lines.inner > 1) return parts.run<Op>(nanoseconds);
    return parts.one_by_one<Op, typename Op::Type, 2>(nanoseconds);
  }
};

ffi::Error unsupported(DataType dtype) {
  return ffi::Error::InvalidArgument("no cumulative operation for data type " +
                                     std::to_string(int(dtype)) + " of XLA");
}

template <template <class> class Op>
ffi::Error run_arithmetic(const Scan& scan, DataType dtype) {
  switch (dtype) {
    case DataType::S8:
    case DataType::U8:
      return scan.run<Op<uint32_t>, uint8_t>(0.4);
    case DataType::S16:
    case DataType::U16:
      return scan.run<Op<uint32_t>, uint16_t>(0.4);
    case DataType::S32:
    case DataType::U32:
      return scan.run<Op<uint32_t>>(0.3);
    case DataType::S64:
    case DataType::U64:
      return scan.run<Op<uint64_t>>(0.6);
    case DataType::F16:
      return scan.run<Op<float>, Half>(1.5);
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

ffi::Error run_sum(const Scan& scan, DataType dtype) {
  switch (dtype) {
    case DataType::C64:
      return scan.run_pairs<Sum<float>>(0.4);
    case DataType::C128:
      return scan.run_pairs<Sum<double>>(0.8);
    default:
      return run_arithmetic<Sum>(scan, dtype);
  }
}

ffi::Error run_product(const Scan& scan, DataType dtype) {
  switch (dtype) {
    case DataType::C64:
      return scan.side_by_side<ComplexProduct<float>>(3);
    case DataType::C128:
      return scan.side_by_side<ComplexProduct<double>>(3);
    default:
      return run_arithmetic<Product>(scan, dtype);
  }
}

// Number of bits of the significand, or 0.
int significand_of(DataType dtype) {
  switch (dtype) {
    case DataType::F16:
      return 10;
    case DataType::BF16:
      return 7;
    case DataType::F32:
      return 23;
    case DataType::F64:
      return 52;
    default:
      return 0;
  }
}

// Keys of elements whose bits are the upper ones of an E.
template <class E>
Maximum<E> keys(int significand, int unused_bits, bool is_unsigned, bool smallest) {
  const int64_t nans = significand ? ((int64_t{1} << significand) - 1) << unused_bits : 0;
  Maximum<E> op;
  op.inverted = significand ? std::numeric_limits<E>::max() : E(0);
  op.above = E(smallest ? -nans : nans);
  op.flip = E((is_unsigned ? std::numeric_limits<E>::min() : E(0)) ^ (smallest ? E(-1) : E(0)));
  return op;
}

template <class E>
ffi::Error run_extremum_of(const Scan& scan, int significand, bool is_unsigned, bool smallest) {
  constexpr int kUnused = sizeof(E) < 4 ? 32 - 8 * int(sizeof(E)) : 0;
  const double nanoseconds = 0.15 * sizeof(E);
  if (scan.is_side_by_side()) {
    return scan.side_by_side<Maximum<E>>(nanoseconds, keys<E>(significand, 0, is_unsigned, smallest));
  }
  if constexpr (kUnused) {
    return scan.one_by_one<Maximum<int32_t>, Upper<E>>(
        0.6, keys<int32_t>(significand, kUnused, is_unsigned, smallest));
  } else {
    return scan.one_by_one<Maximum<E>>(nanoseconds, keys<E>(significand, 0, is_unsigned, smallest));
  }
}

ffi::Error run_extremum(const Scan& scan, DataType dtype, bool smallest) {
  const int significand = significand_of(dtype);
  switch (dtype) {
    case DataType::S8:
    case DataType::U8:
      return run_extremum_of<int8_t>(scan, significand, dtype == DataType::U8, smallest);
    case DataType::S16:
    case DataType::U16:
    case DataType::F16:
    case DataType::BF16:
      return run_extremum_of<int16_t>(scan, significand, dtype == DataType::U16, smallest);
    case DataType::S32:
    case DataType::U32:
    case DataType::F32:
      return run_extremum_of<int32_t>(scan, significand, dtype == DataType::U32, smallest);
    case DataType::S64:
    case DataType::U64:
    case DataType::F64:
      return run_extremum_of<int64_t>(scan, significand, dtype == DataType::U64, smallest);
    default:
      return unsupported(dtype);
  }
}

using In = ffi::AnyBuffer;
using Out = ffi::Result<ffi::AnyBuffer>;

Scan scan_of(ffi::ThreadPool& pool, In x, Out& out, int64_t axis, bool reverse) {
  return {pool, x.untyped_data(), out->untyped_data(), lines_along(x.dimensions(), axis), reverse};
}

bool is_empty(In x) { return x.element_count() == 0; }

ffi::Error cumsum(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  if (is_empty(x)) return ffi::Error::Success();
  return run_sum(scan_of(pool, x, out, axis, reverse), x.element_type());
}

ffi::Error cumprod(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  if (is_empty(x)) return ffi::Error::Success();
  return run_product(scan_of(pool, x, out, axis, reverse), x.element_type());
}

ffi::Error cummax(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  if (is_empty(x)) return ffi::Error::Success();
  return run_extremum(scan_of(pool, x, out, axis, reverse), x.element_type(), false);
}

ffi::Error cummin(ffi::ThreadPool pool, In x, Out out, int64_t axis, bool reverse) {
  if (is_empty(x)) return ffi::Error::Success();
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
