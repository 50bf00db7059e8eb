// Native functions of test_native.py, compiled with the headers of the installed jaxlib.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

XLA_FFI_REGISTER_ENUM_ATTR_DECODING(xla::ffi::DataType);

using Doubles = ffi::Result<ffi::Buffer<ffi::F64>>;
using Floats = ffi::Buffer<ffi::F32>;

// Writes each attribute, or the sum of its elements, to the result.
struct Reader {
  ffi::Dictionary& attributes;
  double* out;
  std::string error;

  template <typename T>
  void Scalar(const char* name) {
    auto value = attributes.get<T>(name);
    if (value.has_error()) {
      error += std::string(name) + ": " + value.error().message() + "; ";
    } else {
      *out++ = static_cast<double>(*value);
    }
  }

  template <typename T>
  void Array(const char* name) {
    auto value = attributes.get<ffi::Span<const T>>(name);
    if (value.has_error()) {
      error += std::string(name) + ": " + value.error().message() + "; ";
    } else {
      double sum = 0;
      for (T x : *value) sum += static_cast<double>(x);
      *out++ = sum;
    }
  }
};

static ffi::Error Attributes(Doubles out, ffi::Dictionary attributes) {
  Reader read{attributes, out->typed_data(), ""};
  read.Scalar<bool>("b");
  read.Scalar<int8_t>("i8");
  read.Scalar<int16_t>("i16");
  read.Scalar<int32_t>("i32");
  read.Scalar<int64_t>("i64");
  read.Scalar<uint8_t>("u8");
  read.Scalar<uint16_t>("u16");
  read.Scalar<uint32_t>("u32");
  read.Scalar<uint64_t>("u64");
  read.Scalar<float>("f32");
  read.Scalar<double>("f64");
  read.Scalar<ffi::DataType>("dtype");
  read.Array<int8_t>("ai8");
  read.Array<int16_t>("ai16");
  read.Array<int32_t>("ai32");
  read.Array<int64_t>("ai64");
  read.Array<uint8_t>("au8");
  read.Array<uint16_t>("au16");
  read.Array<uint32_t>("au32");
  read.Array<uint64_t>("au64");
  read.Array<float>("af32");
  read.Array<double>("af64");
  read.Array<uint8_t>("flags");
  read.Array<int64_t>("empty");
  auto text = attributes.get<std::string_view>("text");
  auto inner = attributes.get<ffi::Dictionary>("inner");
  if (text.has_error() || inner.has_error()) return ffi::Error::Internal("text or inner");
  *read.out++ = static_cast<double>(text->size());
  auto deep = inner->get<ffi::Dictionary>("deep");
  if (deep.has_error()) return ffi::Error::Internal("deep");
  Reader below{*deep, read.out, ""};
  below.Scalar<int32_t>("leaf");
  read.error += below.error;
  return read.error.empty() ? ffi::Error::Success() : ffi::Error::Internal(read.error);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_attributes, Attributes,
                              ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::F64>>().Attrs());

// Multiplies by a number; reports in a second result whether the memory is the operand's.
static ffi::Error Scale(Floats x, ffi::Result<Floats> y, ffi::ResultBuffer<ffi::S32> same,
                        float by) {
  same->typed_data()[0] = x.typed_data() == y->typed_data();
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    acme_scale, Scale,
    ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>().Ret<ffi::Buffer<ffi::S32>>().Attr<float>("by"));

// Copies the memory of a matrix to a vector, as it is.
static ffi::Error Memory(Floats x, ffi::Result<Floats> y) {
  std::memcpy(y->typed_data(), x.typed_data(), x.element_count() * sizeof(float));
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_memory, Memory, ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>());

static ffi::Error Fail(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  return ffi::Error::InvalidArgument("the pivot of column 3 is zero");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_fail, Fail,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

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

static ffi::Error Count(ffi::Result<Floats> out, Calls* calls) {
  out->typed_data()[0] = ++calls->count;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(acme_count, Count,
                              ffi::Ffi::Bind().Ret<Floats>().Ctx<ffi::State<Calls>>());

// Functions of the earlier interfaces.
extern "C" void acme_plain(void* out, const void** in) {
  *static_cast<float*>(out) = 2 * *static_cast<const float*>(in[0]);
}
extern "C" void acme_text(void* out, const void** in, const char* text, size_t length) {
  *static_cast<float*>(out) = static_cast<float>(length) + *static_cast<const float*>(in[0]);
}
