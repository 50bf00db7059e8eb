// Stable sorts of one line of unsigned words by some of their bits.
//
// The sort goes by digits, from the least significant one (LSD radix sort; Knuth, The Art of
// Computer Programming 3, 5.2.5). Where the first digits separate nearly all words, insertion
// replaces the passes of the other digits.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace primax {

constexpr int64_t kInsertion = 32;   // lines up to this length are sorted by insertion
constexpr int64_t kLongLine = 4096;  // from this length on, digits have 11 instead of 8 bits
constexpr int kShortDigit = 8, kLongDigit = 11;

inline int bit_width(uint64_t x) { return x == 0 ? 0 : 64 - __builtin_clzll(x); }

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

template <class Word>
struct LoadWord {
  const Word* words;
  Word operator()(int64_t i) const { return words[i]; }
};

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
  uint32_t of[(64 + kBits - 1) / kBits][1 << kBits];
};

template <int kDigits, int kBits, class Load>
void count_digits(const Load& load, int64_t n, Digits digits, int first, Counts<kBits>& counts) {
  const uint32_t mask = digits.mask();
  const int shift = digits.shift(first), bits = digits.bits;
  for (int d = 0; d < kDigits; ++d) std::memset(counts.of[first + d], 0, sizeof(uint32_t) << bits);
  for (int64_t i = 0; i < n; ++i) {
    auto word = load(i) >> shift;
#pragma GCC unroll 4
    for (int d = 0; d < kDigits; ++d) {
      ++counts.of[first + d][uint32_t(word) & mask];
      word >>= bits;
    }
  }
}

template <int kBits, class Load>
void count_digits(const Load& load, int64_t n, Digits digits, int first, int last,
                  Counts<kBits>& counts) {
  for (; last - first >= 3; first += 3) count_digits<3, kBits>(load, n, digits, first, counts);
  if (last - first == 2) count_digits<2, kBits>(load, n, digits, first, counts);
  if (last - first == 1) count_digits<1, kBits>(load, n, digits, first, counts);
}

template <class Word, class Load>
void scatter(const Load& load, int64_t n, int shift, uint32_t mask, uint32_t* counts, Word* to) {
  uint32_t at = 0;
  for (uint32_t d = 0; d <= mask; ++d) at += std::exchange(counts[d], at);
  for (int64_t i = 0; i < n; ++i) {
    const Word word = load(i);
    to[counts[uint32_t(word >> shift) & mask]++] = word;
  }
}

// The passes of digits from `first` on; the result is at `to`. `load` reads memory other than `to`
// and `other`, or what `reads(odd)` returns for an odd and an even number of passes.
template <int kBits, class Word, class LoadFor>
void passes(const LoadFor& load_for, int64_t n, Digits digits, int first, Counts<kBits>& counts,
            Word* to, Word* other) {
  int needed[64], count = 0;
  const Word word = load_for(false)(0);
  for (int d = first; d < digits.count; ++d) {
    const uint32_t digit = uint32_t(word >> digits.shift(d)) & digits.mask();
    if (counts.of[d][digit] != uint32_t(n)) needed[count++] = d;
  }
  const auto load = load_for(count % 2 == 1);
  Word* from = nullptr;
  for (int p = 0; p < count; ++p) {
    Word* next = (count - p) % 2 == 1 ? to : other;
    const int shift = digits.shift(needed[p]);
    uint32_t* table = counts.of[needed[p]];
    if (p == 0) {
      scatter(load, n, shift, digits.mask(), table, next);
    } else {
      scatter(LoadWord<Word>{from}, n, shift, digits.mask(), table, next);
    }
    from = next;
  }
}

// The number of digits that need no pass because pairs of words that the others do not separate
// are few, if numbers are locally uniform.
template <int kBits>
int inessential_digits(int64_t n, Digits digits, const Counts<kBits>& counts) {
  double squares = 0;
  const uint32_t* top = counts.of[digits.count - 1];
  for (uint32_t d = 0; d <= digits.mask(); ++d) squares += double(top[d]) * top[d];
  double pairs = squares / 2;
  for (int first = digits.count - 2; first > 0; --first) {
    pairs /= 1 << digits.bits;
    if (pairs <= double(n) / 8) return first;
  }
  return 0;
}

template <int kBits, class Word, class Load>
void radix_sort_digits(const Load& load, int64_t n, int low, int high, Word* to, Word* other) {
  Counts<kBits> counts;
  const Digits digits(low, high, kBits);
  const int top = digits.count - 1;
  count_digits(load, n, digits, top, top + 1, counts);
  const int first = inessential_digits(n, digits, counts);
  count_digits(load, n, digits, first, top, counts);
  passes([&](bool) { return load; }, n, digits, first, counts, to, other);
  if (first == 0) return;
  const auto less = [=](Word a, Word b) { return a >> low < b >> low; };
  if (insertion_sort(to, n, 2 * n, less)) return;
  count_digits(LoadWord<Word>{to}, n, digits, 0, top + 1, counts);
  const auto copied_if_odd = [=](bool odd) {
    if (odd) std::memcpy(other, to, size_t(n) * sizeof(Word));
    return LoadWord<Word>{odd ? other : to};
  };
  passes(copied_if_odd, n, digits, 0, counts, to, other);
}

// Sorts load(0), ..., load(n - 1) by their bits [low, high) into `to`; stable. The words differ in
// bit high - 1, and may differ in other bits below `high`. `other` is space for n words. n < 2^32.
template <class Word, class Load>
void radix_sort(const Load& load, int64_t n, int low, int high, Word* to, Word* other) {
  if (n < kLongLine) {
    radix_sort_digits<kShortDigit>(load, n, low, high, to, other);
  } else {
    radix_sort_digits<kLongDigit>(load, n, low, high, to, other);
  }
}

}  // namespace primax
