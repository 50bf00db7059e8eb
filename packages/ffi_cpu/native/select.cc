// Elements of given ranks along the last axis, without sorting the others.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "handler.h"
#include "parallel.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;

// Unsigned integers in the order of floats: zeros are equal, and so are NaNs, which are last.
template <class T>
struct Order {
  using Key = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr int kBits = 8 * sizeof(T);
  static constexpr Key kSign = Key(1) << (kBits - 1);
  static constexpr Key kZero = kSign, kNan = ~Key(0);

  static PRIMAX_INLINE Key key(T x) {
    Key bits;
    std::memcpy(&bits, &x, sizeof bits);
    const Key magnitude = bits & ~kSign;
    // Not by comparisons of floats: XLA's threads take denormal numbers for zeros.
    const Key ordered = bits & kSign ? ~bits : bits | kSign;
    return magnitude == 0 ? kZero : magnitude > kInfinity ? kNan : ordered;
  }

  static PRIMAX_INLINE T value(Key key) {
    const Key bits = key & kSign ? key & ~kSign : ~key;
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }

 private:
  static constexpr Key kInfinity = Key((uint64_t{1} << (kBits == 32 ? 8 : 11)) - 1)
                                   << (kBits == 32 ? 23 : 52);
};

// A rank, and where its element goes.
struct Wanted {
  int64_t rank;
  int32_t place;
};

constexpr int kDigit = 11;
constexpr int kBuckets = 1 << kDigit;
constexpr int64_t kFew = 1024;  // keys that are partitioned by comparisons

// Keys of ascending ranks among `count` keys, which are reordered.
template <class Key>
void partition(Key* keys, int64_t count, const Wanted* wanted, int64_t number, int64_t less, Key* found) {
  Key* begin = keys;
  for (int64_t i = 0; i < number; ++i) {
    Key* at = keys + (wanted[i].rank - less);
    if (at >= begin) {
      std::nth_element(begin, at, keys + count);
      begin = at + 1;
    }
    found[wanted[i].place] = *at;
  }
}

template <class Key>
struct KeysOf {
  const Key* keys;

  PRIMAX_INLINE Key operator()(int64_t i) const { return keys[i]; }
};

template <class T>
struct KeysOfFloats {
  const T* x;

  PRIMAX_INLINE auto operator()(int64_t i) const { return Order<T>::key(x[i]); }
};

// Keys of ascending ranks among `count` keys of which all bits from `shift + 11` on are equal;
// `key(i)` is one of them, and `less` keys are smaller than all. Only keys that share the next
// digit with a wanted one are looked at again.
template <class Key, class Keys>
void select_keys(Keys key, int64_t count, int shift, const Wanted* wanted, int64_t number, int64_t less,
                 Key* found) {
  const auto digit = [=](Key k) { return int(k >> shift) & (kBuckets - 1); };
  // Counts of neighbours go to different memory: one increment need not wait for the other.
  uint32_t counts[2][kBuckets] = {};
  int64_t i = 0;
  for (; i + 1 < count; i += 2) {
    ++counts[0][digit(key(i))];
    ++counts[1][digit(key(i + 1))];
  }
  if (i < count) ++counts[0][digit(key(i))];

  struct Bucket {
    int64_t less, count, first, number;  // keys, and the wanted ranks among them
    Key* keys;
  };
  const std::unique_ptr<Bucket[]> buckets(new Bucket[size_t(number)]);
  int64_t used = 0, held = 0, before = less, next = 0;
  int32_t bucket_of[kBuckets];
  for (int b = 0; b < kBuckets; ++b) {
    const int64_t size = int64_t(counts[0][b]) + counts[1][b], first = next;
    while (next < number && wanted[next].rank < before + size) ++next;
    bucket_of[b] = -1;
    if (next > first) {
      bucket_of[b] = int32_t(used);
      buckets[used++] = {before, size, first, next - first, nullptr};
      held += size;
    }
    before += size;
  }

  // Every key is written, but only in a bucket the end advances.
  const std::unique_ptr<Key[]> memory(new Key[size_t(held) + 1]);
  const std::unique_ptr<Key*[]> ends(new Key*[size_t(used) + 1]);
  Key* at = memory.get();
  for (int64_t b = 0; b < used; ++b) {
    buckets[b].keys = ends[b] = at;
    at += buckets[b].count;
  }
  Key unused;
  for (int64_t k = 0; k < count; ++k) {
    const Key value = key(k);
    const int32_t b = bucket_of[digit(value)];
    Key* to = b < 0 ? &unused : ends[b];
    *to = value;
    if (b >= 0) ends[b] = to + 1;
  }

  for (int64_t b = 0; b < used; ++b) {
    const Bucket& bucket = buckets[b];
    const Wanted* ranks = wanted + bucket.first;
    Key* keys = bucket.keys;
    if (shift == 0) {
      for (int64_t k = 0; k < bucket.number; ++k) found[ranks[k].place] = keys[0];
    } else if (bucket.count <= kFew) {
      partition(keys, bucket.count, ranks, bucket.number, bucket.less, found);
    } else {
      select_keys<Key>(KeysOf<Key>{keys}, bucket.count, std::max(0, shift - kDigit), ranks,
                       bucket.number, bucket.less, found);
    }
  }
}

