// Sorts of one line of elements: values alone, and positions.
#pragma once

#include <cstdint>
#include <cstring>

#include "radix_sort.h"
#include "sort_keys.h"

namespace primax {

enum class Order { kOther, kSorted, kReversed };

// Facts about the keys of a line.
template <class Key>
struct LineKeys {
  using Bits = typename Key::Bits;
  Bits differing = 0;   // bits that are not equal in all keys
  bool shared = false;  // several elements may have one key, but other bits
  Order order = Order::kOther;
};

// Whether keys ascend (or strictly descend), from front to back with an early exit.
template <class Key, class Before>
bool is_ordered(const typename Key::Bits* x, int64_t n, const Before& before) {
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 1; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    bool all = true;
    for (int64_t i = begin; i < end; ++i) all &= before(Key::of(x[i - 1]), Key::of(x[i]));
    if (!all) return false;
  }
  return true;
}

template <class Key>
LineKeys<Key> line_keys(const typename Key::Bits* x, int64_t n) {
  using Bits = typename Key::Bits;
  LineKeys<Key> facts;
  const Bits first = Key::of(x[0]);
  Bits differing = 0, shared = 0;
  for (int64_t i = 0; i < n; ++i) {
    differing |= Key::of(x[i]) ^ first;
    if (Key::kShared) shared |= Bits(Key::shared(x[i]) ? 1 : 0);
  }
  facts.differing = differing;
  facts.shared = shared != 0;
  if (is_ordered<Key>(x, n, [](Bits a, Bits b) { return a <= b; })) {
    facts.order = Order::kSorted;
  } else if (is_ordered<Key>(x, n, [](Bits a, Bits b) { return a > b; })) {
    facts.order = Order::kReversed;
  }
  return facts;
}

template <class Key>
struct LoadKey {
  const typename Key::Bits* x;
  typename Key::Bits operator()(int64_t i) const { return Key::of(x[i]); }
};

// Gives elements with shared keys, runs of equal keys in `out`, their own bits in the order of `x`.
template <class Key>
void restore_shared(const typename Key::Bits* x, int64_t n, typename Key::Bits* out) {
  int64_t zero_at = 0, nan_at = n;
  for (int64_t i = 0; i < n; ++i) {
    zero_at += Key::of(x[i]) < Key::kZero;
    nan_at -= Key::is_nan(x[i]);
  }
  for (int64_t i = 0; i < n; ++i) {
    if (Key::is_zero(x[i])) out[zero_at++] = x[i];
    if (Key::is_nan(x[i])) out[nan_at++] = x[i];
  }
}

// Sorts n elements of x into `out`, which does not overlap; `space` is for n elements.
template <class Key>
void sort_line(const typename Key::Bits* x, int64_t n, typename Key::Bits* out,
               typename Key::Bits* space) {
  using Bits = typename Key::Bits;
  if (n <= kInsertion) {
    std::memcpy(out, x, size_t(n) * sizeof(Bits));
    insertion_sort(out, n, n * n, [](Bits a, Bits b) { return Key::of(a) < Key::of(b); });
    return;
  }
  const LineKeys<Key> facts = line_keys<Key>(x, n);
  if (facts.order == Order::kSorted) {
    std::memcpy(out, x, size_t(n) * sizeof(Bits));
  } else if (facts.order == Order::kReversed) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[n - 1 - i];
  } else {
    const int low = __builtin_ctzll(facts.differing), high = bit_width(facts.differing);
    radix_sort(LoadKey<Key>{x}, n, low, high, out, space);
    for (int64_t i = 0; i < n; ++i) out[i] = Key::raw(out[i]);
    if constexpr (Key::kShared) {
      if (facts.shared) restore_shared<Key>(x, n, out);
    }
  }
}

// Words with keys of 32 bits in the upper half, and positions in the lower half.
template <class Key>
struct LoadKeyAndPosition {
  const typename Key::Bits* x;
  int shift;
  uint64_t operator()(int64_t i) const {
    return uint64_t(uint32_t(Key::of(x[i]) >> shift)) << 32 | uint32_t(i);
  }
};

template <class Key>
uint64_t word_at(const typename Key::Bits* x, uint32_t position, int shift) {
  return uint64_t(uint32_t(Key::of(x[position]) >> shift)) << 32 | position;
}

// Sorts positions by the bits [low, high) of the keys at them, high - low <= 32; stable.
template <class Key>
void order_by_bits(const typename Key::Bits* x, int64_t n, int low, int high, bool ascending,
                   uint32_t* positions, uint64_t* words, uint64_t* space) {
  const int shift = sizeof(typename Key::Bits) == 8 ? low : 0;
  low += 32 - shift;
  high += 32 - shift;
  if (ascending) {
    radix_sort(LoadKeyAndPosition<Key>{x, shift}, n, low, high, words, space);
  } else {
    uint64_t* source = space + n;
    for (int64_t i = 0; i < n; ++i) source[i] = word_at<Key>(x, positions[i], shift);
    radix_sort(LoadWord<uint64_t>{source}, n, low, high, words, space);
  }
  for (int64_t i = 0; i < n; ++i) positions[i] = uint32_t(words[i]);
}

// The number of words that order_line needs.
inline int64_t words_to_order(int64_t n, bool ascending) { return (ascending ? 2 : 4) * n; }

// Sorts positions by the keys of x at them; stable.
//
// `ascending`: the positions are 0, 1, ..., and need not be written yet.
template <class Key>
void order_line(const typename Key::Bits* x, int64_t n, bool ascending, uint32_t* positions,
                uint64_t* words) {
  using Bits = typename Key::Bits;
  const auto iota = [=] {
    for (int64_t i = 0; ascending && i < n; ++i) positions[i] = uint32_t(i);
  };
  const auto less = [x](uint32_t a, uint32_t b) { return Key::of(x[a]) < Key::of(x[b]); };
  if (n <= kInsertion) {
    iota();
    insertion_sort(positions, n, n * n, less);
    return;
  }
  const LineKeys<Key> facts = line_keys<Key>(x, n);
  const Bits differing = facts.differing;
  if (differing == 0 || (ascending && facts.order == Order::kSorted)) return iota();
  if (ascending && facts.order == Order::kReversed) {
    for (int64_t i = 0; i < n; ++i) positions[i] = uint32_t(n - 1 - i);
    return;
  }
  uint64_t* space = words + n;
  const int low = __builtin_ctzll(differing), high = bit_width(differing);
  if (high - low <= 32) {
    return order_by_bits<Key>(x, n, low, high, ascending, positions, words, space);
  }
  // The upper 32 bits separate most numbers.
  uint32_t* given = reinterpret_cast<uint32_t*>(space + 2 * n);
  if (!ascending) std::memcpy(given, positions, size_t(n) * sizeof(uint32_t));
  order_by_bits<Key>(x, n, high - 32, high, ascending, positions, words, space);
  if (insertion_sort(positions, n, 2 * n, less)) return;
  if (!ascending) std::memcpy(positions, given, size_t(n) * sizeof(uint32_t));
  const int middle = high - 32;
  order_by_bits<Key>(x, n, low, bit_width(differing & ((Bits{1} << middle) - 1)), ascending,
                     positions, words, space);
  order_by_bits<Key>(x, n, middle, high, false, positions, words, space);
}

}  // namespace primax
