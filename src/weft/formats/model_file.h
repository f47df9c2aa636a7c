// weft/formats/model_file.h -- a model graph as stated in its file: values by number, dims by
// position.
//
//   value 0 .. inputs-1                    inputs
//   .. + weights                           weights
//   .. + nodes                             one per node, in file order, which is an execution order
//
// A model file that was read has valid form: operands are earlier values, ranks and axes fit the
// operation, and elementwise operands and reshapes have matching sizes. Whether result shapes
// follow from the operands is checked when the plan is built.
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
  add,            // trailing dims aligned, size 1 broadcast
  mul,            //
  scale,          // by a factor
  relu,           //
  sigmoid,        //
  tanh,           //
  gelu,           //
  softmax,        // along an axis
  layernorm,      // x, or x, scale, shift
  batchnorm,      // x, scale, shift, mean, variance: one number per position of dim 1
  dropout,        //
  reshape,        //
  transpose,      //
  concat,         //
  embedding_sum,  // positions[.., k], table[rows, d]: the sum of the k rows
  // Operations of other formats; a weft-graph-1 file has none of them.
  slice,             // a range of positions along an axis
  reduce,            // the dims that are kept, in order
  broadcast,         // repeats dims of size 1, and adds leading dims
  select,            // condition, value if true, value if false; either value may be a number
  einsum,            // dims by label: equal labels are one index; labels missing in the result are summed
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

  std::optional<ModelOperation> act;                // relu, sigmoid, tanh or gelu applied to the result
  std::int64_t window = 1, stride = 1, groups = 1;  // window: edge of a pool's window
  std::int64_t pad_high = 0, pad_wide = 0;          // on each side
  std::size_t axis = 0;
  std::vector<std::size_t> order;                // transpose and reduce: result dim i is operand dim order[i]
  double number = 0;                             // scale: factor; norms: epsilon
  std::int64_t begin = 0, end = 0;               // slice
  std::vector<std::vector<std::size_t>> labels;  // einsum, per operand; result dim i has label i
};

struct ModelFile {
  std::string name;
  std::vector<ModelValue> values;
  std::uint32_t inputs = 0, weights = 0;  // number of such values
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
