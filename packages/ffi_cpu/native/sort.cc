// Stable sorts along an axis, of one array and of several by some of them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "blocks.h"
#include "dimensions.h"
#include "handler.h"
#include "key_types.h"
#include "line_sort.h"
#include "parallel.h"
#include "scratch.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;

// Estimated time of an element of a line of n elements.
double nanoseconds(int64_t n, int64_t key_bytes) {
  return 2.0 + double(key_bytes) * (n > kMostRanks ? 1.0 : 0.03 * double(n));
}

// Fewer lines than threads, each of at least this many elements, are sorted one after another, each
// by all threads.
constexpr int64_t kLongLine = int64_t{1} << 18;

// Calls body(begin, end, threads) for parts of the blocks; `threads` sort each line together.
template <class Body>
void for_each_block(ffi::ThreadPool& pool, const Blocks& blocks, double nanoseconds, Body body) {
  const int64_t count = blocks.count() * blocks.width;
  if (count >= pool.num_threads() || blocks.lines.length < kLongLine) {
    return for_each_part(pool, blocks.count(), nanoseconds,
                         [=](int64_t begin, int64_t end) { body(begin, end, nullptr); });
  }
  const auto run = [&pool](int64_t count, double nanoseconds, FunctionRef<int64_t, int64_t> part) {
    for_each_part(pool, count, nanoseconds, part);
  };
  const Threads threads{pool.num_threads(), decltype(Threads::run)(run)};
  body(0, blocks.count(), &threads);
}

ffi::Error unsupported(ffi::DataType dtype) {
  return ffi::Error::InvalidArgument("sort: no kernel for keys of the dtype with number " +
                                     std::to_string(int(dtype)));
}

template <class Key>
ffi::Error sort_values(ffi::ThreadPool& pool, const void* operand, void* result, Lines lines) {
  using Bits = typename Key::Bits;
  const Bits* x = static_cast<const Bits*>(operand);
  Bits* out = static_cast<Bits*>(result);
  const int64_t n = lines.length;
  const Blocks blocks(lines, sizeof(Bits));
  const int64_t copied = blocks.are_rows() ? 0 : n * blocks.width;
  const int64_t copied_line = blocks.are_rows() ? 0 : n;
  const double time = double(n * blocks.width) * nanoseconds(n, sizeof(Bits));
  for_each_block(pool, blocks, time, [=](int64_t begin, int64_t end, const Threads* threads) {
    Scratch scratch(Scratch::bytes<Bits>(words_to_sort<Key>(n)) + Scratch::bytes<Bits>(copied) +
                    Scratch::bytes<Bits>(copied_line));
    Bits* space = scratch.take<Bits>(words_to_sort<Key>(n));
    Bits* columns = scratch.take<Bits>(copied);
    Bits* sorted = scratch.take<Bits>(copied_line);
    for (int64_t i = begin; i < end; ++i) {
      const Block block = blocks[i];
      if (copied == 0) {
        sort_line<Key>(x + block.at, n, out + block.at, space, threads);
        continue;
      }
      copy_columns(x + block.at, n, lines.inner, 1, block.columns, columns);
      for (int64_t c = 0; c < block.columns; ++c) {
        sort_line<Key>(columns + c * n, n, sorted, space, threads);
        std::memcpy(columns + c * n, sorted, size_t(n) * sizeof(Bits));
      }
      write_columns(columns, n, lines.inner, block.columns, out + block.at);
    }
  });
  return ffi::Error::Success();
}

// A key of real numbers: an operand, or the real or imaginary parts of one.
struct KeyPart {
  ffi::DataType dtype;
  const char* first;
  int64_t stride;  // in numbers
};

// An operand whose elements are moved to a result, or, without `from`, positions along the axis. A
// result that nobody reads has no `to`.
struct Moved {
  const char* from;
  char* to;
  int64_t bytes;
};

struct Complex128 {
  uint64_t real, imaginary;
};

// Calls f with a pointer to an unsigned integer (or Complex128) of so many bytes.
template <class F>
void with_bytes(int64_t bytes, const F& f) {
  switch (bytes) {
    case 1: return f(static_cast<uint8_t*>(nullptr));
    case 2: return f(static_cast<uint16_t*>(nullptr));
    case 4: return f(static_cast<uint32_t*>(nullptr));
    case 8: return f(static_cast<uint64_t*>(nullptr));
    default: return f(static_cast<Complex128*>(nullptr));
  }
}

