#include "weft/plan/ops/exchange.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::ops {
namespace {

// The number of elements per step along `dim`, and the number of such runs.
struct Runs {
  std::int64_t outer = 1, inner = 1;

  Runs(std::span<const std::int64_t> sizes, std::size_t dim) {
    for (std::size_t i = 0; i < dim; ++i) outer *= sizes[i];
    for (std::size_t i = dim + 1; i < sizes.size(); ++i) inner *= sizes[i];
  }
};

std::size_t dim_of(const plan::Type& type, Symbol index) {
  const int at = type.position(index);
  WEFT_CHECK(at >= 0);
  return static_cast<std::size_t>(at);
}

template <class T>
T combined(T a, T b, plan::Monoid monoid, const Numbers<T>& numbers) {
  switch (monoid) {
    case plan::Monoid::max: return numbers.max(a, b);
    case plan::Monoid::min: return numbers.min(a, b);
    default: return a + b;
  }
}

}  // namespace

template <class T>
Tensor<T> block_of(const Tensor<T>& x, std::size_t dim, plan::Share share) {
  const Runs runs(x.sizes, dim);
  Tensor<T> block{x.sizes, {}};
  block.sizes[dim] = share.size;
  for (std::int64_t outer = 0; outer < runs.outer; ++outer) {
    const auto from = x.data.begin() + (outer * x.sizes[dim] + share.begin) * runs.inner;
    block.data.insert(block.data.end(), from, from + share.size * runs.inner);
  }
  return block;
}

template <class T>
Tensor<T> end_to_end(std::span<const Tensor<T>* const> tensors, std::size_t dim) {
  const Runs runs(tensors[0]->sizes, dim);
  Tensor<T> joined{tensors[0]->sizes, {}};
  joined.sizes[dim] = 0;
  for (const Tensor<T>* part : tensors) joined.sizes[dim] += part->sizes[dim];
  for (std::int64_t outer = 0; outer < runs.outer; ++outer)
    for (const Tensor<T>* part : tensors) {
      const std::int64_t run = part->sizes[dim] * runs.inner;
      const auto from = part->data.begin() + outer * run;
      joined.data.insert(joined.data.end(), from, from + run);
    }
  return joined;
}

template <class T>
Tensor<T> combination(std::span<const Tensor<T>* const> tensors, plan::Monoid monoid,
                      const Numbers<T>& numbers) {
  Tensor<T> total = *tensors[0];
  for (const Tensor<T>* addend : tensors.subspan(1)) {
    WEFT_CHECK(addend->data.size() == total.data.size());
    for (std::size_t i = 0; i < total.data.size(); ++i)
      total.data[i] = combined(total.data[i], addend->data[i], monoid, numbers);
  }
  return total;
}

template <class T>
std::vector<Tensor<T>> exchange(const Exchange& what, const plan::Type& type,
                                std::span<const Tensor<T>* const> group, const Numbers<T>& numbers) {
  const auto ranks = static_cast<std::int64_t>(group.size());
  Tensor<T> shared;
  if (what.take == Exchange::Take::combined) shared = combination(group, what.monoid, numbers);
  if (what.take == Exchange::Take::joined || what.take == Exchange::Take::bordered)
    shared = end_to_end(group, dim_of(type, what.join));
  std::vector<Tensor<T>> results;
  for (std::int64_t i = 0; i < ranks; ++i) {
    const Tensor<T>* taken = &shared;
    if (what.take == Exchange::Take::bordered) {
      const std::size_t dim = dim_of(type, what.join);
      const plan::Share block =
          plan::share_of(shared.sizes[dim], static_cast<std::int32_t>(ranks), static_cast<std::int32_t>(i));
      results.push_back(
          block_of(shared, dim, plan::with_borders(block, what.before, what.after, shared.sizes[dim])));
      continue;
    }
    if (what.take == Exchange::Take::stacked) {
      results.push_back(*group[i]);
      results.back().sizes.insert(results.back().sizes.begin(), 1);
      continue;
    }
    if (what.take == Exchange::Take::own) taken = group[i];
    if (what.take == Exchange::Take::root) taken = group[what.rank];
    if (what.take == Exchange::Take::shifted) taken = group[((i - what.rank) % ranks + ranks) % ranks];
    if (!what.keep.valid()) {
      results.push_back(*taken);
      continue;
    }
    const std::size_t dim = dim_of(type, what.keep);
    results.push_back(block_of(
        *taken, dim,
        plan::share_of(taken->sizes[dim], static_cast<std::int32_t>(ranks), static_cast<std::int32_t>(i))));
  }
  return results;
}

#define WEFT_EXCHANGE(T)                                                                              \
  template Tensor<T> block_of(const Tensor<T>&, std::size_t, plan::Share);                            \
  template Tensor<T> end_to_end(std::span<const Tensor<T>* const>, std::size_t);                      \
  template Tensor<T> combination(std::span<const Tensor<T>* const>, plan::Monoid, const Numbers<T>&); \
  template std::vector<Tensor<T>> exchange(const Exchange&, const plan::Type&,                        \
                                           std::span<const Tensor<T>* const>, const Numbers<T>&);
WEFT_EXCHANGE(float)
WEFT_EXCHANGE(double)
WEFT_EXCHANGE(Field)
WEFT_EXCHANGE(Rounded)
#undef WEFT_EXCHANGE

}  // namespace weft::ops
