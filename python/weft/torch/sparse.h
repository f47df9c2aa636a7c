// weft/torch/sparse.h -- all-reduce of a sparse tensor: all ranks gather the elements of all ranks.
#pragma once
#include <ATen/ATen.h>

#include "collectives.h"

namespace weft_torch {
namespace collective {

inline at::Tensor gather_rows(Group& group, const at::Tensor& rows, const std::vector<int64_t>& counts,
                              int64_t all, Milliseconds timeout) {
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes[0] = all;
  at::Tensor gathered = at::empty(sizes, rows.options());
  const Element element = element_of(rows);
  int64_t row = element.per_item;
  for (size_t i = 1; i < sizes.size(); ++i) row *= sizes[i];
  std::vector<int64_t> elements;
  for (const int64_t count : counts) elements.push_back(count * row);
  weft_call call = make(WEFT_ALL_GATHER, rows.data_ptr(), gathered.data_ptr(), 0, element.type, timeout);
  call.counts = elements.data();
  call.counts_length = static_cast<int64_t>(elements.size());
  group.run(call, "all_reduce (sparse)");
  return gathered;
}

inline at::Tensor all_reduce_sparse(Group& group, const at::Tensor& given, Milliseconds timeout) {
  const at::Tensor tensor = given.coalesce();
  // Sizes first: ranks with other dimensions are refused by all ranks, with both sizes.
  constexpr int64_t kMostDimensions = 16;
  std::vector<int64_t> mine(kMostDimensions + 3, 0);
  require(tensor.dim() <= kMostDimensions, "weft all_reduce: a sparse tensor has at most ", kMostDimensions,
          " dimensions, found ", tensor.dim());
  mine[0] = tensor._nnz();
  mine[1] = tensor.sparse_dim();
  mine[2] = tensor.dense_dim();
  for (int64_t i = 0; i < tensor.dim(); ++i) mine[static_cast<size_t>(i) + 3] = tensor.size(i);
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(group.size()));
  group.run(
      make(WEFT_ALL_GATHER, mine.data(), all.data(), static_cast<int64_t>(mine.size()), WEFT_I64, timeout),
      "all_reduce (sparse)");
  std::vector<int64_t> counts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank;
    counts.push_back(*first);
    require(std::equal(first + 1, first + static_cast<std::ptrdiff_t>(mine.size()), all.begin() + 1),
            "weft all_reduce: the sparse tensors of ranks 0 and ", rank, " have different sizes: ",
            at::IntArrayRef(&*(all.begin() + 3), static_cast<size_t>(all[1] + all[2])), " and ",
            at::IntArrayRef(&*(first + 3), static_cast<size_t>(first[1] + first[2])));
  }
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const at::Tensor indices =
      gather_rows(group, tensor.indices().t().contiguous(), counts, sum, timeout).t().contiguous();
  const at::Tensor values = gather_rows(group, tensor.values().contiguous(), counts, sum, timeout);
  return at::sparse_coo_tensor(indices, values, tensor.sizes()).coalesce();
}

}  // namespace collective
}  // namespace weft_torch
