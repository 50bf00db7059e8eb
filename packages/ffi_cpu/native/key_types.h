// The keys of XLA's dtypes.
#pragma once

#include <cstdint>

#include "sort_keys.h"
#include "xla/ffi/api/ffi.h"

namespace primax {

template <class Key>
struct KeyType {
  using type = Key;
};

// Calls f(KeyType<Key>) with the key of an integer dtype; false for other dtypes.
template <class F>
bool with_integer_key(xla::ffi::DataType dtype, const F& f) {
  using xla::ffi::DataType;
  switch (dtype) {
    case DataType::PRED:
    case DataType::U8: f(KeyType<UnsignedKey<uint8_t>>()); return true;
    case DataType::U16: f(KeyType<UnsignedKey<uint16_t>>()); return true;
    case DataType::U32: f(KeyType<UnsignedKey<uint32_t>>()); return true;
    case DataType::U64: f(KeyType<UnsignedKey<uint64_t>>()); return true;
    case DataType::S8: f(KeyType<SignedKey<uint8_t>>()); return true;
    case DataType::S16: f(KeyType<SignedKey<uint16_t>>()); return true;
    case DataType::S32: f(KeyType<SignedKey<uint32_t>>()); return true;
    case DataType::S64: f(KeyType<SignedKey<uint64_t>>()); return true;
    default: return false;
  }
}

// The same with floats of 32 and 64 bits alone, in sort order.
template <class F>
bool with_float_key(xla::ffi::DataType dtype, const F& f) {
  using xla::ffi::DataType;
  switch (dtype) {
    case DataType::F32: f(KeyType<FloatKey<uint32_t, 0x7f800000>>()); return true;
    case DataType::F64: f(KeyType<FloatKey<uint64_t, 0x7ff0000000000000>>()); return true;
    default: return false;
  }
}

// The same with integers and all floats, in sort order.
template <class F>
bool with_sort_key(xla::ffi::DataType dtype, const F& f) {
  using xla::ffi::DataType;
  switch (dtype) {
    case DataType::F16: f(KeyType<FloatKey<uint16_t, 0x7c00>>()); return true;
    case DataType::BF16: f(KeyType<FloatKey<uint16_t, 0x7f80>>()); return true;
    default: return with_float_key(dtype, f) || with_integer_key(dtype, f);
  }
}

// The same with integers and all floats, in total order.
template <class F>
bool with_total_order_key(xla::ffi::DataType dtype, const F& f) {
  using xla::ffi::DataType;
  switch (dtype) {
    case DataType::F16:
    case DataType::BF16: f(KeyType<TotalOrderKey<uint16_t>>()); return true;
    case DataType::F32: f(KeyType<TotalOrderKey<uint32_t>>()); return true;
    case DataType::F64: f(KeyType<TotalOrderKey<uint64_t>>()); return true;
    default: return with_integer_key(dtype, f);
  }
}

}  // namespace primax
