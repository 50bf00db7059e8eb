// Prefix scans of an associative operation.
//
// Lines of adjacent elements are scanned by vectors; those of other elements side by side, or, if
// few are side by side, one after the other by blocks that are copied.
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
template <class Op, int Lines, bool Reverse>
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
    if constexpr (Op::kBlocked) v = Op::apply(offset, v);
    carry = Op::apply(carry, last_repeated<T, Lines>(local));
    if constexpr (Reverse) v = reversed<T, Lines>(v);
    return v;
  };
  int64_t i = 0;
  for (; i + kStep <= size; i += kStep) {
    const int64_t at = Reverse ? size - i - kStep : i;
    const Vector<T> v = step(op.decoded(load(x + at)));
    if (out) store(out + at, op.encoded(v));
  }
  if (i < size) {  // the rest, filled up
    const int64_t count = size - i, at = Reverse ? 0 : i, first = Reverse ? kStep - count : 0;
    T ends[kStep];
    store(ends, op.encoded(repeated<T>(Op::kNeutral)));
    std::memcpy(ends + first, x + at, size_t(count) * sizeof(T));
    const Vector<T> v = step(op.decoded(load(ends)));
    store(ends, op.encoded(v));
    if (out) std::memcpy(out + at, ends + first, size_t(count) * sizeof(T));
  }
  return carry;
}

// How a line is stored, if its elements have another type or are not adjacent.
template <class T>
struct Storage {
  int64_t bytes;  // of an element
  void (*load)(const void* x, int64_t stride, int64_t count, T* out);
  void (*store)(const T* x, int64_t stride, int64_t count, void* out);
};

template <class Stored, class T>
PRIMAX_CLONES void load_strided(const void* x, int64_t stride, int64_t count, T* out) {
  const auto* from = static_cast<const Stored*>(x);
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = T(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = T(from[i * stride]);
  }
}

template <class Stored, class T>
PRIMAX_CLONES void store_strided(const T* x, int64_t stride, int64_t count, void* out) {
  auto* to = static_cast<Stored*>(out);
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = Stored(x[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * stride] = Stored(x[i]);
  }
}

template <class Stored, class T>
constexpr Storage<T> kStored = {sizeof(Stored), load_strided<Stored, T>, store_strided<Stored, T>};

// A line, or alternating ones, of `size` elements.
template <class Op>
struct Line {
  using T = typename Op::Type;
  const char* x;
  char* out;
  int64_t size, stride;
  Storage<T> storage;
  bool plain;  // adjacent elements of the operation's type
  Op op;
};

template <class Op, int Lines, bool Reverse>
PRIMAX_INLINE Vector<typename Op::Type> scan_block_of(const Line<Op>& line, int64_t block, bool stored,
                                                      Vector<typename Op::Type> offset) {
  using T = typename Op::Type;
  const int64_t begin = block * kBlock * Lines, size = std::min(kBlock * Lines, line.size - begin);
  const int64_t at = (Reverse ? line.size - begin - size : begin) * line.stride * line.storage.bytes;
  T copy[kBlock * Lines];
  const T* x = line.plain ? reinterpret_cast<const T*>(line.x + at) : copy;
  T* out = line.plain ? reinterpret_cast<T*>(line.out + at) : copy;
  if (!line.plain) line.storage.load(line.x + at, line.stride, size, copy);
  const Vector<T> total = scan_block<Op, Lines, Reverse>(x, stored ? out : nullptr, size, offset, line.op);
  if (!line.plain && stored) line.storage.store(copy, line.stride, size, line.out + at);
  return total;
}

