// Uninitialised memory that a thread keeps for its next call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace primax {

// All threads together keep at most this much; what is beyond is freed after each call.
constexpr int64_t kKeptScratch = int64_t{64} << 20;

namespace internal {

inline std::atomic<int64_t> kept_scratch{0};

struct KeptScratch {
  void* data = nullptr;
  int64_t size = 0;

  ~KeptScratch() { release(); }

  void release() {
    if (data == nullptr) return;
    kept_scratch.fetch_sub(size);
    std::free(data);
    data = nullptr;
    size = 0;
  }
};

inline thread_local KeptScratch this_threads_scratch;

}  // namespace internal

// Memory for one call, aligned for every type. Throws std::bad_alloc if there is none.
//
// The thread's kept memory belongs to the object while it lives, so that objects can be nested.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : size_(bytes) {
    auto& kept = internal::this_threads_scratch;
    if (kept.size >= bytes && kept.data != nullptr) {
      internal::kept_scratch.fetch_sub(kept.size);
      data_ = std::exchange(kept.data, nullptr);
      size_ = std::exchange(kept.size, 0);
      return;
    }
    size_ = (bytes + 4095) / 4096 * 4096 + 4096;
    data_ = std::malloc(size_t(size_));
    if (data_ == nullptr) throw std::bad_alloc();
  }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  ~Scratch() {
    auto& kept = internal::this_threads_scratch;
    if (kept.size < size_) {
      kept.release();
      if (internal::kept_scratch.fetch_add(size_) + size_ <= kKeptScratch) {
        kept.data = data_;
        kept.size = size_;
        return;
      }
      internal::kept_scratch.fetch_sub(size_);
    }
    std::free(data_);
  }

  // The next `count` elements.
  template <class T>
  T* take(int64_t count) {
    used_ = (used_ + 63) / 64 * 64;
    T* result = reinterpret_cast<T*>(static_cast<char*>(data_) + used_);
    used_ += count * int64_t(sizeof(T));
    return result;
  }

  // The size that `take<T>(count)` needs.
  template <class T>
  static int64_t bytes(int64_t count) {
    return count * int64_t(sizeof(T)) + 64;
  }

 private:
  void* data_ = nullptr;
  int64_t size_ = 0, used_ = 0;
};

}  // namespace primax