// Writes the elements at `positions` (a line of them for each column) of a block.
void move_block(const Moved& moved, Block block, Lines lines, const uint32_t* positions) {
  const int64_t n = lines.length, inner = lines.inner;
  if (moved.from == nullptr) {
    if (moved.bytes == 8) {
      write_columns(positions, n, inner, block.columns, reinterpret_cast<uint64_t*>(moved.to) + block.at);
    } else {
      write_columns(positions, n, inner, block.columns, reinterpret_cast<uint32_t*>(moved.to) + block.at);
    }
    return;
  }
  with_bytes(moved.bytes, [&](auto* typed) {
    using T = std::remove_pointer_t<decltype(typed)>;
    const T* from = reinterpret_cast<const T*>(moved.from) + block.at;
    T* to = reinterpret_cast<T*>(moved.to) + block.at;
    if (inner == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[positions[i]];
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < block.columns; ++c) {
        to[i * inner + c] = from[int64_t(positions[c * n + i]) * inner + c];
      }
    }
  });
}

// Sorts the positions of the lines of a block by one key. `copies` is for keys that are no row.
// Returns whether the elements at the positions have been written to `sorted`.
bool order_block(const KeyPart& part, Block block, Lines lines, bool ascending, uint32_t* positions,
                 uint64_t* words, void* copies, char* sorted, const Threads* threads) {
  const int64_t n = lines.length;
  bool written = false;
  with_sort_key(part.dtype, [&](auto key_type) {
    using Key = typename decltype(key_type)::type;
    using Bits = typename Key::Bits;
    const Bits* keys = reinterpret_cast<const Bits*>(part.first) + block.at * part.stride;
    if (lines.inner > 1 || part.stride > 1) {
      Bits* columns = static_cast<Bits*>(copies);
      copy_columns(keys, n, lines.inner, part.stride, block.columns, columns);
      keys = columns;
    }
    Bits* to = sorted == nullptr ? nullptr : reinterpret_cast<Bits*>(sorted) + block.at;
    for (int64_t c = 0; c < block.columns; ++c) {
      written = order_line<Key>(keys + c * n, n, ascending, positions + c * n, to, words, threads);
    }
  });
  return written;
}

// Sorts a row by its only key together with elements of 32 bits; see sort_pairs.
bool sort_row_of_pairs(ffi::DataType dtype, const Moved& key, const Moved& payload, int64_t at, int64_t n,
                       uint64_t* words, const Threads* threads) {
  bool done = false;
  with_sort_key(dtype, [&](auto key_type) {
    using Key = typename decltype(key_type)::type;
    using Bits = typename Key::Bits;
    done = sort_pairs<Key>(reinterpret_cast<const Bits*>(key.from) + at,
                           reinterpret_cast<const uint32_t*>(payload.from) + at, n,
                           key.to == nullptr ? nullptr : reinterpret_cast<Bits*>(key.to) + at,
                           reinterpret_cast<uint32_t*>(payload.to) + at, words, threads);
  });
  return done;
}

// Result for positions of 32 bits, whose memory can hold the positions that are sorted.
uint32_t* result_of_positions(const std::vector<Moved>& moved) {
  for (const Moved& m : moved) {
    if (m.from == nullptr && m.to != nullptr && m.bytes == 4) return reinterpret_cast<uint32_t*>(m.to);
  }
  return nullptr;
}

ffi::Error sort_by_keys(ffi::ThreadPool& pool, const std::vector<KeyPart>& keys,
                        const std::vector<Moved>& moved, Lines lines) {
  const int64_t n = lines.length;
  if (n > int64_t{UINT32_MAX}) {
    return ffi::Error::InvalidArgument("sort: lines of several arrays have at most 2**32 - 1 elements");
  }
  const Blocks blocks(lines, sizeof(uint64_t));
  const int64_t in_block = n * blocks.width;
  bool copies_needed = !blocks.are_rows();
  for (const KeyPart& key : keys) copies_needed |= key.stride > 1;
  const int64_t copied = copies_needed ? in_block : 0;
  uint32_t* result = blocks.are_rows() ? result_of_positions(moved) : nullptr;
  const int64_t positions_needed = result == nullptr ? in_block : 0;
  const bool one_key = keys.size() == 1 && !copies_needed;
  const bool pairs = one_key && moved.size() == 2 && moved[1].from != nullptr && moved[1].bytes == 4;
  const int64_t words_needed = words_to_order(n);
  const double time = double(in_block) * (2.0 * double(moved.size()) + double(keys.size()) * nanoseconds(n, 8));
  for_each_block(pool, blocks, time, [=, &keys, &moved](int64_t begin, int64_t end, const Threads* threads) {
    Scratch scratch(Scratch::bytes<uint32_t>(positions_needed) + Scratch::bytes<uint64_t>(copied) +
                    Scratch::bytes<uint64_t>(words_needed));
    uint32_t* taken = scratch.take<uint32_t>(positions_needed);
    uint64_t* words = scratch.take<uint64_t>(words_needed);
    uint64_t* copies = scratch.take<uint64_t>(copied);
    for (int64_t i = begin; i < end; ++i) {
      const Block block = blocks[i];
      if (pairs && sort_row_of_pairs(keys[0].dtype, moved[0], moved[1], block.at, n, words, threads)) continue;
      uint32_t* positions = result == nullptr ? taken : result + block.at;
      bool written = false;
      for (size_t k = keys.size(); k-- > 0;) {
        char* sorted = one_key ? moved[0].to : nullptr;
        written = order_block(keys[k], block, lines, k + 1 == keys.size(), positions, words, copies,
                              sorted, threads);
      }
      for (size_t m = written; m < moved.size(); ++m) {
        const bool is_written = moved[m].to == nullptr || moved[m].to == reinterpret_cast<char*>(result);
        if (!is_written) move_block(moved[m], block, lines, positions);
      }
    }
  });
  return ffi::Error::Success();
}

