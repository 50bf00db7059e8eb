// Numbers added to elements of an array, in place.

#include <algorithm>
#include <cstdint>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace add_at {

namespace ffi = xla::ffi;

// With input_output_aliases={0: 0}, x and y have the same memory. The handler is also right if
// they have not.
static ffi::Error AddAt(ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::S32> indices,
                        ffi::Buffer<ffi::F32> values, ffi::ResultBuffer<ffi::F32> y) {
  int64_t n = x.element_count(), count = indices.element_count();
  if (int64_t(values.element_count()) != count) {
    return ffi::Error::InvalidArgument("add_at: the numbers of indices and values differ");
  }
  // All indices are checked before the array changes.
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = indices.typed_data()[i];
    if (index < 0 || index >= n) {
      return ffi::Error(ffi::ErrorCode::kOutOfRange, "add_at: index " + std::to_string(index) +
                                                         " of " + std::to_string(n) + " elements");
    }
  }
  float* out = y->typed_data();
  if (out != x.typed_data()) std::copy_n(x.typed_data(), n, out);
  for (int64_t i = 0; i < count; ++i) out[indices.typed_data()[i]] += values.typed_data()[i];
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_add_at, AddAt,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::S32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// The address of an array, with which the tests see whether memory is shared.
static ffi::Error Address(ffi::AnyBuffer x, ffi::ResultBuffer<ffi::U32> address) {
  uint64_t number = reinterpret_cast<uint64_t>(x.untyped_data());
  address->typed_data()[0] = static_cast<uint32_t>(number >> 32);
  address->typed_data()[1] = static_cast<uint32_t>(number);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_address, Address,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::U32>>());

}  // namespace add_at
