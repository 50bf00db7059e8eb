// Unsigned integers in the order of the values of a dtype.
//
// `Key::of` is the key of an element's bits, `Key::raw` its inverse. Several elements may have one
// key: `Key::shared` is true for at least all but one kind of them.
#pragma once

#include <cstdint>

namespace primax {

template <class B>
constexpr B top_bit() {
  return B(B{1} << (8 * sizeof(B) - 1));
}

template <class B>
constexpr B all_bits_if_negative(B x) {
  return B(-B(x >> (8 * sizeof(B) - 1)));
}

template <class B>
struct UnsignedKey {
  using Bits = B;
  static constexpr bool kShared = false;
  static Bits of(Bits raw) { return raw; }
  static Bits raw(Bits key) { return key; }
  static bool shared(Bits) { return false; }
};

template <class B>
struct SignedKey {
  using Bits = B;
  static constexpr bool kShared = false;
  static Bits of(Bits raw) { return raw ^ top_bit<B>(); }
  static Bits raw(Bits key) { return key ^ top_bit<B>(); }
  static bool shared(Bits) { return false; }
};

// Zeros of both signs are equal, and NaNs, all equal, are last.
template <class B, B kInfinity>
struct FloatKey {
  using Bits = B;
  static constexpr bool kShared = true;
  static constexpr Bits kTop = top_bit<B>();
  static constexpr Bits kZero = kTop;

  static bool is_nan(Bits raw) { return Bits(raw & ~kTop) > kInfinity; }
  static bool is_zero(Bits raw) { return Bits(raw & ~kTop) == 0; }
  static bool shared(Bits raw) { return is_nan(raw) || raw == kTop; }

  // All without branches: signs are hard to predict.
  static Bits of(Bits raw) {
    const Bits size = raw & Bits(~kTop), sign = all_bits_if_negative(raw);
    return Bits(Bits((size ^ sign) - sign) ^ kTop) | Bits(-Bits(size > kInfinity));
  }

  static Bits raw(Bits key) {
    const Bits number = key ^ kTop, sign = all_bits_if_negative(number);
    return Bits(Bits((number ^ sign) - sign) | (sign & kTop));
  }
};

// The total order: -NaN, negative numbers, -0, +0, positive numbers, NaN.
template <class B>
struct TotalOrderKey {
  using Bits = B;
  static constexpr bool kShared = false;
  static Bits of(Bits raw) { return raw ^ (all_bits_if_negative(raw) | top_bit<B>()); }
  static Bits raw(Bits key) { return key ^ (Bits(~all_bits_if_negative(key)) | top_bit<B>()); }
  static bool shared(Bits) { return false; }
};

// The reverse of another order without shared keys.
template <class Key>
struct DescendingKey {
  using Bits = typename Key::Bits;
  static constexpr bool kShared = false;
  static Bits of(Bits raw) { return Bits(~Key::of(raw)); }
  static Bits raw(Bits key) { return Key::raw(Bits(~key)); }
  static bool shared(Bits) { return false; }
};

}  // namespace primax
