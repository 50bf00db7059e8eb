// Sorts of short lines of integers by a network: the same steps for all data, in vectors.
#pragma once

#include <cstdint>

namespace primax {

constexpr int64_t kLongestNetwork = 4096;

// The most integers of so many bytes that a network sorts faster than digits do: kLongestNetwork, or
// fewer where the processor has short vectors.
int64_t longest_for_network(int64_t bytes);

// The number of integers, n and what fills up the last merge, of which network_sort needs memory:
// less than 2 * n if n > 128.
int64_t words_for_network(int64_t n);

// Sorts n integers in place. The memory has words_for_network(n) words.
void network_sort(uint16_t* words, int64_t n);
void network_sort(uint32_t* words, int64_t n);
void network_sort(int64_t* words, int64_t n);

}  // namespace primax
