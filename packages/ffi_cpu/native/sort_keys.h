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

  static Bits of(Bits raw) {
    const Bits size = raw & Bits(~kTop);
    const Bits key = Bits(raw & kTop ? kTop - size : kTop + size);
    return size > kInfinity ? Bits(~Bits{0}) : key;
  }

  static Bits raw(Bits key) { return key >= kTop ? Bits(key - kTop) : Bits(kTop | (kTop - key)); }
};

// The total order: -NaN, negative numbers, -0, +0, positive numbers, NaN.
template <class B>
struct TotalOrderKey {
  using Bits = B;
  static constexpr bool kShared = false;
  static Bits of(Bits raw) { return raw & top_bit<B>() ? Bits(~raw) : Bits(raw | top_bit<B>()); }
  static Bits raw(Bits key) { return key & top_bit<B>() ? Bits(key ^ top_bit<B>()) : Bits(~key); }
  static bool shared(Bits) { return false; }
};

}  // namespace primax
