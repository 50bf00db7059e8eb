// Loops over XLA's own threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace primax {

// Work below this time is not divided: waking a thread costs about as much.
constexpr double kShortestTask = 20'000.0;  // ns

// Calls body(begin, end) for parts of [0, count), on the calling thread and on those of the pool.
//
// `nanoseconds` is the estimated time of one of the `count` items. The caller works too, and waits
// only for parts that another thread has begun: no deadlock if every thread of the pool is in a
// handler. A pool has the functions of xla::ffi::ThreadPool.
//
// Throws std::bad_alloc if a part does, after all parts have ended; no other exception may occur.
template <class Pool, class Body>
void for_each_part(Pool& pool, int64_t count, double nanoseconds, Body body) {
  const int64_t smallest = std::max<int64_t>(1, int64_t(kShortestTask / std::max(nanoseconds, 1e-3)));
  const int64_t threads = std::min(pool.num_threads(), count / smallest);
  if (threads < 2) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  // Four parts a thread balance the load of threads that begin late.
  const int64_t size = std::max(smallest, (count + 4 * threads - 1) / (4 * threads));
  struct State {
    State(Body body, int64_t count, int64_t size)
        : body(std::move(body)), count(count), size(size), parts((count + size - 1) / size) {}

    Body body;
    int64_t count, size, parts;
    std::atomic<int64_t> next{0}, ended{0};
    std::atomic<bool> out_of_memory{false};
    std::mutex mutex;
    std::condition_variable all_ended;
  };
  // Shared, because a thread of the pool may begin after the loop has ended.
  auto state = std::make_shared<State>(std::move(body), count, size);
  auto work = [state] {
    for (;;) {
      const int64_t part = state->next.fetch_add(1);
      if (part >= state->parts) return;
      const int64_t begin = part * state->size;
      try {
        state->body(begin, std::min(begin + state->size, state->count));
      } catch (const std::bad_alloc&) {
        state->out_of_memory = true;
      }
      if (state->ended.fetch_add(1) + 1 == state->parts) {
        std::lock_guard<std::mutex> lock(state->mutex);
        state->all_ended.notify_all();
      }
    }
  };
  for (int64_t i = 1; i < threads; ++i) pool.Schedule(decltype(work)(work));
  work();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->all_ended.wait(lock, [&] { return state->ended.load() == state->parts; });
  if (state->out_of_memory) throw std::bad_alloc();
}

}  // namespace primax
