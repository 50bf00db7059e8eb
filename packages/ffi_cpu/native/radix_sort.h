// Stable sorts of one line of unsigned words by some of their bits.
//
// Long lines are split by their first digit until the parts fit into the cache (MSD radix sort);
// parts are sorted by digits from the least significant one (LSD radix sort; Knuth, The Art of
// Computer Programming 3, 5.2.5). Where the first digits separate nearly all words, insertion
// replaces the passes of the other digits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "function_ref.h"
#include "network_sort.h"
#include "scratch.h"

namespace primax {

constexpr int64_t kPartBytes = int64_t{1} << 19;  // parts up to this size are not split
constexpr int64_t kChunk = 512;                   // words made at a time from elements
constexpr int kSplitBits = 11;                    // at most

inline int bit_width(uint64_t x) { return x == 0 ? 0 : 64 - __builtin_clzll(x); }
inline int lowest_bit(uint64_t x) { return __builtin_ctzll(x); }

// Sorts by insertion; stable. False if elements would move more than about `budget` steps in all;
// the order of equal elements is kept even then.
template <class T, class Less>
bool insertion_sort(T* x, int64_t n, int64_t budget, const Less& less) {
  for (int64_t i = 1; i < n; ++i) {
    const T value = x[i];
    if (!less(value, x[i - 1])) continue;
    int64_t j = i;
    do {
      x[j] = x[j - 1];
      --j;
    } while (j > 0 && less(value, x[j - 1]));
    x[j] = value;
    budget -= i - j;
    if (budget < 0) return false;
  }
  return true;
}

// The digits of a sort: `count` digits of `bits` bits, the first at bit `low`.
struct Digits {
  int low, bits, count;

  // `most` bits at most in each, and as few as possible.
  Digits(int low, int high, int most) : low(low) {
    count = (high - low + most - 1) / most;
    bits = (high - low + count - 1) / count;
  }
  int shift(int digit) const { return low + digit * bits; }
  uint32_t mask() const { return (1u << bits) - 1; }
};

// A table of counts for each digit of at most `kBits` bits of words of 64 bits.
template <int kBits>
struct Counts {
  uint32_t of[(64 + kBits - 1) / kBits][1 << kBits], halves[1 << kBits];
};

template <int kDigits, int kBits, class Word>
void count_digits(const Word* words, int64_t n, Digits digits, int first, Counts<kBits>& counts) {
  const uint32_t mask = digits.mask();
  const int shift = digits.shift(first), bits = digits.bits;
  for (int d = 0; d < kDigits; ++d) std::memset(counts.of[first + d], 0, sizeof(uint32_t) << bits);
  for (int64_t i = 0; i < n; ++i) {
    auto word = words[i] >> shift;
#pragma GCC unroll 4
    for (int d = 0; d < kDigits; ++d) {
      ++counts.of[first + d][uint32_t(word) & mask];
      word >>= bits;
    }
  }
}

// Counts of all digits but the last one.
template <int kBits, class Word>
void count_digits(const Word* words, int64_t n, Digits digits, Counts<kBits>& counts) {
  int first = 0;
  const int top = digits.count - 1;
  for (; top - first > 3; first += 2) count_digits<2, kBits>(words, n, digits, first, counts);
  if (top - first == 3) count_digits<3, kBits>(words, n, digits, first, counts);
  if (top - first == 2) count_digits<2, kBits>(words, n, digits, first, counts);
  if (top - first == 1) count_digits<1, kBits>(words, n, digits, first, counts);
}

// Counts become the places of the first words of each digit.
inline void accumulate(uint32_t* counts, uint32_t size) {
  uint32_t at = 0;
  for (uint32_t d = 0; d < size; ++d) at += std::exchange(counts[d], at);
}

template <class Word>
void scatter(const Word* words, int64_t n, int shift, uint32_t mask, uint32_t* places, Word* to) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {  // reads first: they need not wait for the places
    const Word a = words[i], b = words[i + 1], c = words[i + 2], d = words[i + 3];
    const uint32_t at_a = uint32_t(a >> shift) & mask, at_b = uint32_t(b >> shift) & mask;
    const uint32_t at_c = uint32_t(c >> shift) & mask, at_d = uint32_t(d >> shift) & mask;
    to[places[at_a]++] = a;
    to[places[at_b]++] = b;
    to[places[at_c]++] = c;
    to[places[at_d]++] = d;
  }
  for (; i < n; ++i) to[places[uint32_t(words[i] >> shift) & mask]++] = words[i];
}