// Scans blocks of a line. Given `offsets`, the results before each block, or given `totals`, only
// for those of each block by itself, or otherwise one block after the other.
template <class Op, int Lines, bool Reverse>
PRIMAX_CLONES void scan_blocks(Line<Op> line, int64_t begin, int64_t end,
                               const typename Op::Type* offsets, typename Op::Type* totals) {
  using T = typename Op::Type;
  Before<Op> before[Lines];
  Vector<T> offset = repeated<T>(Op::kNeutral);
  for (int64_t i = begin; i < end; ++i) {
    T values[kLanes<T>];
    if (offsets) {
      for (int k = 0; k < kLanes<T>; ++k) values[k] = offsets[i * Lines + k % Lines];
      offset = load(values);
    }
    const Vector<T> total = scan_block_of<Op, Lines, Reverse>(line, i, !totals, offset);
    store(values, total);
    if (totals) {
      std::memcpy(totals + i * Lines, values, sizeof(T) * Lines);
    } else if constexpr (Op::kBlocked) {
      for (int k = 0; k < Lines; ++k) before[k].add(values[k]);
      for (int k = 0; k < kLanes<T>; ++k) values[k] = before[k % Lines].value();
      offset = load(values);
    } else {
      offset = total;
    }
  }
}

// A line scanned by several threads: the blocks' results first.
template <class Op, int Lines, bool Reverse>
void scan_in_two_passes(xla::ffi::ThreadPool& pool, Line<Op> line, int64_t blocks, double nanoseconds) {
  using T = typename Op::Type;
  const std::unique_ptr<T[]> memory(new T[size_t(blocks * Lines)]);
  T* results = memory.get();
  for_each_part(pool, blocks, nanoseconds, [=](int64_t begin, int64_t end) {
    scan_blocks<Op, Lines, Reverse>(line, begin, end, nullptr, results);
  });
  Before<Op> before[Lines];
  for (int64_t i = 0; i < blocks * Lines; ++i) {
    const T total = results[i];
    results[i] = before[i % Lines].value();
    before[i % Lines].add(total);
  }
  for_each_part(pool, blocks, nanoseconds, [=](int64_t begin, int64_t end) {
    scan_blocks<Op, Lines, Reverse>(line, begin, end, results, nullptr);
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

// Scans lines side by side; an element takes about `nanoseconds`.
template <class Op, class Stored>
void scan_side_by_side(xla::ffi::ThreadPool& pool, const Stored* x, Stored* out, Lines lines,
                       bool reverse, Op op, double nanoseconds) {
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

// Scans lines one after the other. `Lines` alternating ones are scanned together.
template <class Op, int Lines, bool Reverse>
void scan_one_by_one(xla::ffi::ThreadPool& pool, const void* x, void* out, primax::Lines lines,
                     Storage<typename Op::Type> storage, bool plain, Op op, double nanoseconds) {
  const int64_t inner = lines.inner / Lines, size = lines.length * Lines;
  const int64_t blocks = (lines.length + kBlock - 1) / kBlock;
  auto line = [=](int64_t i) {
    const int64_t at = (i / inner * lines.length * lines.inner + i % inner) * storage.bytes;
    return Line<Op>{static_cast<const char*>(x) + at, static_cast<char*>(out) + at,
                    size, inner, storage, plain, op};
  };
  const int64_t count = lines.outer * inner;
  const double line_nanoseconds = double(size) * nanoseconds;
  // Two passes are worthwhile with more than two threads.
  if (Op::kSplit && line_nanoseconds > 20 * kShortestTask && 4 * count <= pool.num_threads()) {
    for (int64_t i = 0; i < count; ++i) {
      scan_in_two_passes<Op, Lines, Reverse>(pool, line(i), blocks, kBlock * Lines * nanoseconds);
    }
    return;
  }
  for_each_part(pool, count, line_nanoseconds, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      scan_blocks<Op, Lines, Reverse>(line(i), 0, blocks, nullptr, nullptr);
    }
  });
}

template <class Op, class Stored, int Lines = 1>
void scan_adjacent(xla::ffi::ThreadPool& pool, const void* x, void* out, primax::Lines lines,
                   bool reverse, Op op, double nanoseconds) {
  using T = typename Op::Type;
  const bool plain = std::is_same_v<T, Stored> && lines.inner == Lines;
  const auto run = reverse ? scan_one_by_one<Op, Lines, true> : scan_one_by_one<Op, Lines, false>;
  run(pool, x, out, lines, kStored<Stored, T>, plain, op, nanoseconds);
}

constexpr int64_t kSideBySide = 8;  // fewer lines are scanned one by one

}  // namespace primax
