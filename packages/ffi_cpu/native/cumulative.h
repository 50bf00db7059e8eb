// Prefix scans of an associative operation.
//
// A line is an axis of the array. Lines of adjacent elements (inner == 1, or 2 or 4 lines that
// alternate) are scanned by vectors; others side by side.
//
// Sums of floats are blocked, so that their rounding errors stay those of a block: the sums before
// each block are kept in twice the precision. The blocks do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "dimensions.h"
#include "parallel.h"
#include "vectors.h"

namespace primax {

// Twice the precision of a float, for sums of blocks.
template <class T>
class Precise {
 public:
  void add(T x) { sum_ += x; }
  T value() const { return T(sum_); }

 private:
  double sum_ = 0;
};

// Knuth, "The art of computer programming", volume 2, section 4.2.2: the rounding error of a sum.
template <>
class Precise<double> {
 public:
  void add(double x) {
    const double sum = sum_ + x, part = sum - sum_;
    const double error = (sum_ - (sum - part)) + (x - part);
    sum_ = sum;
    // Of infinite sums the difference is NaN.
    if (error == error) error_ += error;
  }
  double value() const { return sum_ + error_; }

 private:
  double sum_ = 0, error_ = 0;
};

// The result before a block, of an operation without rounding errors.
template <class Op>
class Exact {
 public:
  using T = typename Op::Type;
  void add(T x) { value_ = Op::apply(value_, x); }
  T value() const { return value_; }

 private:
  T value_ = Op::kNeutral;
};

// Elements as they are stored.
struct Plain {
  template <class V>
  static PRIMAX_INLINE V decoded(V v) {
    return v;
  }
  template <class V>
  static PRIMAX_INLINE V encoded(V v) {
    return v;
  }
};

template <class E>
struct Sum : Plain {
  using Type = E;
  static constexpr E kNeutral = 0;
  static constexpr bool kBlocked = std::is_floating_point_v<E>;  // offsets are added to blocks
  static constexpr bool kSplit = true;                           // threads share a line
  template <class V>
  static PRIMAX_INLINE V apply(V a, V b) {
    return V(a + b);
  }
};

template <class E>
struct Product : Plain {
  using Type = E;
  static constexpr E kNeutral = 1;
  static constexpr bool kBlocked = false;
  static constexpr bool kSplit = !std::is_floating_point_v<E>;  // rounding would depend on it
  template <class V>
  static PRIMAX_INLINE V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return V(1u * a * b);  // not as signed integers, whose products may not overflow
    } else {
      return a * b;
    }
  }
};

// Maxima of keys: integers in the order of the elements. NaN has the greatest keys.
template <class E>
struct Maximum {
  using Type = E;
  static constexpr E kNeutral = std::numeric_limits<E>::min();
  static constexpr bool kBlocked = false;
  static constexpr bool kSplit = true;
  template <class V>
  static PRIMAX_INLINE V apply(V a, V b) {
    return a > b ? a : b;
  }

  // Of negative floats all bits but the sign are inverted; `above` moves the negative NaNs past the
  // positive ones. `flip` inverts the order, for minima, or the sign of unsigned integers.
  using Bits = std::make_unsigned_t<E>;
  E inverted = 0, above = 0, flip = 0;

  template <class V>
  PRIMAX_INLINE V decoded(V v) const {
    return V(Wrapping<V>(V(v ^ (negative(v) & inverted))) - Bits(above)) ^ flip;
  }
  template <class V>
  PRIMAX_INLINE V encoded(V v) const {
    v = V(Wrapping<V>(V(v ^ flip)) + Bits(above));
    return v ^ (negative(v) & inverted);
  }

 private:
  template <class V>
  using Wrapping = std::conditional_t<std::is_integral_v<V>, Bits, Vector<Bits>>;

  template <class V>
  static PRIMAX_INLINE V negative(V v) {
    return V(v >> (8 * int(sizeof(E)) - 1));
  }
};

