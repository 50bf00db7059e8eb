// Bitonic sorts (Batcher, Sorting networks and their applications, 1968).
//
// A block of 16 vectors is sorted in registers: first its columns, the lanes of the vectors, then
// neighbouring columns are merged until the block is one sorted sequence, column after column. Then
// the blocks are merged in memory. In each merge the second sequence is read backwards, so that all
// comparisons put the greater number behind: numbers past the end are never moved.
#include "network_sort.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "vectors.h"

namespace primax {
namespace {

constexpr int kRows = 16;  // vectors of a block
constexpr int kTile = 8;   // vectors of the last steps of a merge

// Vectors of Bytes, of which the processor has registers: others would be taken apart.
template <class Element, int Bytes>
struct Vectors {
  using T = Element;
  typedef T V __attribute__((vector_size(Bytes)));
  static constexpr int kLanes = Bytes / int(sizeof(T));
};

template <int... I>
using Indices = std::integer_sequence<int, I...>;
template <int N>
using UpTo = std::make_integer_sequence<int, N>;

template <class V>
PRIMAX_INLINE V least(V a, V b) {
  return a < b ? a : b;
}
template <class V>
PRIMAX_INLINE V greatest(V a, V b) {
  return a < b ? b : a;
}

template <class V>
PRIMAX_INLINE void order(V& a, V& b) {
  const V low = least(a, b);
  b = greatest(a, b);
  a = low;
}

// Lane i of the result is lane i ^ Bits of v.
template <class L, int Bits, int... I>
PRIMAX_INLINE typename L::V exchanged(typename L::V v, Indices<I...>) {
  return __builtin_shufflevector(v, v, (I ^ Bits)...);
}
template <class L, int Bits>
PRIMAX_INLINE typename L::V exchanged(typename L::V v) {
  return exchanged<L, Bits>(v, UpTo<L::kLanes>());
}

// Lanes of a whose index has no Bit, and those of b that have it.
template <class L, int Bit, int... I>
PRIMAX_INLINE typename L::V chosen(typename L::V a, typename L::V b, Indices<I...>) {
  return __builtin_shufflevector(a, b, (I & Bit ? L::kLanes + I : I)...);
}
template <class L, int Bit>
PRIMAX_INLINE typename L::V chosen(typename L::V a, typename L::V b) {
  return chosen<L, Bit>(a, b, UpTo<L::kLanes>());
}

// Orders lanes whose indices differ in one bit, and lower bits.
template <class L, int Bit>
PRIMAX_INLINE void order_lanes(typename L::V& v) {
  if constexpr (Bit > 0) {
    const typename L::V other = exchanged<L, Bit>(v);
    v = chosen<L, Bit>(least(v, other), greatest(v, other));
    order_lanes<L, Bit / 2>(v);
  }
}

// Batcher's merge-exchange sort (Knuth, The Art of Computer Programming 3, 5.2.2): 63 comparisons.
struct Comparisons {
  int low[63] = {}, high[63] = {}, count = 0;

