// Ranks in short lines: each key is compared with all others, in vectors and without branches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "clones.h"

namespace primax {

constexpr int64_t kMostRanks = 64;  // length of lines that are sorted by ranks

// The number of keys before each of N: less, or equal and at a lower index.
template <int N, class T>
__attribute__((always_inline)) inline void count_ranks(const T* keys, int64_t n, T* ranks) {
  T counts[N] = {};
  for (int64_t j = 0; j < n; ++j) {
    const T key = keys[j];
    for (T i = 0; i < N; ++i) counts[i] += T((key < keys[i]) | ((key == keys[i]) & (T(j) < i)));
  }
  std::copy_n(counts, N, ranks);
}

#define PRIMAX_RANKS(N, T)                                                                     \
  PRIMAX_CLONES static inline void ranks_of_##N(const T* keys, int64_t n, T* ranks) {          \
    count_ranks<N>(keys, n, ranks);                                                            \
  }
PRIMAX_RANKS(8, int32_t)
PRIMAX_RANKS(16, int32_t)
PRIMAX_RANKS(32, int32_t)
PRIMAX_RANKS(64, int32_t)
PRIMAX_RANKS(8, int64_t)
PRIMAX_RANKS(16, int64_t)
PRIMAX_RANKS(32, int64_t)
PRIMAX_RANKS(64, int64_t)
#undef PRIMAX_RANKS

// Keys of a line of n <= kMostRanks elements as signed integers, and then their ranks.
template <class Bits>
struct Ranks {
  using Wide = std::conditional_t<sizeof(Bits) == 8, int64_t, int32_t>;
  using Unsigned = std::make_unsigned_t<Wide>;
  alignas(32) Wide keys[kMostRanks], of[kMostRanks];

  // `key` returns the unsigned key of element i.
  template <class Key>
  Ranks(int64_t n, const Key& key) {
    constexpr Unsigned top = Unsigned{1} << (8 * sizeof(Wide) - 1);
    for (int64_t i = 0; i < n; ++i) keys[i] = Wide(Unsigned(key(i)) ^ top);
    const int64_t padded = n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : 64;
    for (int64_t i = n; i < padded; ++i) keys[i] = 0;
    switch (padded) {
      case 8: ranks_of_8(keys, n, of); break;
      case 16: ranks_of_16(keys, n, of); break;
      case 32: ranks_of_32(keys, n, of); break;
      default: ranks_of_64(keys, n, of); break;
    }
  }
};

}  // namespace primax
