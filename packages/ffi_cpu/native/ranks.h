// Ranks in short lines: each key is compared with all others, in vectors and without branches.
#pragma once

#include <cstdint>
#include <type_traits>

namespace primax {

constexpr int64_t kMostRanks = 64;  // length of lines that are sorted by ranks

// The number of keys before each of n: less, or equal and at a lower index. `keys` and `ranks` have
// the next of 8, 16, 32, 64 elements.
void count_ranks(const int32_t* keys, int64_t n, int32_t* ranks);
void count_ranks(const int64_t* keys, int64_t n, int64_t* ranks);

// The number of elements that count_ranks compares.
inline int64_t padded_for_ranks(int64_t n) { return n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : 64; }

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
    for (int64_t i = n; i < padded_for_ranks(n); ++i) keys[i] = 0;
    count_ranks(keys, n, of);
  }
};

}  // namespace primax
