// weft/formats/model_file.h -- a model graph as its file states it: values by number, dims by place.
//
//   value 0 .. inputs-1                    inputs
//   .. + weights                           weights
//   .. + nodes                             one for each node, in the file's order, which runs
//
// What is read has good form: operands are earlier values, ranks and axes fit the operation, and
// elementwise operands and reshapes have sizes that fit. Whether the sizes of a node's result follow
// from its operands is seen when the plan is built.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

enum class ModelOperation : std::uint8_t {
  matmul,         // a[.., m, k], b[.., k, n]; b may lack the leading dims
  conv2d,         // x[b, c, h, w], w[o, i, r, q]
  pool_max,       // x[b, c, h, w]
  pool_avg,       //
  add,            // trailing dims aligned, size 1 repeated
  mul,            //
  scale,          // by a factor
  relu,           //
  sigmoid,        //
  tanh,           //
  gelu,           //
  softmax,        // along an axis
  layernorm,      // x, or x, scale, shift
  batchnorm,      // x, scale, shift, mean, variance: a number for each place along dim 1
  dropout,        //
  reshape,        //
  transpose,      //
  concat,         //
  embedding_sum,  // positions[.., k], table[rows, d]: the sum of the k rows
  // Operations that other formats bring; a file of this one has none of them.
  slice,             // a range of positions along an axis
  reduce,            // the dims that stay, in order
  broadcast,         // dims of size 1, and dims in front, repeated
  select,            // condition, value where it holds, value elsewhere; either value may be a number
  einsum,            // dims by label: equal labels are one index, labels the result lacks are summed
  conv2d_transpose,  // x[b, i, h, w], w[i, o, r, q]
};
constexpr ModelOperation kLastFileOperation = ModelOperation::embedding_sum;

using ModelShape = std::vector<std::int64_t>;

struct ModelValue {
  std::string id;
  ModelShape shape;
};

struct ModelNode {
  ModelOperation operation = ModelOperation::relu;
  std::vector<std::uint32_t> operands;  // values

  std::optional<ModelOperation> act;                // relu, sigmoid, tanh or gelu of the result
  std::int64_t window = 1, stride = 1, groups = 1;  // a pool's edge
  std::int64_t pad_high = 0, pad_wide = 0;          // on either side
  std::size_t axis = 0;
  std::vector<std::size_t> order;   // of a transpose and a reduction: result dim i is operand dim order[i]
  double number = 0;                // a scale's factor, a norm's epsilon
  std::int64_t begin = 0, end = 0;  // of a slice
  std::vector<std::vector<std::size_t>> labels;  // of an einsum, by operand; result dim i has label i
};

struct ModelFile {
  std::string name;
  std::vector<ModelValue> values;
  std::uint32_t inputs = 0, weights = 0;  // how many of the values
  std::vector<ModelNode> nodes;           // node n makes value inputs + weights + n
  std::vector<std::uint32_t> outputs;     // values

  std::uint32_t result(std::size_t node) const { return inputs + weights + static_cast<std::uint32_t>(node); }
  const ModelShape& shape(std::uint32_t value) const { return values[value].shape; }
};

constexpr std::size_t kMostModelValues = std::size_t{1} << 15;
constexpr std::size_t kMostModelRank = 8;
constexpr std::int32_t kMostModelSize = 2147483647;

std::string_view name(ModelOperation operation);

// "[8, 128, 768]"
std::string print_shape(const ModelShape& shape);

Result<ModelFile> parse_model_file(std::string_view text);

}  // namespace weft::formats