// The element that a stable sort puts at a rank, among those that are equal but have other bits.
template <class T>
T equal_element(const T* x, int64_t n, typename Order<T>::Key key, int64_t rank) {
  for (int64_t i = 0; i < n; ++i) rank -= Order<T>::key(x[i]) < key;
  int64_t i = 0;
  while (Order<T>::key(x[i]) != key || rank-- > 0) ++i;
  return x[i];
}

template <class T>
void select_row(const T* x, int64_t n, const int32_t* ranks, int64_t number, T* out, Wanted* wanted) {
  using Key = typename Order<T>::Key;
  for (int64_t i = 0; i < number; ++i) {
    wanted[i] = {std::clamp<int64_t>(ranks[i], 0, n - 1), int32_t(i)};
  }
  std::sort(wanted, wanted + number, [](Wanted a, Wanted b) { return a.rank < b.rank; });
  const std::unique_ptr<Key[]> found(new Key[size_t(number)]);
  if (n <= kFew) {
    Key keys[kFew];
    for (int64_t i = 0; i < n; ++i) keys[i] = Order<T>::key(x[i]);
    partition(keys, n, wanted, number, 0, found.get());
  } else {
    select_keys<Key>(KeysOfFloats<T>{x}, n, Order<T>::kBits - kDigit, wanted, number, 0, found.get());
  }
  for (int64_t i = 0; i < number; ++i) {
    const Key key = found[wanted[i].place];
    const bool has_one_form = key != Order<T>::kZero && key != Order<T>::kNan;
    out[wanted[i].place] = has_one_form ? Order<T>::value(key) : equal_element(x, n, key, wanted[i].rank);
  }
}

template <class T>
ffi::Error run(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::Buffer<ffi::S32> ranks,
               ffi::Result<ffi::AnyBuffer>& out) {
  const int64_t n = x.dimensions().back(), number = out->dimensions().back();
  const int64_t rows = n ? x.element_count() / n : 0;
  const bool shared = ranks.dimensions().size() == 1;  // by all rows
  const auto* from = static_cast<const T*>(x.untyped_data());
  auto* to = static_cast<T*>(out->untyped_data());
  const int32_t* all_ranks = ranks.typed_data();
  if (!number) return ffi::Error::Success();
  for_each_part(pool, rows, 4.0 * double(n), [=](int64_t begin, int64_t end) {
    const std::unique_ptr<Wanted[]> wanted(new Wanted[size_t(number)]);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* own = shared ? all_ranks : all_ranks + i * number;
      select_row(from + i * n, n, own, number, to + i * number, wanted.get());
    }
  });
  return ffi::Error::Success();
}

ffi::Error order_statistics(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Buffer<ffi::S32> ranks,
                            ffi::Result<ffi::AnyBuffer> out) {
  switch (x.element_type()) {
    case ffi::DataType::F32:
      return run<float>(pool, x, ranks, out);
    case ffi::DataType::F64:
      return run<double>(pool, x, ranks, out);
    default:
      return ffi::Error::InvalidArgument("no selection for data type " +
                                         std::to_string(int(x.element_type())) + " of XLA");
  }
}

}  // namespace
}  // namespace primax

PRIMAX_CPU_HANDLER(primax_cpu_order_statistics, primax::order_statistics,
                   xla::ffi::Ffi::Bind()
                       .Ctx<xla::ffi::ThreadPool>()
                       .Arg<xla::ffi::AnyBuffer>()
                       .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                       .Ret<xla::ffi::AnyBuffer>());
