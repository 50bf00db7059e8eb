// Squared magnitudes of the discrete Fourier transform of real rows. A plan, with the roots of unity
// of one length, is made when the program is compiled, and serves all of its executions.

#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace spectrum {

namespace ffi = xla::ffi;

static std::atomic<int> plans{0};

// The state of the handler. Executions of a program may overlap, so they only read it.
struct Plan {
  static ffi::TypeId id;
  static ffi::TypeInfo info;

  explicit Plan(int64_t n) : order(n), roots(n / 2) {
    ++plans;
    for (int64_t i = 1, j = 0; i < n; ++i) {
      int64_t bit = n >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      order[i] = j ^= bit;
    }
    for (int64_t i = 0; i < n / 2; ++i) roots[i] = std::polar(1.0, -2 * M_PI * i / n);
  }

  std::vector<int64_t> order;  // reversed bits
  std::vector<std::complex<double>> roots;
};
ffi::TypeId Plan::id = {};
ffi::TypeInfo Plan::info = ffi::MakeTypeInfo<Plan>();

// Runs once for each call in a program, with the attributes and without operands.
static ffi::ErrorOr<std::unique_ptr<Plan>> Instantiate(int64_t n) {
  if (n < 2 || (n & (n - 1)) != 0) {
    return ffi::Unexpected(ffi::Error::InvalidArgument(
        "spectrum: the length is " + std::to_string(n) + ", which is not a power of two"));
  }
  return std::make_unique<Plan>(n);
}

static ffi::Error Execute(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y, int64_t n,
                          Plan* plan) {
  if (x.dimensions().size() == 0 || x.dimensions().back() != n ||
      int64_t(y->element_count()) * n != int64_t(x.element_count()) * (n / 2 + 1)) {
    return ffi::Error::InvalidArgument("spectrum: the plan has another length");
  }
  std::vector<std::complex<double>> z(n);
  int64_t rows = x.element_count() / n;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.typed_data() + row * n;
    for (int64_t i = 0; i < n; ++i) z[i] = in[plan->order[i]];
    // Cooley and Tukey, radix 2.
    for (int64_t half = 1; half < n; half *= 2) {
      for (int64_t start = 0; start < n; start += 2 * half) {
        for (int64_t i = 0; i < half; ++i) {
          std::complex<double> odd = plan->roots[i * (n / 2 / half)] * z[start + half + i];
          z[start + half + i] = z[start + i] - odd;
          z[start + i] += odd;
        }
      }
    }
    float* out = y->typed_data() + row * (n / 2 + 1);
    for (int64_t i = 0; i <= n / 2; ++i) out[i] = static_cast<float>(std::norm(z[i]));
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_spectrum_instantiate, Instantiate,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("n"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_spectrum, Execute,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Attr<int64_t>("n")
                                  .Ctx<ffi::State<Plan>>());

extern "C" void* examples_plan_id() { return &Plan::id; }
extern "C" void* examples_plan_info() { return &Plan::info; }
extern "C" int examples_plans() { return plans; }

}  // namespace spectrum
