// Vectors of the compiler's extension (GCC 12, Clang): no intrinsics, so every CPU has them.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "clones.h"

namespace primax {

constexpr int kVectorBytes = 32;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int kLanes = kVectorBytes / int(sizeof(T));

// Helpers with vectors are inlined into the functions with clones.
#define PRIMAX_INLINE inline __attribute__((always_inline))

template <class T>
PRIMAX_INLINE Vector<T> load(const T* from) {
  Vector<T> v;
  std::memcpy(&v, from, kVectorBytes);
  return v;
}

template <class T>
PRIMAX_INLINE void store(T* to, Vector<T> v) {
  std::memcpy(to, &v, kVectorBytes);
}

template <class T>
PRIMAX_INLINE Vector<T> repeated(T value) {
  return Vector<T>{} + value;
}

template <class T, int Shift, int... I>
PRIMAX_INLINE Vector<T> shifted(Vector<T> v, Vector<T> fill, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(fill, v, (I + kLanes<T> - Shift)...);
}

// Lane i of the result is lane i - Shift of v; the first lanes are those of `fill`.
template <class T, int Shift>
PRIMAX_INLINE Vector<T> shifted(Vector<T> v, Vector<T> fill) {
  return shifted<T, Shift>(v, fill, std::make_integer_sequence<int, kLanes<T>>());
}

template <class T, int Group, int... I>
PRIMAX_INLINE Vector<T> reversed(Vector<T> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, ((kLanes<T> / Group - 1 - I / Group) * Group + I % Group)...);
}

// Groups of lanes in reversed order.
template <class T, int Group>
PRIMAX_INLINE Vector<T> reversed(Vector<T> v) {
  return reversed<T, Group>(v, std::make_integer_sequence<int, kLanes<T>>());
}

template <class T, int Group, int... I>
PRIMAX_INLINE Vector<T> last_repeated(Vector<T> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (kLanes<T> - Group + I % Group)...);
}

// The last group of lanes, repeated.
template <class T, int Group>
PRIMAX_INLINE Vector<T> last_repeated(Vector<T> v) {
  return last_repeated<T, Group>(v, std::make_integer_sequence<int, kLanes<T>>());
}

}  // namespace primax