// The first digit often has few values, such as the exponents of floats, and then each place waits
// for the one before. Two halves of a line have places of their own, which halves the time.
struct Halves {
  uint32_t *front, *back;

  void clear(uint32_t size) const {
    std::memset(front, 0, sizeof(uint32_t) * size);
    std::memset(back, 0, sizeof(uint32_t) * size);
  }
  template <class Word>
  void count(const Word* x, const Word* y, int64_t n, int shift, uint32_t mask) const {
    for (int64_t i = 0; i < n; ++i) {
      ++front[uint32_t(x[i] >> shift) & mask];
      ++back[uint32_t(y[i] >> shift) & mask];
    }
  }
  template <class Word>
  void scatter(const Word* x, const Word* y, int64_t n, int shift, uint32_t mask, Word* to) const {
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      const Word a = x[i], b = x[i + 1], c = y[i], d = y[i + 1];
      const uint32_t at_a = uint32_t(a >> shift) & mask, at_b = uint32_t(b >> shift) & mask;
      const uint32_t at_c = uint32_t(c >> shift) & mask, at_d = uint32_t(d >> shift) & mask;
      to[front[at_a]++] = a;
      to[back[at_c]++] = c;
      to[front[at_b]++] = b;
      to[back[at_d]++] = d;
    }
    if (i < n) {
      to[front[uint32_t(x[i] >> shift) & mask]++] = x[i];
      to[back[uint32_t(y[i] >> shift) & mask]++] = y[i];
    }
  }
  void accumulate(uint32_t size) const {
    uint32_t at = 0;
    for (uint32_t d = 0; d < size; ++d) {
      at += std::exchange(front[d], at);
      at += std::exchange(back[d], at);
    }
  }
};

template <class Word>
void sort_by_first_digit(const Word* from, int64_t n, int shift, uint32_t mask, Halves places, Word* to) {
  const int64_t half = n / 2;
  const Word last = from[n - 1];
  const uint32_t odd = n % 2, last_digit = uint32_t(last >> shift) & mask;
  places.clear(mask + 1);
  places.count(from, from + half, half, shift, mask);
  places.back[last_digit] += odd;
  places.accumulate(mask + 1);
  places.scatter(from, from + half, half, shift, mask, to);
  if (odd) to[places.back[last_digit]] = last;
}

// Sorts by digits. The words are at `from`, or at `to` if `from` is null; the result is at `to`.
template <int kBits, class Word>
void sort_by_digits(const Word* from, int64_t n, Digits digits, Counts<kBits>& counts, Word* to,
                    Word* other) {
  const Word word = from == nullptr ? to[0] : from[0];
  const int top = digits.count - 1;
  int needed[64], count = 0;
  for (int d = 0; d < top; ++d) {
    const uint32_t digit = uint32_t(word >> digits.shift(d)) & digits.mask();
    if (counts.of[d][digit] != uint32_t(n)) needed[count++] = d;
  }
  if (from == nullptr && count % 2 == 0) {
    std::memcpy(other, to, size_t(n) * sizeof(Word));
    from = other;
  } else if (from == nullptr) {
    from = to;
  }
  for (int p = 0; p < count; ++p) {
    Word* next = (count - p) % 2 == 0 ? to : other;
    uint32_t* places = counts.of[needed[p]];
    accumulate(places, digits.mask() + 1);
    scatter(from, n, digits.shift(needed[p]), digits.mask(), places, next);
    from = next;
  }
  sort_by_first_digit(from, n, digits.shift(top), digits.mask(), {counts.of[top], counts.halves}, to);
}

