// The first elements of one line in an order, and their positions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "line_sort.h"
#include "radix_sort.h"
#include "sort_keys.h"

namespace primax {

// An element that may be among the first ones: equal keys are in the order of positions.
template <class Bits>
struct Candidate {
  Bits key;
  uint32_t position;

  Candidate() = default;
  Candidate(Bits key, uint32_t position) : key(key), position(position) {}
  bool operator<(const Candidate& other) const {
    return key != other.key ? key < other.key : position < other.position;
  }
};

// Keys of at most 32 bits and positions are one word.
template <>
struct Candidate<uint32_t> {
  uint64_t word;

  Candidate() = default;
  Candidate(uint32_t key, uint32_t position) : word(uint64_t(key) << 32 | position) {}
  bool operator<(const Candidate& other) const { return word < other.word; }
};

inline uint32_t position_of(const Candidate<uint32_t>& c) { return uint32_t(c.word); }
inline uint32_t position_of(const Candidate<uint64_t>& c) { return c.position; }
inline uint32_t key_of(const Candidate<uint32_t>& c) { return uint32_t(c.word >> 32); }
inline uint64_t key_of(const Candidate<uint64_t>& c) { return c.key; }

template <class Key>
using WideBits = std::conditional_t<sizeof(typename Key::Bits) == 8, uint64_t, uint32_t>;

// Lines of which so large a part is asked for are sorted.
inline bool is_large_part(int64_t n, int64_t k) { return 4 * k >= n; }

inline int64_t most_candidates(int64_t k) { return 2 * k + 64; }

// Bytes that top_k_line needs.
template <class Key>
int64_t bytes_for_top_k(int64_t n, int64_t k) {
  if (is_large_part(n, k)) return 8 * words_to_order(n) + 4 * n;
  const int64_t space = sizeof(typename Key::Bits) == 8 ? 0 : 8 * Space<uint64_t>::words(k);
  return most_candidates(k) * int64_t(sizeof(Candidate<WideBits<Key>>)) + space;
}

// Keeps the first k candidates, the last of them at k - 1.
template <class C>
void keep_first(C* candidates, int64_t count, int64_t k) {
  std::nth_element(candidates, candidates + k - 1, candidates + count);
}

inline void write_positions(Candidate<uint32_t>* candidates, int64_t k, uint32_t* positions,
                            uint64_t* memory) {
  if (k < 64) {
    std::sort(candidates, candidates + k);
    for (int64_t i = 0; i < k; ++i) positions[i] = position_of(candidates[i]);
    return;
  }
  const auto make = [=](int64_t begin, int64_t count, uint64_t* words) {
    for (int64_t i = 0; i < count; ++i) words[i] = candidates[begin + i].word;
  };
  const auto emit = [=](int64_t begin, const uint64_t* words, int64_t count) {
    for (int64_t i = 0; i < count; ++i) positions[begin + i] = uint32_t(words[i]);
  };
  uint64_t differing = 0;
  for (int64_t i = 0; i < k; ++i) differing |= candidates[i].word ^ candidates[0].word;
  sort_words(make, k, differing, Space<uint64_t>(memory, k), emit);
}

inline void write_positions(Candidate<uint64_t>* candidates, int64_t k, uint32_t* positions,
                            uint64_t*) {
  std::sort(candidates, candidates + k);
  for (int64_t i = 0; i < k; ++i) positions[i] = candidates[i].position;
}

// Writes the positions of the k first elements, 0 < k <= n, in their order.
//
// Candidates are elements before the last one of the k first so far. When there is no space for
// more, the first k are kept: constant time for each candidate, and few of random elements are any.
template <class Key>
void top_k_line(const typename Key::Bits* x, int64_t n, int64_t k, uint32_t* positions,
                void* memory) {
  using Wide = WideBits<Key>;
  using C = Candidate<Wide>;
  if (is_large_part(n, k)) {
    uint64_t* words = static_cast<uint64_t*>(memory);
    uint32_t* all = reinterpret_cast<uint32_t*>(words + words_to_order(n));
    order_line<Key>(x, n, true, all, nullptr, words);
    std::copy_n(all, k, positions);
    return;
  }
  uint64_t* words = static_cast<uint64_t*>(memory);
  if (sizeof(Wide) == 4) words += Space<uint64_t>::words(k);
  C* candidates = reinterpret_cast<C*>(words);
  const int64_t most = most_candidates(k);
  int64_t count = most;  // less than n
  if (count > n) count = n;
  for (int64_t i = 0; i < count; ++i) candidates[i] = C(Key::of(x[i]), uint32_t(i));
  int64_t next = count;
  while (next < n) {
    keep_first(candidates, count, k);
    count = k;
    const Wide last = key_of(candidates[k - 1]);
    constexpr int64_t kBlock = 64;
    while (next < n && count + kBlock <= most) {
      const int64_t end = std::min(n, next + kBlock);
      Wide any = 0;
      for (int64_t i = next; i < end; ++i) any |= Wide(Wide(Key::of(x[i])) < last ? 1 : 0);
      for (int64_t i = next; any && i < end; ++i) {
        candidates[count] = C(Key::of(x[i]), uint32_t(i));
        count += Wide(Key::of(x[i])) < last;
      }
      next = end;
    }
  }
  keep_first(candidates, count, k);
  write_positions(candidates, k, positions, static_cast<uint64_t*>(memory));
}

}  // namespace primax
