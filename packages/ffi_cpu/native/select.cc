// Elements of given ranks along the last axis, without sorting the others.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "handler.h"
#include "key_types.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;

// A rank, and where its element goes.
struct Wanted {
  int64_t rank;
  int32_t place;
};

constexpr int kDigit = 11;
constexpr int kBuckets = 1 << kDigit;
constexpr int64_t kFew = 256;  // keys that are partitioned by comparisons

// Keys of ascending ranks among `count` keys, which are reordered.
template <class Bits>
void partition(Bits* keys, int64_t count, const Wanted* wanted, int64_t number, int64_t less, Bits* found) {
  Bits* begin = keys;
  for (int64_t i = 0; i < number; ++i) {
    Bits* at = keys + (wanted[i].rank - less);
    if (at >= begin) {
      std::nth_element(begin, at, keys + count);
      begin = at + 1;
    }
    found[wanted[i].place] = *at;
  }
}

template <class Bits>
auto elements_of(const Bits* keys) {
  return [keys](int64_t i) { return keys[i]; };
}

// Keys of ascending ranks among `count` keys of which all bits from `shift + 11` on are equal;
// `key(i)` is one of them, and `less` keys are smaller than all. Only keys that share the next
// digit with a wanted one are looked at again.
template <class Bits, class KeyAt>
void select_keys(KeyAt key, int64_t count, int shift, const Wanted* wanted, int64_t number, int64_t less,
                 Bits* found) {
  const auto digit = [=](Bits k) { return int(k >> shift) & (kBuckets - 1); };
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
    Bits* keys;
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
  const std::unique_ptr<Bits[]> memory(new Bits[size_t(held) + 1]);
  const std::unique_ptr<Bits*[]> ends(new Bits*[size_t(used) + 1]);
  Bits* at = memory.get();
  for (int64_t b = 0; b < used; ++b) {
    buckets[b].keys = ends[b] = at;
    at += buckets[b].count;
  }
  Bits unused;
  for (int64_t k = 0; k < count; ++k) {
    const Bits value = key(k);
    const int32_t b = bucket_of[digit(value)];
    Bits* to = b < 0 ? &unused : ends[b];
    *to = value;
    if (b >= 0) ends[b] = to + 1;
  }

  for (int64_t b = 0; b < used; ++b) {
    const Bucket& bucket = buckets[b];
    const Wanted* ranks = wanted + bucket.first;
    Bits* keys = bucket.keys;
    if (shift == 0) {
      for (int64_t k = 0; k < bucket.number; ++k) found[ranks[k].place] = keys[0];
    } else if (bucket.count <= kFew) {
      partition(keys, bucket.count, ranks, bucket.number, bucket.less, found);
    } else {
      select_keys(elements_of<Bits>(keys), bucket.count, std::max(0, shift - kDigit), ranks,
                  bucket.number, bucket.less, found);
    }
  }
}

// The element that a stable sort puts at a rank, among those that are equal but have other bits.
template <class Key>
typename Key::Bits equal_element(const typename Key::Bits* x, int64_t n, typename Key::Bits key,
                                 int64_t rank) {
  for (int64_t i = 0; i < n; ++i) rank -= Key::of(x[i]) < key;
  int64_t i = 0;
  while (Key::of(x[i]) != key || rank-- > 0) ++i;
  return x[i];
}

template <class Key>
void select_row(const typename Key::Bits* x, int64_t n, const int32_t* ranks, int64_t number,
                typename Key::Bits* out, Wanted* wanted) {
  using Bits = typename Key::Bits;
  for (int64_t i = 0; i < number; ++i) {
    wanted[i] = {std::clamp<int64_t>(ranks[i], 0, n - 1), int32_t(i)};
  }
  std::sort(wanted, wanted + number, [](Wanted a, Wanted b) { return a.rank < b.rank; });
  const std::unique_ptr<Bits[]> found(new Bits[size_t(number)]);
  const auto key_at = [x](int64_t i) { return Key::of(x[i]); };
  if (n <= kFew) {
    Bits keys[kFew];
    for (int64_t i = 0; i < n; ++i) keys[i] = key_at(i);
    partition(keys, n, wanted, number, 0, found.get());
  } else {
    select_keys(key_at, n, 8 * int(sizeof(Bits)) - kDigit, wanted, number, 0, found.get());
  }
  for (int64_t i = 0; i < number; ++i) {
    const Bits key = found[wanted[i].place], raw = Key::raw(key);
    const bool has_one_form = !Key::is_zero(raw) && !Key::is_nan(raw);
    out[wanted[i].place] = has_one_form ? raw : equal_element<Key>(x, n, key, wanted[i].rank);
  }
}

template <class Key>
ffi::Error run(ffi::ThreadPool& pool, ffi::AnyBuffer x, ffi::Buffer<ffi::S32> ranks,
               ffi::Result<ffi::AnyBuffer>& out) {
  const int64_t n = x.dimensions().back(), number = out->dimensions().back();
  const int64_t rows = n ? x.element_count() / n : 0;
  const bool shared = ranks.dimensions().size() == 1;  // by all rows
  const auto* from = static_cast<const typename Key::Bits*>(x.untyped_data());
  auto* to = static_cast<typename Key::Bits*>(out->untyped_data());
  const int32_t* all_ranks = ranks.typed_data();
  if (!number) return ffi::Error::Success();
  for_each_part(pool, rows, 4.0 * double(n), [=](int64_t begin, int64_t end) {
    const std::unique_ptr<Wanted[]> wanted(new Wanted[size_t(number)]);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* own = shared ? all_ranks : all_ranks + i * number;
      select_row<Key>(from + i * n, n, own, number, to + i * number, wanted.get());
    }
  });
  return ffi::Error::Success();
}

ffi::Error order_statistics(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Buffer<ffi::S32> ranks,
                            ffi::Result<ffi::AnyBuffer> out) {
  ffi::Error error = ffi::Error::InvalidArgument("order_statistics: no kernel for the dtype with number " +
                                                 std::to_string(int(x.element_type())));
  with_float_key(x.element_type(), [&](auto key_type) {
    error = run<typename decltype(key_type)::type>(pool, x, ranks, out);
  });
  return error;
}

}  // namespace
}  // namespace primax

PRIMAX_CPU_HANDLER(primax_cpu_order_statistics, primax::order_statistics,
                   xla::ffi::Ffi::Bind()
                       .Ctx<xla::ffi::ThreadPool>()
                       .Arg<xla::ffi::AnyBuffer>()
                       .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                       .Ret<xla::ffi::AnyBuffer>());
