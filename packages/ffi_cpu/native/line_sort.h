// Sorts of one line of elements: values alone, and positions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "network_sort.h"
#include "radix_sort.h"
#include "ranks.h"
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

// Whether before(key, next key) holds along a line, from front to back with an early exit.
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


// See sort_line; for lines that a network sorts, of more than kMostRanks elements.
template <class Key>
void sort_by_network(const typename Key::Bits* x, int64_t n, typename Key::Bits* out,
                     typename Key::Bits* memory) {
  using Bits = typename Key::Bits;
  using Word = std::conditional_t<sizeof(Bits) == 8, int64_t, Bits>;
  constexpr Bits kFlip = sizeof(Bits) == 8 ? top_bit<Bits>() : 0;  // as signed integers
  Word* words = reinterpret_cast<Word*>(memory);
  Bits shared = 0;
  for (int64_t i = 0; i < n; ++i) {
    words[i] = Word(Key::of(x[i]) ^ kFlip);
    if (Key::kShared) shared |= Bits(Key::shared(x[i]) ? 1 : 0);
  }
  network_sort(words, n);
  for (int64_t i = 0; i < n; ++i) out[i] = Key::raw(Bits(words[i]) ^ kFlip);
  if constexpr (Key::kShared) {
    if (shared != 0) restore_shared<Key>(x, n, out);
  }
}

// The number of words of the dtype that sort_line needs.
template <class Key>
int64_t words_to_sort(int64_t n) {
  return std::max(Space<typename Key::Bits>::words(n), words_for_network(std::min(n, kLongestNetwork)));
}

// Sorts n elements of x into `out`, which does not overlap.
template <class Key>
void sort_line(const typename Key::Bits* x, int64_t n, typename Key::Bits* out,
               typename Key::Bits* memory, const Threads* threads = nullptr) {
  using Bits = typename Key::Bits;
  if (n <= kMostRanks) {
    const Ranks<Bits> ranks(n, [x](int64_t i) { return Key::of(x[i]); });
    for (int64_t i = 0; i < n; ++i) out[ranks.of[i]] = x[i];
    return;
  }
  if constexpr (sizeof(Bits) >= 2) {
    if (n <= longest_for_network(sizeof(Bits))) {
      const bool sorted = is_ordered<Key>(x, n, [](Bits a, Bits b) { return a <= b; });
      if (!sorted) return sort_by_network<Key>(x, n, out, memory);
    }
  }
  const LineKeys<Key> facts = line_keys<Key>(x, n);
  if (facts.order == Order::kSorted) {
    std::memcpy(out, x, size_t(n) * sizeof(Bits));
  } else if (facts.order == Order::kReversed) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[n - 1 - i];
  } else {
    const auto make = [x](int64_t begin, int64_t count, Bits* words) {
      for (int64_t i = 0; i < count; ++i) words[i] = Key::of(x[begin + i]);
    };
    const auto emit = [out](int64_t begin, const Bits* words, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[begin + i] = Key::raw(words[i]);
    };
    sort_words(make, n, facts.differing, Space<Bits>(memory, n), emit, threads);
    if constexpr (Key::kShared) {
      if (facts.shared) restore_shared<Key>(x, n, out);
    }
  }
}

// Lines up to this length are ordered by a network: with positions, words are long.
constexpr int64_t kShortOrder = 512;

// Sorts positions by the bits of a mask, of 32 neighbouring bits at most, of the keys at them.
// Writes the elements too if `sorted` is not null, which is for keys of at most 32 bits.
template <class Key>
void order_by_bits(const typename Key::Bits* x, int64_t n, typename Key::Bits mask, bool ascending,
                   uint32_t* positions, typename Key::Bits* sorted, uint64_t* memory,
                   const Threads* threads) {
  const int shift = sizeof(typename Key::Bits) == 8 ? lowest_bit(mask) : 0;
  const auto emit = [positions, sorted](int64_t begin, const uint64_t* words, int64_t count) {
    for (int64_t i = 0; i < count; ++i) positions[begin + i] = uint32_t(words[i]);
    if (sorted == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      sorted[begin + i] = Key::raw(typename Key::Bits(words[i] >> 32));
    }
  };
  const Space<uint64_t> space(memory, n);
  const uint64_t word_mask = uint64_t(uint32_t(mask >> shift)) << 32;
  if (ascending) {
    const auto make = [=](int64_t begin, int64_t count, uint64_t* words) {
      for (int64_t i = 0; i < count; ++i) {
        words[i] = uint64_t(uint32_t(Key::of(x[begin + i]) >> shift)) << 32 | uint32_t(begin + i);
      }
    };
    // With the positions behind the keys no two words are equal.
    if (n <= std::min(longest_for_network(8), kShortOrder)) {
      make(0, n, memory);
      for (int64_t i = 0; i < n; ++i) memory[i] ^= top_bit<uint64_t>();
      network_sort(reinterpret_cast<int64_t*>(memory), n);
      for (int64_t i = 0; i < n; ++i) memory[i] ^= top_bit<uint64_t>();
      return emit(0, memory, n);
    }
    return sort_words(make, n, word_mask, space, emit, threads);
  }
  uint32_t* from = reinterpret_cast<uint32_t*>(memory + Space<uint64_t>::words(n));
  std::memcpy(from, positions, size_t(n) * sizeof(uint32_t));
  const auto make = [=](int64_t begin, int64_t count, uint64_t* words) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t at = from[begin + i];
      words[i] = uint64_t(uint32_t(Key::of(x[at]) >> shift)) << 32 | at;
    }
  };
  sort_words(make, n, word_mask, space, emit, threads);
}

