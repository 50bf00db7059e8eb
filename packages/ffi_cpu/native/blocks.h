// Lines of an array in blocks of neighbouring columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dimensions.h"

namespace primax {

// Columns whose first elements are side by side, or one row.
struct Block {
  int64_t at, columns;  // index of the first element, number of lines
};

// A block has several cache lines of columns if copies of them fit into the cache, which saves
// address translations; otherwise one line, or fewer columns if copies of them are large.
constexpr int64_t kCacheLine = 64, kSeveralLines = 256;
constexpr int64_t kBlockInCache = int64_t{1} << 18, kLargestBlock = int64_t{1} << 20;

struct Blocks {
  Lines lines;
  int64_t width, in_row;

  Blocks(Lines lines, int64_t element_bytes) : lines(lines) {
    const int64_t column = std::max<int64_t>(1, lines.length * element_bytes);
    const int64_t one = std::min(kCacheLine / element_bytes, kLargestBlock / column);
    const int64_t several = std::min(kSeveralLines / element_bytes, kBlockInCache / column);
    width = std::min(lines.inner, std::max<int64_t>({1, one, several}));
    in_row = width == 0 ? 0 : (lines.inner + width - 1) / width;
  }

  bool are_rows() const { return lines.inner == 1; }
  int64_t count() const { return lines.outer * in_row; }
  Block operator[](int64_t i) const {
    const int64_t first = i % in_row * width;
    return {i / in_row * lines.length * lines.inner + first, std::min(width, lines.inner - first)};
  }
};

// Rows copied together: as many cache lines that are 4 KiB apart fit into a cache of 8 ways.
constexpr int64_t kRows = 8;

// columns[c * n + i] = x[(i * inner + c) * stride]
template <class T>
void copy_columns(const T* x, int64_t n, int64_t inner, int64_t stride, int64_t count, T* columns) {
  int64_t i = 0;
  for (; i + kRows <= n; i += kRows) {
    for (int64_t c = 0; c < count; ++c) {
      for (int64_t k = 0; k < kRows; ++k) {
        columns[c * n + i + k] = x[((i + k) * inner + c) * stride];
      }
    }
  }
  for (; i < n; ++i) {
    for (int64_t c = 0; c < count; ++c) columns[c * n + i] = x[(i * inner + c) * stride];
  }
}

// out[i * inner + c] = columns[c * n + i]
template <class T, class Out>
void write_columns(const T* columns, int64_t n, int64_t inner, int64_t count, Out* out) {
  int64_t i = 0;
  for (; i + kRows <= n; i += kRows) {
    for (int64_t c = 0; c < count; ++c) {
      for (int64_t k = 0; k < kRows; ++k) {
        out[(i + k) * inner + c] = Out(columns[c * n + i + k]);
      }
    }
  }
  for (; i < n; ++i) {
    for (int64_t c = 0; c < count; ++c) out[i * inner + c] = Out(columns[c * n + i]);
  }
}

}  // namespace primax