// The number of bits below `high` that separate nearly all words, if words are locally uniform:
// at most one pair in eight words is left. Decided by a sample.
template <class Word>
int separating_bits(const Word* words, int64_t n, int high, uint32_t* counts) {
  constexpr int kBits = 8;
  constexpr int64_t kSample = 128;
  if (high <= kBits) return high;
  std::memset(counts, 0, sizeof(uint32_t) << kBits);
  const int shift = high - kBits;
  const int64_t step = n < 2 * kSample ? 1 : n / kSample;
  int64_t pairs = 0, sample = 0;
  for (int64_t i = 0; i < n; i += step, ++sample) pairs += counts[uint8_t(words[i] >> shift)]++;
  const double scale = double(n) / double(sample);
  const double expected = double(pairs + 1) * scale * scale / (double(n) / 8);
  return expected <= 1 ? kBits : kBits + bit_width(uint64_t(expected));
}

template <int kBits, class Word>
void lsd_radix_sort(const Word* from, int64_t n, int low, int high, Word* to, Word* other) {
  Counts<kBits> counts;
  const Digits all(low, high, kBits);
  const int enough = separating_bits(from, n, high, counts.halves);
  Digits digits(0, enough, kBits);
  digits.low = high - digits.count * digits.bits;
  const bool some = digits.low > low && digits.count < all.count;
  if (!some) digits = all;
  count_digits(from, n, digits, counts);
  sort_by_digits(from, n, digits, counts, to, other);
  if (!some) return;
  if (insertion_sort(to, n, 2 * n, [=](Word a, Word b) { return a >> low < b >> low; })) return;
  count_digits(to, n, all, counts);
  sort_by_digits<kBits, Word>(nullptr, n, all, counts, to, other);
}

// Sorts n words by their bits [low, high) into `to`; stable. `to`, and `other` that follows it, do
// not overlap the words. The words differ in bit high - 1; those of 32 bits in no other bits.
template <class Word>
void sort_part(const Word* from, int64_t n, int low, int high, Word* to, Word* other) {
  if constexpr (sizeof(Word) == 4) {
    if (n > 128 && n <= longest_for_network(4)) {
      std::memcpy(to, from, size_t(n) * sizeof(Word));
      return network_sort(to, n);
    }
  }
  lsd_radix_sort<11>(from, n, low, high, to, other);
}

// Memory for the sort of n words.
template <class Word>
struct Space {
  Word *split[2], *part[2];

  static int64_t part_size() { return kPartBytes / int64_t(sizeof(Word)); }
  static int64_t words(int64_t n) {
    return n <= part_size() ? 3 * n : 2 * n + 2 * part_size();
  }
  // `memory` is for words(n).
  Space(Word* memory, int64_t n) {
    const int64_t in_part = std::min(n, part_size());
    part[0] = memory;
    part[1] = memory + in_part;
    split[0] = memory + 2 * in_part;
    split[1] = split[0] + n;
  }
};

// Threads that sort one line together: run(count, nanoseconds, body) is for_each_part of their pool.
struct Threads {
  int64_t count;
  FunctionRef<int64_t, double, FunctionRef<int64_t, int64_t>> run;
};

// Calls body(begin, end) for parts of [0, count), in threads if there are any.
template <class Body>
void run_in(const Threads* threads, int64_t count, double nanoseconds, const Body& body) {
  if (threads == nullptr) return body(int64_t{0}, count);
  threads->run(count, nanoseconds, FunctionRef<int64_t, int64_t>(body));
}

// Long sorts are compiled once for each type of words: make(begin, count, words) gives words of
// elements, emit(begin, words, count) takes sorted words.
template <class Word>
using Make = FunctionRef<int64_t, int64_t, Word*>;
template <class Word>
using Emit = FunctionRef<int64_t, const Word*, int64_t>;

