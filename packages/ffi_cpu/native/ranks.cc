// Ranks of keys by comparisons of each with all others.
#include "ranks.h"

#include <algorithm>
#include <cstdint>

#include "clones.h"
#include "vectors.h"

namespace primax {
namespace {

template <int N, class T>
PRIMAX_INLINE void count_padded(const T* keys, int64_t n, T* ranks) {
  T counts[N] = {};
  for (int64_t j = 0; j < n; ++j) {
    const T key = keys[j];
    for (T i = 0; i < N; ++i) counts[i] += T((key < keys[i]) | ((key == keys[i]) & (T(j) < i)));
  }
  std::copy_n(counts, N, ranks);
}

template <class T>
PRIMAX_INLINE void count(const T* keys, int64_t n, T* ranks) {
  switch (padded_for_ranks(n)) {
    case 8: return count_padded<8>(keys, n, ranks);
    case 16: return count_padded<16>(keys, n, ranks);
    case 32: return count_padded<32>(keys, n, ranks);
    default: return count_padded<64>(keys, n, ranks);
  }
}

}  // namespace

PRIMAX_CLONES void count_ranks(const int32_t* keys, int64_t n, int32_t* ranks) {
  count(keys, n, ranks);
}

PRIMAX_CLONES void count_ranks(const int64_t* keys, int64_t n, int64_t* ranks) {
  count(keys, n, ranks);
}

}  // namespace primax
