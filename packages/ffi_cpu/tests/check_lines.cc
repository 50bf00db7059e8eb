// Sorts and selections of lines on data that defeat shortcuts, for runs with sanitizers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "blocks.h"
#include "line_sort.h"
#include "line_top_k.h"
#include "parallel.h"
#include "scratch.h"

namespace {

using namespace primax;

void require(bool holds, const char* what, int64_t n) {
  if (holds) return;
  std::printf("%s: wrong for %lld elements\n", what, (long long)n);
  std::exit(1);
}

// Random bits; few values; equal upper bits; equal lower bits; sorted; reversed; one odd element.
template <class Bits>
std::vector<Bits> elements(int64_t n, int kind, std::mt19937_64& random) {
  std::vector<Bits> x(n);
  for (int64_t i = 0; i < n; ++i) {
    const Bits r = Bits(random());
    const int width = 8 * sizeof(Bits);
    switch (kind) {
      case 0: x[i] = r; break;
      case 1: x[i] = r % 3; break;
      case 2: x[i] = r % Bits(1 << std::min(15, width / 2)); break;
      case 3: x[i] = Bits(r % 5) << (width - 3) | Bits(r >> 8) % 64; break;
      case 4: x[i] = Bits(i / 2); break;
      case 5: x[i] = Bits(n - i); break;
      default: x[i] = i == n / 2 ? Bits(~Bits{0}) : Bits{7}; break;
    }
  }
  return x;
}

template <class Key>
void check(int64_t n, int kind, std::mt19937_64& random) {
  using Bits = typename Key::Bits;
  const std::vector<Bits> x = elements<Bits>(n, kind, random);
  const auto less = [&](uint32_t a, uint32_t b) { return Key::of(x[a]) < Key::of(x[b]); };
  std::vector<uint32_t> order(n), positions(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), less);

  std::vector<Bits> memory(words_to_sort<Key>(n)), out(n), taken(n);
  sort_line<Key>(x.data(), n, out.data(), memory.data());
  for (int64_t i = 0; i < n; ++i) require(out[i] == x[order[i]], "sort_line", n);

  std::vector<uint64_t> words(words_to_order(n));
  const bool written = order_line<Key>(x.data(), n, true, positions.data(), taken.data(), words.data());
  require(positions == order, "order_line", n);
  for (int64_t i = 0; written && i < n; ++i) require(taken[i] == x[order[i]], "order_line", n);

  std::vector<uint32_t> payload(n), moved(n);
  for (int64_t i = 0; i < n; ++i) payload[i] = uint32_t(i * 2654435761u);
  if (sort_pairs<Key>(x.data(), payload.data(), n, taken.data(), moved.data(), words.data(), nullptr)) {
    for (int64_t i = 0; i < n; ++i) require(taken[i] == x[order[i]], "sort_pairs", n);
    for (int64_t i = 0; i < n; ++i) require(moved[i] == payload[order[i]], "payloads of sort_pairs", n);
  }

  // Positions in another order before: equal elements stay in that order.
  for (int64_t i = 0; i < n; ++i) positions[i] = uint32_t(n - 1 - i);
  std::vector<uint32_t> other = positions;
  std::stable_sort(other.begin(), other.end(), less);
  order_line<Key>(x.data(), n, false, positions.data(), nullptr, words.data());
  require(positions == other, "order_line of positions", n);

  if constexpr (!Key::kShared) {
    for (int64_t k : {int64_t{1}, n / 9, n / 3, n}) {
      if (k == 0) continue;
      std::vector<uint64_t> bytes(bytes_for_top_k<Key>(n, k) / 8 + 1);
      std::vector<uint32_t> first(k);
      top_k_line<Key>(x.data(), n, k, first.data(), bytes.data());
      require(std::equal(first.begin(), first.end(), order.begin()), "top_k_line", n);
    }
  }
}

struct TestPool {
  std::vector<std::thread> threads;

  int64_t num_threads() const { return 5; }
  template <class F>
  void Schedule(F&& f) {
    threads.emplace_back(std::forward<F>(f));
  }
  ~TestPool() {
    for (std::thread& t : threads) t.join();
  }
};

void check_threads() {
  for (int64_t count : {0, 1, 7, 1000}) {
    std::vector<int> calls(count);
    TestPool pool;
    for_each_part(pool, count, 1e5, [&](int64_t begin, int64_t end) {
      Scratch scratch(Scratch::bytes<int>(end - begin));
      int* copied = scratch.take<int>(end - begin);
      for (int64_t i = begin; i < end; ++i) copied[i - begin] = ++calls[i];
    });
    for (int64_t i = 0; i < count; ++i) require(calls[i] == 1, "for_each_part", count);
  }
  const int64_t too_much = int64_t{1} << 60;
  try {
    TestPool pool;
    for_each_part(pool, 8, 1e5, [=](int64_t, int64_t) { Scratch scratch(too_much); });
    require(false, "Scratch", too_much);
  } catch (const std::bad_alloc&) {
  }
}

// One line, sorted by several threads.
template <class Key>
void check_long(int64_t n, int kind, std::mt19937_64& random) {
  using Bits = typename Key::Bits;
  const std::vector<Bits> x = elements<Bits>(n, kind, random);
  const auto less = [&](uint32_t a, uint32_t b) { return Key::of(x[a]) < Key::of(x[b]); };
  std::vector<uint32_t> order(n), positions(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), less);
  const auto run = [](int64_t count, double nanoseconds, FunctionRef<int64_t, int64_t> body) {
    TestPool pool;
    for_each_part(pool, count, nanoseconds, body);
  };
  const Threads threads{5, decltype(Threads::run)(run)};
  std::vector<Bits> memory(words_to_sort<Key>(n)), out(n), taken(n);
  sort_line<Key>(x.data(), n, out.data(), memory.data(), &threads);
  for (int64_t i = 0; i < n; ++i) require(out[i] == x[order[i]], "sort_line in threads", n);
  std::vector<uint64_t> words(words_to_order(n));
  order_line<Key>(x.data(), n, true, positions.data(), taken.data(), words.data(), &threads);
  require(positions == order, "order_line in threads", n);
}

#ifndef ONLY_THREADS
template <class... Keys>
void check_all(std::initializer_list<int64_t> sizes) {
  std::mt19937_64 random(1);
  for (int64_t n : sizes) {
    for (int kind = 0; kind < 7; ++kind) (check<Keys>(n, kind, random), ...);
  }
}
#endif

}  // namespace

int main() {
  check_threads();
  std::mt19937_64 random(2);
  for (int kind : {0, 1, 2, 6}) {
    check_long<FloatKey<uint32_t, 0x7f800000>>(300001, kind, random);
    check_long<SignedKey<uint64_t>>(200000, kind, random);
  }
#ifndef ONLY_THREADS
  check_all<UnsignedKey<uint8_t>, FloatKey<uint32_t, 0x7f800000>, SignedKey<uint64_t>>(
      {1, 2, 31, 33, 64, 100, 1000, 5000, 70001, 300000});
  // Lengths of networks: one block, parts of blocks, merges with nothing behind.
  check_all<FloatKey<uint16_t, 0x7c00>, FloatKey<uint32_t, 0x7f800000>, SignedKey<uint64_t>>(
      {65, 127, 128, 129, 255, 256, 257, 383, 513, 1025, 1500, 2048, 2049, 4095, 4096, 4097});
  check_all<DescendingKey<TotalOrderKey<uint32_t>>>({1, 33, 1000, 20000});
#endif
  std::puts("right");
}