// Sorts n elements of x, and the 32 bits that belong to each: they move with the key as one word.
// `sorted` may be null.
//
// Returns false, and writes nothing, where order_line is as fast or keys have several forms.
// `memory` is for Space<uint64_t>::words(n) words.
template <class Key>
bool sort_pairs(const typename Key::Bits* x, const uint32_t* payload, int64_t n,
                typename Key::Bits* sorted, uint32_t* sorted_payload, uint64_t* memory,
                const Threads* threads) {
  using Bits = typename Key::Bits;
  if constexpr (sizeof(Bits) > 4) {
    return false;
  } else {
    if (n <= kMostRanks) return false;
    const LineKeys<Key> facts = line_keys<Key>(x, n);
    if (facts.shared || facts.order != Order::kOther) return false;
    const auto make = [x, payload](int64_t begin, int64_t count, uint64_t* words) {
      for (int64_t i = 0; i < count; ++i) {
        words[i] = uint64_t(Key::of(x[begin + i])) << 32 | payload[begin + i];
      }
    };
    const auto emit = [sorted, sorted_payload](int64_t begin, const uint64_t* words, int64_t count) {
      for (int64_t i = 0; i < count; ++i) sorted_payload[begin + i] = uint32_t(words[i]);
      if (sorted == nullptr) return;
      for (int64_t i = 0; i < count; ++i) sorted[begin + i] = Key::raw(Bits(words[i] >> 32));
    };
    const Space<uint64_t> space(memory, n);
    sort_words(make, n, uint64_t(facts.differing) << 32, space, emit, threads);
    return true;
  }
}

// The number of words that order_line needs.
inline int64_t words_to_order(int64_t n) {
  return std::max(Space<uint64_t>::words(n) + n, words_for_network(std::min(n, kShortOrder)));
}

// Sorts positions by the keys of x at them; stable.
//
// `ascending`: the positions are 0, 1, ..., and need not be written yet. If it costs less than to take
// the elements from their positions, writes them to `sorted` (may be null), and returns true.
template <class Key>
bool order_line(const typename Key::Bits* x, int64_t n, bool ascending, uint32_t* positions,
                typename Key::Bits* sorted, uint64_t* memory, const Threads* threads = nullptr) {
  using Bits = typename Key::Bits;
  const auto iota = [=] {
    for (int64_t i = 0; ascending && i < n; ++i) positions[i] = uint32_t(i);
  };
  const auto less = [x](uint32_t a, uint32_t b) { return Key::of(x[a]) < Key::of(x[b]); };
  if (n <= kMostRanks) {
    iota();
    uint32_t given[kMostRanks];
    std::memcpy(given, positions, size_t(n) * sizeof(uint32_t));
    const Ranks<Bits> ranks(n, [=, &given](int64_t i) { return Key::of(x[given[i]]); });
    for (int64_t i = 0; i < n; ++i) positions[ranks.of[i]] = given[i];
    return false;
  }
  const LineKeys<Key> facts = line_keys<Key>(x, n);
  const Bits differing = facts.differing;
  if (differing == 0 || (ascending && facts.order == Order::kSorted)) return iota(), false;
  if (ascending && facts.order == Order::kReversed) {
    for (int64_t i = 0; i < n; ++i) positions[i] = uint32_t(n - 1 - i);
    return false;
  }
  const int low = lowest_bit(differing), high = bit_width(differing);
  if (high - low <= 32) {
    if (facts.shared || sizeof(Bits) > 4) sorted = nullptr;
    order_by_bits<Key>(x, n, differing, ascending, positions, sorted, memory, threads);
    return sorted != nullptr;
  }
  // The upper 32 bits separate most numbers.
  const Bits lower = differing & ((Bits{1} << (high - 32)) - 1), upper = differing ^ lower;
  uint32_t* given = reinterpret_cast<uint32_t*>(memory + Space<uint64_t>::words(n)) + n;
  if (!ascending) std::memcpy(given, positions, size_t(n) * sizeof(uint32_t));
  order_by_bits<Key>(x, n, upper, ascending, positions, nullptr, memory, threads);
  if (insertion_sort(positions, n, 2 * n, less)) return false;
  if (!ascending) std::memcpy(positions, given, size_t(n) * sizeof(uint32_t));
  order_by_bits<Key>(x, n, lower, ascending, positions, nullptr, memory, threads);
  order_by_bits<Key>(x, n, upper, false, positions, nullptr, memory, threads);
  return false;
}

}  // namespace primax