  constexpr Comparisons() {
    for (int p = 1; p < kRows; p *= 2) {
      for (int k = p; k > 0; k /= 2) {
        for (int j = k % p; j + k < kRows; j += 2 * k) {
          for (int i = j; i < j + k && i + k < kRows; ++i) {
            if (i / (2 * p) == (i + k) / (2 * p)) low[count] = i, high[count++] = i + k;
          }
        }
      }
    }
  }
};
constexpr Comparisons kComparisons;
static_assert(kComparisons.count == 63);

template <class V, int... I>
PRIMAX_INLINE void sort_columns(V* v, Indices<I...>) {
  (order(v[kComparisons.low[I]], v[kComparisons.high[I]]), ...);
}

// One step of a merge of N vectors: those at indices that differ in one bit.
template <int Bit, class V, int... I>
PRIMAX_INLINE void order_rows(V* v, Indices<I...>) {
  (order(v[I / Bit * 2 * Bit + I % Bit], v[I / Bit * 2 * Bit + I % Bit + Bit]), ...);
}
template <int N, int Bit = N / 2, class V>
PRIMAX_INLINE void merge_rows(V* v) {
  if constexpr (Bit > 0) {
    order_rows<Bit>(v, UpTo<N / 2>());
    merge_rows<N, Bit / 2>(v);
  }
}

// Compares numbers of two columns, or groups of columns, with those of the other one backwards.
template <class L, int Group>
PRIMAX_INLINE void order_mirrored(typename L::V& a, typename L::V& b) {
  const typename L::V other = exchanged<L, Group - 1>(b);
  const typename L::V low = least(a, other), high = greatest(a, other);
  a = chosen<L, Group / 2>(low, high);
  b = exchanged<L, Group - 1>(chosen<L, Group / 2>(high, low));
}

template <class L, int Group, int... I, int... J>
PRIMAX_INLINE void merge_columns(typename L::V* v, Indices<I...>, Indices<J...>) {
  (order_mirrored<L, Group>(v[I], v[kRows - 1 - I]), ...);
  (order_lanes<L, Group / 4>(v[J]), ...);
  merge_rows<kRows>(v);
}
template <class L, int Group = 2>
PRIMAX_INLINE void merge_columns(typename L::V* v) {
  if constexpr (Group <= L::kLanes) {
    merge_columns<L, Group>(v, UpTo<kRows / 2>(), UpTo<kRows>());
    merge_columns<L, Group * 2>(v);
  }
}

// Exchanges bits of the indices of rows and lanes.
template <class L, int Bit, int... I>
PRIMAX_INLINE void transpose_bit(typename L::V* v, Indices<I...>) {
  const auto exchange = [](typename L::V& a, typename L::V& b) {
    const typename L::V upper = exchanged<L, Bit>(a), lower = exchanged<L, Bit>(b);
    a = chosen<L, Bit>(a, lower);
    b = chosen<L, Bit>(upper, b);
  };
  (exchange(v[I / Bit * 2 * Bit + I % Bit], v[I / Bit * 2 * Bit + I % Bit + Bit]), ...);
}
template <class L, int Bit>
PRIMAX_INLINE void transpose(typename L::V* v) {
  if constexpr (Bit > 0) {
    transpose_bit<L, Bit>(v, UpTo<L::kLanes / 2>());
    transpose<L, Bit / 2>(v);
  }
}

template <class L>
PRIMAX_INLINE typename L::V load_vector(const typename L::T* x) {
  typename L::V v;
  std::memcpy(&v, x, sizeof(v));
  return v;
}
template <class V, class T>
PRIMAX_INLINE void store_vector(T* x, V v) {
  std::memcpy(x, &v, sizeof(v));
}

template <class L, int... I>
PRIMAX_INLINE void load_rows(const typename L::T* x, int64_t step, typename L::V* v, Indices<I...>) {
  ((v[I] = load_vector<L>(x + I * step)), ...);
}
template <class L, int... I>
PRIMAX_INLINE void store_rows(const typename L::V* v, typename L::T* x, int64_t step, Indices<I...>) {
  (store_vector(x + I * step, v[I]), ...);
}

template <class L>
PRIMAX_INLINE void sort_block(typename L::T* x) {
  constexpr int kLane = L::kLanes;
  typename L::V v[kRows];
  load_rows<L>(x, kLane, v, UpTo<kRows>());
  sort_columns(v, UpTo<63>());
  merge_columns<L>(v);
  // Rows part * lanes to (part + 1) * lanes of a column are one vector.
  constexpr int kParts = kRows / kLane;
  for (int part = 0; part < kParts; ++part) {
    transpose<L, kLane / 2>(v + part * kLane);
    store_rows<L>(v + part * kLane, x + part * kLane, kRows, UpTo<kLane>());
  }
}

// Merges vectors [0, size) of a bitonic sequence; those from `end` on are the greatest ones.
template <class L>
PRIMAX_INLINE void merge_bitonic(typename L::T* x, int64_t size, int64_t end) {
  constexpr int kLane = L::kLanes;
  int64_t step = size / 2;
  for (; step >= 2 * kTile; step /= 4) {  // two steps at a time
    const int64_t half = step / 2;
    for (int64_t first = 0; first < end; first += 2 * step) {
      for (int64_t i = first; i < first + half; ++i) {
        typename L::V v[4];
        load_rows<L>(x + i * kLane, half * kLane, v, UpTo<4>());
        merge_rows<4>(v);
        store_rows<L>(v, x + i * kLane, half * kLane, UpTo<4>());
      }
    }
  }
  for (; step >= kTile; step /= 2) {
    for (int64_t first = 0; first + step < end; first += 2 * step) {
      for (int64_t i = first; i < first + step; ++i) {
        typename L::V v[2];
        load_rows<L>(x + i * kLane, step * kLane, v, UpTo<2>());
        order(v[0], v[1]);
        store_rows<L>(v, x + i * kLane, step * kLane, UpTo<2>());
      }
    }
  }
  for (int64_t first = 0; first < end; first += kTile) {
    typename L::V v[kTile];
    load_rows<L>(x + first * kLane, kLane, v, UpTo<kTile>());
    merge_rows<kTile>(v);
    for (int i = 0; i < kTile; ++i) order_lanes<L, kLane / 2>(v[i]);
    store_rows<L>(v, x + first * kLane, kLane, UpTo<kTile>());
  }
}

// Merges two sorted sequences of size / 2 vectors.
template <class L>
PRIMAX_INLINE void merge_sorted(typename L::T* x, int64_t size, int64_t end) {
  constexpr int kLane = L::kLanes;
  for (int64_t i = std::max<int64_t>(0, size - end); i < size / 2; ++i) {
    auto *front = x + i * kLane, *back = x + (size - 1 - i) * kLane;
    typename L::V a = load_vector<L>(front), b = exchanged<L, kLane - 1>(load_vector<L>(back));
    order(a, b);
    store_vector(front, a);
    store_vector(back, exchanged<L, kLane - 1>(b));
  }
  merge_bitonic<L>(x, size, end);
}

template <class L>
PRIMAX_INLINE void sort(typename L::T* x, int64_t n) {
  constexpr int64_t kLane = L::kLanes, kBlock = kRows * kLane;
  const int64_t end = (n + kBlock - 1) / kBlock * kRows, all = words_for_network(n);
  std::fill(x + n, x + all, std::numeric_limits<typename L::T>::max());
  for (int64_t i = 0; i < end; i += kRows) sort_block<L>(x + i * kLane);
  for (int64_t size = 2 * kRows; size < 2 * end; size *= 2) {
    for (int64_t first = 0; first + size / 2 < end; first += size) {
      merge_sorted<L>(x + first * kLane, size, std::min(size, end - first));
    }
  }
}

// The processor's instructions for vectors of 32 bytes, if it may have them.
#ifdef __x86_64__
#define PRIMAX_WITH_AVX2 __attribute__((target("avx2")))
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
PRIMAX_WITH_AVX2 void sort_with_avx2(uint16_t* words, int64_t n) { sort<Vectors<uint16_t, 32>>(words, n); }
PRIMAX_WITH_AVX2 void sort_with_avx2(uint32_t* words, int64_t n) { sort<Vectors<uint32_t, 32>>(words, n); }
PRIMAX_WITH_AVX2 void sort_with_avx2(int64_t* words, int64_t n) { sort<Vectors<int64_t, 32>>(words, n); }
#else
constexpr bool has_avx2() { return false; }
#endif

template <class T>
void sort_in_place(T* words, int64_t n) {
#ifdef __x86_64__
  if (has_avx2()) return sort_with_avx2(words, n);
#endif
  sort<Vectors<T, 16>>(words, n);
}

}  // namespace

int64_t longest_for_network(int64_t bytes) {
  if (bytes == 8) return has_avx2() ? 1 << 11 : 1 << 7;
  return has_avx2() ? kLongestNetwork : kLongestNetwork / 2;
}

int64_t words_for_network(int64_t n) {
  int64_t size = kRows * 16;
  while (size < n) size *= 2;
  return size;
}

void network_sort(uint16_t* words, int64_t n) { sort_in_place(words, n); }
void network_sort(uint32_t* words, int64_t n) { sort_in_place(words, n); }
void network_sort(int64_t* words, int64_t n) { sort_in_place(words, n); }

}  // namespace primax
