// Sorted rows, with XLA's own threads.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace sort_rows {

namespace ffi = xla::ffi;

// Calls f(0), ..., f(count - 1), each once, on the threads of the pool and on this one.
//
// This thread works too, and in the end waits only for tasks that have begun: they run, so they
// finish. Tasks that have not begun may never do so while this thread waits, because all threads
// of the pool may be in handlers like this one. They find the work closed and return at once.
class Work : public std::enable_shared_from_this<Work> {
 public:
  Work(int64_t count, std::function<void(int64_t)> f) : count_(count), f_(std::move(f)) {}

  void Run(ffi::ThreadPool& pool, int64_t max_helpers) {
    int64_t helpers = std::min({pool.num_threads(), max_helpers, count_ - 1});
    // Each task has a share in this object, which it may outlive the call by.
    for (int64_t i = 0; i < helpers; ++i) pool.Schedule([work = shared_from_this()] { work->Help(); });
    Process();
    std::unique_lock<std::mutex> lock(mutex_);
    closed_ = true;
    finished_.wait(lock, [this] { return running_ == 0; });
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  void Help() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) return;
      ++running_;
    }
    Process();
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) finished_.notify_all();
  }

  // An exception must not leave a task: the caller throws it.
  void Process() noexcept {
    try {
      for (int64_t i; (i = next_.fetch_add(1)) < count_;) f_(i);
    } catch (...) {
      next_ = count_;
      std::lock_guard<std::mutex> lock(mutex_);
      if (!exception_) exception_ = std::current_exception();
    }
  }

  const int64_t count_;
  const std::function<void(int64_t)> f_;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  int64_t running_ = 0;
  bool closed_ = false;
  std::exception_ptr exception_;
};

// Numbers in order, and NaN after them: `<` alone is no order of NaN.
static bool Before(float a, float b) { return a < b || (b != b && a == a); }

static ffi::Error Sort(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                       ffi::ThreadPool pool) {
  if (x.dimensions().size() == 0) return ffi::Error::InvalidArgument("sort_rows: x has no axis");
  if (x.element_count() == 0) return ffi::Error::Success();
  int64_t n = x.dimensions().back(), rows = x.element_count() / n;
  // A task sorts about 10 000 numbers: smaller ones cost more than they gain.
  int64_t rows_per_task = std::max<int64_t>(1, 10000 / n);
  int64_t tasks = (rows + rows_per_task - 1) / rows_per_task;
  auto sort_some = [&](int64_t task) {
    int64_t end = std::min(rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end; ++row) {
      float* out = y->typed_data() + row * n;
      std::copy_n(x.typed_data() + row * n, n, out);
      std::sort(out, out + n, Before);
    }
  };
  std::make_shared<Work>(tasks, sort_some)->Run(pool, tasks - 1);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(examples_sort_rows, Sort,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ctx<ffi::ThreadPool>());

}  // namespace sort_rows