template <class Op>
using Before = std::conditional_t<Op::kBlocked, Precise<typename Op::Type>, Exact<Op>>;

constexpr int64_t kBlock = 256;       // elements, of each of the alternating lines
constexpr int64_t kColumnBlock = 32;  // of lines side by side
constexpr int64_t kColumns = 1024;    // lines side by side at a time

template <class Op, int Lines, int Shift = Lines>
PRIMAX_INLINE Vector<typename Op::Type> prefixes(Vector<typename Op::Type> v) {
  using T = typename Op::Type;
  if constexpr (Shift < kLanes<T>) {
    v = Op::apply(shifted<T, Shift>(v, repeated<T>(Op::kNeutral)), v);
    return prefixes<Op, Lines, Shift * 2>(v);
  } else {
    return v;
  }
}

// Scans a block of `size` elements of `Lines` alternating lines. `offset` holds the results before
// the block, repeated. Returns those at its end; of a blocked operation without the offset.
template <class Op, int Lines, bool Reverse, bool Store>
PRIMAX_INLINE Vector<typename Op::Type> scan_block(const typename Op::Type* x, typename Op::Type* out,
                                                   int64_t size, Vector<typename Op::Type> offset,
                                                   Op op) {
  using T = typename Op::Type;
  constexpr int64_t kStep = kLanes<T>;
  Vector<T> carry = Op::kBlocked ? repeated<T>(Op::kNeutral) : offset;
  auto step = [&](Vector<T> v) {
    if constexpr (Reverse) v = reversed<T, Lines>(v);
    const Vector<T> local = prefixes<Op, Lines>(v);
    v = Op::apply(carry, local);
    if constexpr (Store && Op::kBlocked) v = Op::apply(offset, v);
    carry = Op::apply(carry, last_repeated<T, Lines>(local));
    if constexpr (Reverse) v = reversed<T, Lines>(v);
    return v;
  };
  int64_t i = 0;
  for (; i + kStep <= size; i += kStep) {
    const int64_t at = Reverse ? size - i - kStep : i;
    const Vector<T> v = step(op.decoded(load(x + at)));
    if constexpr (Store) store(out + at, op.encoded(v));
  }
  if (i < size) {  // the rest, filled up
    const int64_t count = size - i, at = Reverse ? 0 : i, first = Reverse ? kStep - count : 0;
    T ends[kStep];
    store(ends, op.encoded(repeated<T>(Op::kNeutral)));
    std::memcpy(ends + first, x + at, size_t(count) * sizeof(T));
    const Vector<T> v = step(op.decoded(load(ends)));
    store(ends, op.encoded(v));
    if constexpr (Store) std::memcpy(out + at, ends + first, size_t(count) * sizeof(T));
  }
  return carry;
}

// The elements of a line, or of alternating ones; narrow floats are converted by blocks.
template <class Op, class Stored>
struct Line {
  const Stored* x;
  Stored* out;
  int64_t size;
  Op op;
};

template <class Op, int Lines, bool Reverse, bool Store, class Stored>
PRIMAX_INLINE Vector<typename Op::Type> scan_block_of(const Line<Op, Stored>& line, int64_t block,
                                                      Vector<typename Op::Type> offset) {
  using T = typename Op::Type;
  const int64_t begin = block * kBlock * Lines, size = std::min(kBlock * Lines, line.size - begin);
  const int64_t at = Reverse ? line.size - begin - size : begin;
  if constexpr (std::is_same_v<T, Stored>) {
    return scan_block<Op, Lines, Reverse, Store>(line.x + at, line.out + at, size, offset, line.op);
  } else {
    T wide[kBlock * Lines];
    for (int64_t i = 0; i < size; ++i) wide[i] = T(line.x[at + i]);
    const auto total = scan_block<Op, Lines, Reverse, Store>(wide, wide, size, offset, line.op);
    if constexpr (Store) {
      for (int64_t i = 0; i < size; ++i) line.out[at + i] = Stored(wide[i]);
    }
    return total;
  }
}