// The bits by which words differ.
template <class Word>
Word differing_bits(const Word* words, int64_t n) {
  Word differing = 0;
  for (int64_t i = 0; i < n; ++i) differing |= words[i] ^ words[0];
  return differing;
}

// Splits words at split[level] + begin by their bits [low, high); see sort_words.
template <class Word>
void sort_split(const Space<Word>& space, int level, int64_t begin, int64_t n, Word mask,
                Emit<Word> emit);

// The fewest bits below `high` by which words are split into parts that fit, from a sample.
template <class Word>
int split_bits(Make<Word> make, int64_t n, int high, uint32_t* counts) {
  constexpr int kLeast = 3;
  if (high <= kLeast) return high;
  constexpr int64_t kSample = 1024;
  const int most = std::min(high, kSplitBits), shift = high - most;
  const uint32_t mask = (1u << most) - 1;
  std::memset(counts, 0, sizeof(uint32_t) << most);
  for (int64_t i = 0; i < kSample; ++i) {
    Word word;
    make(n / kSample * i, 1, &word);
    ++counts[uint32_t(word >> shift) & mask];
  }
  for (int bits = most; bits > kLeast; --bits) {
    // One bit less: the average part of a word.
    double squares = 0;
    for (uint32_t d = 0; d < 1u << (bits - 1); ++d) {
      counts[d] = counts[2 * d] + counts[2 * d + 1];
      squares += double(counts[d]) * counts[d];
    }
    if (squares / kSample / kSample * double(n) > double(Space<Word>::part_size()) / 2) return bits;
  }
  return kLeast;
}

// Counts the digits of n words from `begin` on, or writes the words to their places.
template <class Word, class F, class Last>
void for_halves(Make<Word> make, int64_t begin, int64_t n, const F& both, const Last& last) {
  const int64_t half = n / 2;
  Word x[kChunk], y[kChunk];
  for (int64_t i = 0; i < half; i += kChunk) {
    const int64_t count = std::min(kChunk, half - i);
    make(begin + i, count, x);
    make(begin + half + i, count, y);
    both(x, y, count);
  }
  if (n % 2 == 0) return;
  make(begin + n - 1, 1, x);
  last(x[0]);
}

// Pieces of a long line that threads split, and groups of parts that they sort.
constexpr int64_t kMostPieces = 32, kLeastPiece = int64_t{1} << 15;

