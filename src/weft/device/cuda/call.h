// weft/device/cuda/call.h -- kernels for single nodes: helpers to generate their source.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"

namespace weft::device::cuda {

// A node with the addresses of its operands and results, contiguous unless
// program/tasks/grouping.cpp says otherwise.
struct Call {
  Functions& gpu;
  const program::OperatorCall& what;
  plan::NodeView node;
  std::vector<DevicePointer> in, out;

  // All operands, then all results.
  std::vector<DevicePointer> pointers() const;
};

using Made = Result<std::unique_ptr<Kernel>>;

// "const float* a, const int* b, float* r0, ": operands are a, b, c.., results r0, r1..
std::string parameters(const Call& call);
// A kernel with a grid-stride loop over [begin, end), by threads or by blocks, with index `i`.
// `before` is inserted before the loop, `helpers` before the kernel.
std::string over_elements(const Call& call, const std::string& body, const std::string& before = {},
                          std::string_view helpers = {});
std::string over_blocks(const Call& call, const std::string& body, std::string_view helpers = {});
Made elements_kernel(const Call& call, const std::string& text, std::int64_t elements);
Made blocks_kernel(const Call& call, const std::string& text, std::int64_t items);

// A loop and its stride for each offset; loops are listed slowest first. walk() writes the
// statements that decompose `of` into loop indices and advance the offsets.
struct IndexLoop {
  std::int64_t size = 1;
  std::vector<std::int64_t> strides;  // one per offset
};
// Index arithmetic uses `type`.
std::string walk(const std::string& of, const std::vector<IndexLoop>& loops,
                 const std::vector<std::string>& offsets, std::string_view type = "long long");
// The loops that cover an index at the place: several if it is not evenly strided. They have one
// offset.
std::vector<IndexLoop> row_parts(const program::Place& place, const plan::Type& type, Symbol index);
// The narrowest type that holds every offset into the operands and results: its divisions are much
// faster.
std::string_view offset_type(const Call& call);
// How many elements, contiguous along `index` in both operand and result, can be moved together.
std::int64_t pack_along(const Call& call, std::size_t operand, Symbol index);

// The stride of an index in a contiguous value of this type; 0 if the type lacks the index.
std::int64_t plain_stride(const plan::Type& type, Symbol index);

// One maker per group of operators; returns null if the node is not in its group.
Made make_elementwise(const Call& call);
Made make_contraction(const Call& call);
Made make_classes(const Call& call);        // cross entropy, labelled
Made make_table(const Call& call);          // gather
Made make_scatter(const Call& call);        // scatter-add
Made make_data_movement(const Call& call);  // concat, pad, rotary, dropout
Made make_routing(const Call& call);        // top-k, slot, recurrence
Made make_image(const Call& call);          // convolutions
Made make_pool(const Call& call);
Made make_batch_norm(const Call& call);
Made make_attention(const Call& call);  // and its gradient

}  // namespace weft::device::cuda