template <class Op, int Lines>
struct Prefix {
  using T = typename Op::Type;
  Before<Op> before[Lines];

  PRIMAX_INLINE void add(const T* total) {
    for (int i = 0; i < Lines; ++i) before[i].add(total[i]);
  }
  PRIMAX_INLINE void values(T* out) const {
    for (int i = 0; i < kLanes<T>; ++i) out[i] = before[i % Lines].value();
  }
};

template <class Op, int Lines, bool Reverse, class Stored>
PRIMAX_CLONES void scan_line(Line<Op, Stored> line) {
  using T = typename Op::Type;
  const int64_t blocks = (line.size + kBlock * Lines - 1) / (kBlock * Lines);
  Vector<T> offset = repeated<T>(Op::kNeutral);
  Prefix<Op, Lines> prefix;
  for (int64_t i = 0; i < blocks; ++i) {
    const Vector<T> total = scan_block_of<Op, Lines, Reverse, true>(line, i, offset);
    if constexpr (Op::kBlocked) {
      T values[kLanes<T>];
      store(values, total);
      prefix.add(values);
      prefix.values(values);
      offset = load(values);
    } else {
      offset = total;
    }
  }
}

template <class Op, int Lines, bool Reverse, class Stored>
PRIMAX_CLONES void block_totals(Line<Op, Stored> line, int64_t begin, int64_t end,
                                typename Op::Type* totals) {
  using T = typename Op::Type;
  for (int64_t i = begin; i < end; ++i) {
    T values[kLanes<T>];
    store(values, scan_block_of<Op, Lines, Reverse, false>(line, i, repeated<T>(Op::kNeutral)));
    std::memcpy(totals + i * Lines, values, sizeof(T) * Lines);
  }
}

template <class Op, int Lines, bool Reverse, class Stored>
PRIMAX_CLONES void scan_blocks(Line<Op, Stored> line, int64_t begin, int64_t end,
                               const typename Op::Type* offsets) {
  using T = typename Op::Type;
  for (int64_t i = begin; i < end; ++i) {
    T values[kLanes<T>];
    for (int k = 0; k < kLanes<T>; ++k) values[k] = offsets[i * Lines + k % Lines];
    scan_block_of<Op, Lines, Reverse, true>(line, i, load(values));
  }
}

// A line scanned by several threads: the blocks' results first.
template <class Op, int Lines, bool Reverse, class Stored>
void scan_line_in_parts(xla::ffi::ThreadPool& pool, Line<Op, Stored> line, double nanoseconds) {
  using T = typename Op::Type;
  const int64_t blocks = (line.size + kBlock * Lines - 1) / (kBlock * Lines);
  const std::unique_ptr<T[]> totals(new T[size_t(blocks * Lines)]);
  T* results = totals.get();
  for_each_part(pool, blocks, nanoseconds * kBlock * Lines, [=](int64_t begin, int64_t end) {
    block_totals<Op, Lines, Reverse>(line, begin, end, results);
  });
  Prefix<Op, Lines> prefix;
  for (int64_t i = 0; i < blocks; ++i) {
    T offsets[kLanes<T>];
    prefix.values(offsets);
    prefix.add(results + i * Lines);
    std::memcpy(results + i * Lines, offsets, sizeof(T) * Lines);
  }
  for_each_part(pool, blocks, nanoseconds * kBlock * Lines, [=](int64_t begin, int64_t end) {
    scan_blocks<Op, Lines, Reverse>(line, begin, end, results);
  });
}

