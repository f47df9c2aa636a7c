// weft/device/cuda/call.h -- nodes with kernels of their own: what their texts are made of.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/launch.h"

namespace weft::device::cuda {

// The node with the addresses of its operands and results: plain, where program/tasks/grouping.cpp says nothing else.
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
// A kernel over [begin, end) in strides of all threads, `i` its place; or of all blocks.
// `before` stands before the loop, `helpers` before the kernel.
std::string over_elements(const Call& call, const std::string& body, const std::string& before = {},
                          std::string_view helpers = {});
std::string over_blocks(const Call& call, const std::string& body, std::string_view helpers = {});
Made elements_kernel(const Call& call, const std::string& text, std::int64_t elements);
Made blocks_kernel(const Call& call, const std::string& text, std::int64_t items);

// Loops, slowest first, by what counts them; the statements that take `of` apart and move offsets on.
struct Walked {
  std::int64_t size = 1;
  std::vector<std::int64_t> strides;  // one for each offset
};
// In numbers of that type.
std::string walk(const std::string& of, const std::vector<Walked>& loops,
                 const std::vector<std::string>& offsets, std::string_view type = "long long");
// The loops that an index of the type is at the place, one or more where it lies apart; one offset.
std::vector<Walked> row_parts(const program::Place& place, const plan::Type& type, Symbol index);
// The narrowest type that holds every offset into the operands and results: divisions by it are far quicker.
std::string_view offset_type(const Call& call);
// How many elements of the operand and the result, side by side in both along `index`, may move together.
std::int64_t pack_along(const Call& call, std::size_t operand, Symbol index);

// How far an index moves in a value that lies in its type's own order; 0 where it lacks the index.
std::int64_t plain_stride(const plan::Type& type, Symbol index);

// By the operator; each answers null where the node is none of its own.
Made make_elementwise(const Call& call);
Made make_contraction(const Call& call);
Made make_classes(const Call& call);  // cross entropy, labelled
Made make_table(const Call& call);    // gather
Made make_scatter(const Call& call);  // scatter-add
Made make_moved(const Call& call);    // concat, pad, rotary, dropout
Made make_routing(const Call& call);  // top-k, slot, recurrence
Made make_image(const Call& call);    // convolutions
Made make_pool(const Call& call);
Made make_batch_norm(const Call& call);
Made make_attention(const Call& call);  // and its gradient

}  // namespace weft::device::cuda