// The real dtype of the parts of a complex one, or INVALID.
ffi::DataType part_of(ffi::DataType dtype) {
  if (dtype == ffi::DataType::C64) return ffi::DataType::F32;
  if (dtype == ffi::DataType::C128) return ffi::DataType::F64;
  return ffi::DataType::INVALID;
}

void add_key(const ffi::AnyBuffer& x, std::vector<KeyPart>& keys) {
  const char* data = static_cast<const char*>(x.untyped_data());
  const ffi::DataType part = part_of(x.element_type());
  if (part == ffi::DataType::INVALID) {
    keys.push_back({x.element_type(), data, 1});
  } else {
    keys.push_back({part, data, 2});
    keys.push_back({part, data + ffi::ByteWidth(part), 2});
  }
}

bool contains(ffi::Span<const int64_t> indices, size_t i) {
  return std::find(indices.begin(), indices.end(), int64_t(i)) != indices.end();
}

// The operands are those of the sort without positions along the axis, whose places among the
// results are `positions`. The results that are `unused` need not be written.
ffi::Error sort(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                int64_t axis, int64_t num_keys, ffi::Span<const int64_t> positions,
                ffi::Span<const int64_t> unused) {
  std::vector<KeyPart> keys;
  std::vector<Moved> moved;
  Lines lines;
  size_t operand = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    auto result = results.get<ffi::AnyBuffer>(i);
    if (!result) return result.error();
    ffi::AnyBuffer& out = **result;
    lines = lines_along(out.dimensions(), axis);
    const int64_t bytes = int64_t(ffi::ByteWidth(out.element_type()));
    char* to = contains(unused, i) ? nullptr : static_cast<char*>(out.untyped_data());
    if (contains(positions, i)) {
      moved.push_back({nullptr, to, bytes});
      continue;
    }
    auto x = operands.get<ffi::AnyBuffer>(operand++);
    if (!x) return x.error();
    if (int64_t(i) < num_keys) {
      add_key(*x, keys);
      if (!with_sort_key(keys.back().dtype, [](auto) {})) return unsupported(x->element_type());
    }
    moved.push_back({static_cast<const char*>(x->untyped_data()), to, bytes});
  }
  if (lines.length == 0 || lines.count() == 0) return ffi::Error::Success();
  const auto is_used = [](const Moved& m) { return m.to != nullptr; };
  const bool values_alone = std::none_of(moved.begin() + 1, moved.end(), is_used);
  if (values_alone && !is_used(moved[0])) return ffi::Error::Success();
  if (keys.size() > 1 || !values_alone) return sort_by_keys(pool, keys, moved, lines);
  ffi::Error error = ffi::Error::Success();
  with_sort_key(keys[0].dtype, [&](auto key_type) {
    using Key = typename decltype(key_type)::type;
    error = sort_values<Key>(pool, moved[0].from, moved[0].to, lines);
  });
  return error;
}

}  // namespace
}  // namespace primax

PRIMAX_CPU_HANDLER(primax_cpu_sort, primax::sort,
                   xla::ffi::Ffi::Bind()
                       .Ctx<xla::ffi::ThreadPool>()
                       .RemainingArgs()
                       .RemainingRets()
                       .Attr<int64_t>("axis")
                       .Attr<int64_t>("num_keys")
                       .Attr<xla::ffi::Span<const int64_t>>("positions")
                       .Attr<xla::ffi::Span<const int64_t>>("unused"));