// Scans `width` adjacent lines side by side; elements of a line are `inner` apart.
template <class Op, class Stored>
PRIMAX_CLONES void scan_columns(const Stored* x, Stored* out, int64_t length, int64_t inner,
                                int64_t width, bool reverse, Op op) {
  using T = typename Op::Type;
  T carry[kColumns], offset[kColumns];
  Before<Op> before[Op::kBlocked ? kColumns : 1];
  std::fill_n(carry, width, Op::kNeutral);
  std::fill_n(offset, width, Op::kNeutral);
  for (int64_t k = 0; k < length; ++k) {
    const int64_t at = (reverse ? length - 1 - k : k) * inner;
    const Stored* from = x + at;
    Stored* to = out + at;
    if constexpr (Op::kBlocked) {
      if (k && k % kColumnBlock == 0) {
        for (int64_t i = 0; i < width; ++i) {
          before[i].add(carry[i]);
          offset[i] = before[i].value();
          carry[i] = Op::kNeutral;
        }
      }
      for (int64_t i = 0; i < width; ++i) {
        carry[i] = Op::apply(carry[i], T(from[i]));
        to[i] = Stored(Op::apply(offset[i], carry[i]));
      }
    } else {
      for (int64_t i = 0; i < width; ++i) {
        carry[i] = Op::apply(carry[i], op.decoded(T(from[i])));
        to[i] = Stored(op.encoded(carry[i]));
      }
    }
  }
}

// Scans lines of adjacent elements.
template <class Op, int Alternating, bool Reverse, class Stored>
void scan_rows(xla::ffi::ThreadPool& pool, const Stored* x, Stored* out, Lines lines, Op op,
               double nanoseconds) {
  const int64_t size = lines.length * Alternating;
  auto line = [=](int64_t i) { return Line<Op, Stored>{x + i * size, out + i * size, size, op}; };
  if (Op::kSplit && lines.outer < pool.num_threads() && double(size) * nanoseconds > 4 * kShortestTask) {
    for (int64_t i = 0; i < lines.outer; ++i) {
      scan_line_in_parts<Op, Alternating, Reverse>(pool, line(i), nanoseconds);
    }
    return;
  }
  for_each_part(pool, lines.outer, double(size) * nanoseconds, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) scan_line<Op, Alternating, Reverse>(line(i));
  });
}

// Scans lines that are side by side.
template <class Op, class Stored>
void scan_side_by_side(xla::ffi::ThreadPool& pool, const Stored* x, Stored* out, Lines lines,
                       bool reverse, Op op, double nanoseconds) {
  if (!lines.count() || !lines.length) return;
  const int64_t parts = (lines.inner + kColumns - 1) / kColumns;
  const int64_t width = (lines.inner + parts - 1) / parts;
  const double part_nanoseconds = double(lines.length * width) * nanoseconds;
  for_each_part(pool, lines.outer * parts, part_nanoseconds, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % parts * width;
      const int64_t at = i / parts * lines.length * lines.inner + first;
      scan_columns<Op>(x + at, out + at, lines.length, lines.inner, std::min(width, lines.inner - first),
                       reverse, op);
    }
  });
}

// Scans an array along an axis; an element takes about `nanoseconds`.
template <class Op, class Stored>
void scan(xla::ffi::ThreadPool& pool, const Stored* x, Stored* out, Lines lines, bool reverse, Op op,
          double nanoseconds) {
  if (!lines.count() || !lines.length) return;
  auto rows = [&](auto alternating) {
    constexpr int kAlternating = decltype(alternating)::value;
    if (reverse) {
      scan_rows<Op, kAlternating, true>(pool, x, out, lines, op, nanoseconds);
    } else {
      scan_rows<Op, kAlternating, false>(pool, x, out, lines, op, nanoseconds);
    }
  };
  switch (lines.inner) {
    case 1:
      return rows(std::integral_constant<int, 1>());
    case 2:
      return rows(std::integral_constant<int, 2>());
  }
  scan_side_by_side(pool, x, out, lines, reverse, op, nanoseconds);
}

}  // namespace primax
