// Elements that are stored in 8 or 16 bits, but computed with in 32.
#pragma once

#include <cstdint>
#include <cstring>

#include "vectors.h"

namespace primax {

PRIMAX_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

PRIMAX_INLINE float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

struct Bfloat16 {
  uint16_t bits;

  Bfloat16() = default;
  PRIMAX_INLINE explicit Bfloat16(float x) {
    const uint32_t b = bits_of(x);
    const uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
    bits = uint16_t((b & 0x7fffffff) > 0x7f800000 ? b >> 16 | 0x40 : rounded);
  }
  PRIMAX_INLINE explicit operator float() const { return float_of(uint32_t(bits) << 16); }
};

// Without denormal floats on the way, which XLA's threads flush to zero.
struct Half {
  uint16_t bits;

  Half() = default;
  PRIMAX_INLINE explicit Half(float x) {
    const uint32_t sign = bits_of(x) >> 16 & 0x8000, b = bits_of(x) & 0x7fffffff;
    // Below 2**-14 the addition rounds to multiples of 2**-24.
    const uint32_t small = bits_of(float_of(b) + 0.5f) - 0x3f000000;
    const uint32_t normal = (b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13;
    const uint32_t large = b > 0x7f800000 ? 0x7e00 | (b >> 13 & 0x3ff) : 0x7c00;
    bits = uint16_t(sign | (b < 0x38800000 ? small : b < 0x47800000 ? normal : large));
  }
  PRIMAX_INLINE explicit operator float() const {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, b = bits & 0x7fff;
    const uint32_t small = bits_of(float_of(0x38800000 | b << 13) - float_of(0x38800000));
    const uint32_t normal = (b << 13) + 0x38000000;
    const uint32_t large = (b << 13) | 0x7f800000;
    return float_of(sign | (b < 0x400 ? small : b < 0x7c00 ? normal : large));
  }
};

// Bits of a narrow element, in the upper ones of 32.
template <class E>
struct Upper {
  E bits;

  static constexpr int kShift = 32 - 8 * int(sizeof(E));
  Upper() = default;
  PRIMAX_INLINE explicit Upper(int32_t x) : bits(E(x >> kShift)) {}
  PRIMAX_INLINE explicit operator int32_t() const { return int32_t(uint32_t(bits) << kShift); }
};

}  // namespace primax
