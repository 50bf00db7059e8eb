// The largest elements along an axis, in total order, and their positions.
#include <cstdint>
#include <string>

#include "blocks.h"
#include "dimensions.h"
#include "handler.h"
#include "key_types.h"
#include "line_top_k.h"
#include "parallel.h"
#include "scratch.h"
#include "xla/ffi/api/ffi.h"

namespace primax {
namespace {

namespace ffi = xla::ffi;

template <class Key>
ffi::Error top_k_of(ffi::ThreadPool& pool, const void* operand, void* values, uint32_t* indices,
                    Lines lines, int64_t k) {
  using Bits = typename Key::Bits;
  const Bits* x = static_cast<const Bits*>(operand);
  Bits* out = static_cast<Bits*>(values);
  const int64_t n = lines.length;
  const Blocks blocks(lines, sizeof(Bits));
  const int64_t copied = blocks.are_rows() ? 0 : n * blocks.width;
  const int64_t memory_needed = bytes_for_top_k<Key>(n, k);
  const double time = double(blocks.width) * (is_large_part(n, k) ? 8.0 * double(n) : double(n) + 20.0 * double(k));
  for_each_part(pool, blocks.count(), time, [=](int64_t begin, int64_t end) {
    Scratch scratch(Scratch::bytes<char>(memory_needed) + Scratch::bytes<Bits>(copied) +
                    Scratch::bytes<uint32_t>(k));
    void* memory = scratch.take<char>(memory_needed);
    Bits* columns = scratch.take<Bits>(copied);
    uint32_t* positions = scratch.take<uint32_t>(k);
    for (int64_t i = begin; i < end; ++i) {
      const Block block = blocks[i];
      // The first element and the first result of the block's first line.
      const Bits* line = x + block.at;
      const int64_t inner = lines.inner;
      const int64_t to = block.at / (n * inner) * k * inner + block.at % (n * inner);
      if (copied > 0) copy_columns(line, n, inner, 1, block.columns, columns), line = columns;
      for (int64_t c = 0; c < block.columns; ++c, line += n) {
        top_k_line<DescendingKey<Key>>(line, n, k, positions, memory);
        for (int64_t j = 0; j < k; ++j) {
          indices[to + j * inner + c] = positions[j];
          out[to + j * inner + c] = line[positions[j]];
        }
      }
    }
  });
  return ffi::Error::Success();
}

ffi::Error top_k(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> values,
                 ffi::Result<ffi::Buffer<ffi::S32>> indices, int64_t axis) {
  const Lines lines = lines_along(x.dimensions(), axis);
  const int64_t k = values->dimensions()[size_t(axis)];
  if (k > lines.length || lines.length > INT32_MAX) {
    return ffi::Error::InvalidArgument("top_k: lines of " + std::to_string(lines.length) +
                                       " elements have no " + std::to_string(k) + " largest ones");
  }
  if (k == 0 || lines.count() == 0) return ffi::Error::Success();
  uint32_t* positions = reinterpret_cast<uint32_t*>(indices->typed_data());
  ffi::Error error = ffi::Error::Success();
  const bool known = with_total_order_key(x.element_type(), [&](auto key_type) {
    using Key = typename decltype(key_type)::type;
    error = top_k_of<Key>(pool, x.untyped_data(), values->untyped_data(), positions, lines, k);
  });
  if (known) return error;
  return ffi::Error::InvalidArgument("top_k: no kernel for the dtype with number " +
                                     std::to_string(int(x.element_type())));
}

}  // namespace
}  // namespace primax

PRIMAX_CPU_HANDLER(primax_cpu_top_k, primax::top_k,
                   xla::ffi::Ffi::Bind()
                       .Ctx<xla::ffi::ThreadPool>()
                       .Arg<xla::ffi::AnyBuffer>()
                       .Ret<xla::ffi::AnyBuffer>()
                       .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                       .Attr<int64_t>("axis"));
