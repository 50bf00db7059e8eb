// Native functions of the tests, compiled with the headers of the installed jaxlib.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using Floats = ffi::Buffer<ffi::F32>;
using Out = ffi::Result<Floats>;

// Multiplies by a number. The text says how to fail.
static ffi::Error Scale(Floats x, Out y, float by, std::string_view fail) {
  if (fail == "error") return ffi::Error::InvalidArgument("the pivot of column 3 is zero");
  if (fail == "throw") throw std::runtime_error("out of range");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    acme_scale, Scale,
    ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>().Attr<float>("by").Attr<std::string_view>("fail"));

// The elementwise sum and the product of x and y. One of them may have leading axes of length 1,
// or, for legacy_vectorized, none.
static ffi::Error SumAndProduct(Floats x, Floats y, Out sum, Out product) {
  size_t n = sum->element_count(), nx = x.element_count(), ny = y.element_count();
  for (size_t i = 0; i < n; ++i) {
    float a = x.typed_data()[i % nx], b = y.typed_data()[i % ny];
    sum->typed_data()[i] = a + b;
    product->typed_data()[i] = a * b;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    acme_sum_and_product, SumAndProduct,
    ffi::Ffi::Bind().Arg<Floats>().Arg<Floats>().Ret<Floats>().Ret<Floats>());
// The same, for tests that register it with a signature: registrations last as long as the process.
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    acme_declared_pair, SumAndProduct,
    ffi::Ffi::Bind().Arg<Floats>().Arg<Floats>().Ret<Floats>().Ret<Floats>());

// Adds 1 in place if the memory is the same; the second result says whether it is.
static ffi::Error Increment(Floats x, Out y, ffi::ResultBuffer<ffi::S32> same) {
  bool is_same = x.typed_data() == y->typed_data();
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + 1;
  for (size_t i = 0; i < same->element_count(); ++i) same->typed_data()[i] = is_same;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    acme_increment, Increment,
    ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>().Ret<ffi::Buffer<ffi::S32>>());

// Copies memory as it is, of any dtype.
static ffi::Error Memory(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  if (x.size_bytes() != y->size_bytes()) return ffi::Error::InvalidArgument("other sizes");
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_memory, Memory,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

// The number of an operand's dtype in XLA's enumeration, and the number of its bytes.
static ffi::Error Describe(ffi::AnyBuffer x, ffi::ResultBuffer<ffi::S32> out) {
  out->typed_data()[0] = static_cast<int32_t>(x.element_type());
  out->typed_data()[1] = static_cast<int32_t>(x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_describe, Describe,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::S32>>());

// The kinds of attributes: the sum of numbers and lengths.
static ffi::Error Attributes(ffi::Result<ffi::Buffer<ffi::F64>> out, bool flag, int64_t i,
                             int32_t narrow, double x, std::string_view text,
                             ffi::Span<const int64_t> axes, ffi::Span<const float> weights,
                             ffi::Dictionary inner) {
  auto depth = inner.get<int64_t>("depth");
  if (depth.has_error()) return ffi::Error::InvalidArgument(depth.error().message());
  double* o = out->typed_data();
  o[0] = flag;
  o[1] = i;
  o[2] = narrow;
  o[3] = x;
  o[4] = text.size();
  o[5] = axes.size();
  o[6] = weights[0];
  o[7] = *depth;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_attributes, Attributes,
                              ffi::Ffi::Bind()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<bool>("flag")
                                  .Attr<int64_t>("i")
                                  .Attr<int32_t>("narrow")
                                  .Attr<double>("x")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("axes")
                                  .Attr<ffi::Span<const float>>("weights")
                                  .Attr<ffi::Dictionary>("inner"));

// Side effects: a log of numbers. A negative number takes 20 ms before it is written.
static std::mutex mutex;
static std::vector<float> log_;

static void Write(float x) {
  if (x < 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::lock_guard<std::mutex> lock(mutex);
  log_.push_back(x);
}

static ffi::Error Note(Floats x) {
  Write(x.typed_data()[0]);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_note, Note, ffi::Ffi::Bind().Arg<Floats>());

static ffi::Error NoteInOrder(ffi::Token, Floats x, ffi::Result<ffi::Token>) {
  Write(x.typed_data()[0]);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    acme_note_in_order, NoteInOrder,
    ffi::Ffi::Bind().Arg<ffi::Token>().Arg<Floats>().Ret<ffi::Token>());

extern "C" int acme_logged(float* out, int size) {
  std::lock_guard<std::mutex> lock(mutex);
  int n = log_.size();
  for (int i = 0; i < n && i < size; ++i) out[i] = log_[i];
  log_.clear();
  return n;
}

// A handler with a state: the number of its calls.
struct Calls {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  float count = 0;
};
ffi::TypeId Calls::id = {};
ffi::TypeInfo Calls::info = ffi::MakeTypeInfo<Calls>();

extern "C" void* acme_calls_id() { return &Calls::id; }
extern "C" void* acme_calls_info() { return &Calls::info; }

static ffi::ErrorOr<std::unique_ptr<Calls>> MakeCalls() { return std::make_unique<Calls>(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_count_instantiate, MakeCalls, ffi::Ffi::BindInstantiate());

static ffi::Error Count(Out out, Calls* calls) {
  out->typed_data()[0] = ++calls->count;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_count, Count,
                              ffi::Ffi::Bind().Ret<Floats>().Ctx<ffi::State<Calls>>());

// A function of the earlier interfaces.
extern "C" void acme_plain(void* out, const void** in) {
  *static_cast<float*>(out) = 2 * *static_cast<const float*>(in[0]);
}
extern "C" void acme_text(void* out, const void** in, const char* text, size_t length) {
  *static_cast<float*>(out) = static_cast<float>(length) + *static_cast<const float*>(in[0]);
}