// Sorts by the first digit, then each part by the other bits of the mask. `threads` may be null.
template <class Word>
void split_and_sort(Make<Word> make, const Space<Word>& space, int level, int64_t begin, int64_t n,
                    Word mask, int high, Emit<Word> emit, const Threads* threads) {
  uint32_t sample[1 << kSplitBits];
  const int bits = split_bits(make, n, high, sample), shift = high - bits;
  const uint32_t parts = 1u << bits;
  const uint32_t digit_mask = uint32_t(Word(mask >> shift)) & (parts - 1);
  const int64_t most = threads == nullptr ? 1 : std::min(kMostPieces, 4 * threads->count);
  const int64_t pieces = std::clamp<int64_t>(n / kLeastPiece, 1, most);
  const int64_t size = (n + pieces - 1) / pieces;
  Scratch scratch(Scratch::bytes<uint32_t>(2 * pieces * parts));
  uint32_t* tables = scratch.take<uint32_t>(2 * pieces * parts);
  const auto places_of = [=](int64_t piece) {
    return Halves{tables + 2 * piece * parts, tables + (2 * piece + 1) * parts};
  };
  Word* to = space.split[level % 2] + begin;

  const auto count = [&](int64_t piece, int64_t end) {
    for (; piece < end; ++piece) {
      const Halves places = places_of(piece);
      places.clear(parts);
      for_halves<Word>(
          make, piece * size, std::min(size, n - piece * size),
          [&](const Word* x, const Word* y, int64_t n) { places.count(x, y, n, shift, digit_mask); },
          [&](Word word) { ++places.back[uint32_t(word >> shift) & digit_mask]; });
    }
  };
  const auto scatter = [&](int64_t piece, int64_t end) {
    for (; piece < end; ++piece) {
      const Halves places = places_of(piece);
      for_halves<Word>(
          make, piece * size, std::min(size, n - piece * size),
          [&](const Word* x, const Word* y, int64_t n) { places.scatter(x, y, n, shift, digit_mask, to); },
          [&](Word word) { to[places.back[uint32_t(word >> shift) & digit_mask]++] = word; });
    }
  };
  run_in(threads, pieces, 1.5 * double(size), count);
  uint32_t at = 0;
  for (uint32_t d = 0; d < parts; ++d) {
    for (int64_t t = 0; t < 2 * pieces; ++t) at += std::exchange(tables[t * parts + d], at);
  }
  run_in(threads, pieces, 2.0 * double(size), scatter);

  const uint32_t* ends = tables + (2 * pieces - 1) * parts;
  const Word rest = mask & Word((Word{1} << shift) - 1);
  // Part d belongs to the group of its first word.
  const auto sort_groups = [&](int64_t first, int64_t last, const Space<Word>& own) {
    for (uint32_t d = 0, at = 0; d < parts; at = ends[d++]) {
      const bool is_in = at / size >= first && at / size < last;
      if (is_in && ends[d] > at) sort_split(own, level, begin + at, ends[d] - at, rest, emit);
    }
  };
  if (threads == nullptr) return sort_groups(0, pieces, space);
  run_in(threads, pieces, 4.0 * double(size), [&](int64_t first, int64_t last) {
    const int64_t part_size = Space<Word>::part_size();
    Scratch scratch(Scratch::bytes<Word>(2 * part_size));
    Space<Word> own = space;
    own.part[0] = scratch.take<Word>(2 * part_size);
    own.part[1] = own.part[0] + part_size;
    sort_groups(first, last, own);
  });
}

template <class Word>
void sort_split(const Space<Word>& space, int level, int64_t begin, int64_t n, Word mask,
                Emit<Word> emit) {
  const Word* words = space.split[level % 2] + begin;
  const Word differing = differing_bits(words, n) & mask;
  if (differing == 0) return emit(begin, words, n);
  const int high = bit_width(differing);
  if (n > Space<Word>::part_size()) {
    const auto copied = [words](int64_t begin, int64_t count, Word* to) {
      std::memcpy(to, words + begin, size_t(count) * sizeof(Word));
    };
    return split_and_sort(Make<Word>(copied), space, level + 1, begin, n, differing, high, emit, nullptr);
  }
  if (n <= 32) {
    Word* sorted = space.part[0];
    std::copy_n(words, n, sorted);
    insertion_sort(sorted, n, n * n, [=](Word a, Word b) { return (a & mask) < (b & mask); });
    return emit(begin, sorted, n);
  }
  sort_part(words, n, lowest_bit(differing), high, space.part[0], space.part[1]);
  emit(begin, space.part[0], n);
}

// Sorts the words of `make` by the bits of a mask, in all of which some differ; stable. n < 2^32.
template <class Word>
void sort_made_words(Make<Word> make, int64_t n, Word mask, const Space<Word>& space, Emit<Word> emit,
                     const Threads* threads) {
  if (n <= Space<Word>::part_size()) {
    Word* words = space.split[0];
    make(0, n, words);
    sort_part(words, n, lowest_bit(mask), bit_width(mask), space.part[0], space.part[1]);
    return emit(0, space.part[0], n);
  }
  split_and_sort(make, space, 0, 0, n, mask, bit_width(mask), emit, threads);
}

template <class Word, class MakeWords, class EmitWords>
void sort_words(const MakeWords& make, int64_t n, Word mask, const Space<Word>& space,
                const EmitWords& emit, const Threads* threads = nullptr) {
  sort_made_words(Make<Word>(make), n, mask, space, Emit<Word>(emit), threads);
}

}  // namespace primax
