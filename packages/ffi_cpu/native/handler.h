// Definition of a handler that the library exports.
#pragma once

#include <new>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace primax {

// A function of a handler, whose lack of memory is an error of the call: XLA has no exceptions.
template <auto kFunction>
struct Guarded;

template <class... Args, xla::ffi::Error (*kFunction)(Args...)>
struct Guarded<kFunction> {
  static xla::ffi::Error call(Args... args) {
    try {
      return kFunction(std::move(args)...);
    } catch (const std::bad_alloc&) {
      return xla::ffi::Error(xla::ffi::ErrorCode::kResourceExhausted,
                             "out of memory for intermediate results");
    }
  }
};

}  // namespace primax

#define PRIMAX_CPU_HANDLER(name, function, binding)                                          \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* name(XLA_FFI_CallFrame*); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, primax::Guarded<function>::call, binding)
