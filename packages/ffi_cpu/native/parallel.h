// Loops over XLA's own threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "function_ref.h"

namespace primax {

// Work below this time is not divided: waking a thread costs about as much.
constexpr double kShortestTask = 20'000.0;  // ns

namespace internal {

// The parts of [0, count) that threads take one after another.
struct Parts {
  Parts(FunctionRef<int64_t, int64_t> body, int64_t count, int64_t size)
      : body(body), count(count), size(size), parts((count + size - 1) / size) {}

  void work();
  void wait();  // for all parts to have ended; throws std::bad_alloc if one did

  FunctionRef<int64_t, int64_t> body;
  int64_t count, size, parts;
  std::atomic<int64_t> next{0}, ended{0};
  std::atomic<bool> out_of_memory{false};
  std::mutex mutex;
  std::condition_variable all_ended;
};

inline void Parts::work() {
  for (;;) {
    const int64_t part = next.fetch_add(1);
    if (part >= parts) return;
    const int64_t begin = part * size;
    try {
      body(begin, std::min(begin + size, count));
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
    if (ended.fetch_add(1) + 1 == parts) {
      std::lock_guard<std::mutex> lock(mutex);
      all_ended.notify_all();
    }
  }
}

inline void Parts::wait() {
  std::unique_lock<std::mutex> lock(mutex);
  all_ended.wait(lock, [&] { return ended.load() == parts; });
  if (out_of_memory) throw std::bad_alloc();
}

// See for_each_part; `schedule` lets another thread work at the parts.
inline void run_parts(int64_t num_threads, FunctionRef<const std::shared_ptr<Parts>&> schedule,
                      int64_t count, double nanoseconds, FunctionRef<int64_t, int64_t> body) {
  const int64_t smallest = std::max<int64_t>(1, int64_t(kShortestTask / std::max(nanoseconds, 1e-3)));
  const int64_t threads = std::min(num_threads, count / smallest);
  if (threads < 2) {
    if (count > 0) body(0, count);
    return;
  }
  // Four parts a thread balance the load of threads that begin late.
  const int64_t size = std::max(smallest, (count + 4 * threads - 1) / (4 * threads));
  // Shared, because a thread of the pool may begin after the loop, and the body, have ended.
  const auto parts = std::make_shared<Parts>(body, count, size);
  for (int64_t i = 1; i < threads; ++i) schedule(parts);
  parts->work();
  parts->wait();
}

template <class Pool>
struct Schedule {
  Pool& pool;
  void operator()(const std::shared_ptr<Parts>& parts) const {
    pool.Schedule([parts] { parts->work(); });
  }
};

}  // namespace internal

// Calls body(begin, end) for parts of [0, count), on the calling thread and on those of the pool.
//
// `nanoseconds` is the estimated time of one of the `count` items. The caller works too, and waits
// only for parts that another thread has begun: no deadlock if every thread of the pool is in a
// handler. A pool has the functions of xla::ffi::ThreadPool.
//
// Throws std::bad_alloc if a part does, after all parts have ended; no other exception may occur.
template <class Pool, class Body>
void for_each_part(Pool& pool, int64_t count, double nanoseconds, const Body& body) {
  const internal::Schedule<Pool> schedule{pool};
  using Schedule = FunctionRef<const std::shared_ptr<internal::Parts>&>;
  internal::run_parts(pool.num_threads(), Schedule(schedule), count, nanoseconds,
                      FunctionRef<int64_t, int64_t>(body));
}

}  // namespace primax
