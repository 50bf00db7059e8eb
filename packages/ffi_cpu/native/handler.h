// Definition of a handler that the library exports.
#pragma once

#include "xla/ffi/api/ffi.h"

#define PRIMAX_CPU_HANDLER(name, function, binding)                                      \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* name(XLA_FFI_CallFrame*); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, binding)
