// How much of a long test runs: all of it if WEFT_THOROUGH is set (`make test-thorough`), else a
// part that still covers the whole. Sanitizers make everything ten times slower, and slow tests are
// not run.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

namespace weft {

inline bool is_thorough() { return std::getenv("WEFT_THOROUGH") != nullptr; }

template <class T>
T thorough_or(T all, T few) {
  return is_thorough() ? all : few;
}

// At the start of a test that is long as a whole.
#define WEFT_LONG_TEST() \
  if (!::weft::is_thorough()) GTEST_SKIP() << "long: runs where WEFT_THOROUGH is set"

// Every `nth` element of a list, starting with the first.
template <class List>
auto every(std::size_t nth, const List& list) {
  using Item = std::decay_t<decltype(*std::begin(list))>;
  std::vector<Item> some;
  std::size_t k = 0;
  for (const Item& item : list)
    if (k++ % thorough_or<std::size_t>(1, nth) == 0) some.push_back(item);
  return some;
}

}  // namespace weft
