#include "weft/formats/model_form.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "weft/formats/model_reshape.h"

namespace weft::formats {
namespace {

using Operation = ModelOperation;

std::int64_t elements(const ModelShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

// Whether the operand broadcasts to the result: dims aligned from the last, with equal sizes or 1.
bool repeats_to(const ModelShape& operand, const ModelShape& result) {
  if (operand.size() > result.size()) return false;
  return std::equal(operand.rbegin(), operand.rend(), result.rbegin(),
                    [](std::int64_t a, std::int64_t b) { return a == b || a == 1; });
}

class Form {
 public:
  Form(const ModelFile& file, std::size_t node)
      : file_(file), node_(file.nodes[node]), y_(file.shape(file.result(node))) {}

  Status check() const {
    switch (node_.operation) {
      case Operation::matmul:
        return expect(rank(0) >= 2 && rank(1) >= 2 && rank(1) <= rank(0) && y_.size() == rank(0),
                      "matrices [.., m, k] and [.., k, n]");
      case Operation::conv2d:
      case Operation::pool_max:
      case Operation::pool_avg: return expect(y_.size() == 4, "an image");
      case Operation::add:
      case Operation::mul:
      case Operation::select: {
        bool fits = true, full = false;
        for (std::size_t i = 0; i < node_.operands.size(); ++i) {
          fits &= repeats_to(x(i), y_);
          full |= rank(i) == y_.size();
        }
        return expect(fits && full,
                      "operands whose dims, counted from the last, are those of the result or 1");
      }
      case Operation::broadcast:
        return expect(repeats_to(x(0), y_),
                      "an operand whose dims, counted from the last, are the result's or 1");
      case Operation::reduce:
        return expect(y_.size() == node_.order.size(), "a result of the dims that stay");
      case Operation::einsum: return {};
      case Operation::conv2d_transpose: return expect(rank(0) == 4 && y_.size() == 4, "an image");
      case Operation::layernorm:
        for (std::size_t i = 1; i < node_.operands.size(); ++i)
          WEFT_TRY_STATUS(expect(rank(i) == 1, "a scale and a shift of one dim"));
        return expect(y_.size() == rank(0), "a result like the operand");
      case Operation::batchnorm:
        for (std::size_t i = 1; i < node_.operands.size(); ++i)
          WEFT_TRY_STATUS(expect(rank(i) == 1, "scale, shift, mean and variance of one dim"));
        return expect(rank(0) >= 2 && y_.size() == rank(0), "an operand of at least two dims");
      case Operation::reshape: return expect(elements(x(0)) == elements(y_), "as many elements as before");
      case Operation::concat: {
        bool fits = y_.size() == rank(0);
        for (std::size_t i = 1; i < node_.operands.size(); ++i) fits &= rank(i) == rank(0);
        return expect(fits, "operands of one rank");
      }
      case Operation::embedding_sum:
        return expect(
            node_.operands[0] < file_.inputs && rank(0) >= 2 && rank(1) == 2 && y_.size() == rank(0),
            "an input of positions [.., k] and a table [rows, d]");
      default: return expect(y_.size() == rank(0), "a result of the operand's rank");
    }
  }

  std::vector<ModelTie> ties() {
    switch (node_.operation) {
      case Operation::matmul: tie_matmul(); break;
      case Operation::conv2d:
        for (const std::size_t d : {0u, 2u, 3u}) tie(d, 0, d);
        tie(1, 1, 0);
        if (node_.groups == 1) made_.push_back({{0, 1}, {1, 1}});
        break;
      case Operation::add:
      case Operation::mul:
      case Operation::select:
      case Operation::broadcast:
        for (std::size_t i = 0; i < node_.operands.size(); ++i)
          for (std::size_t d = y_.size() - rank(i); d < y_.size(); ++d)
            if (const std::size_t at = d - (y_.size() - rank(i)); x(i)[at] == y_[d]) tie(d, i, at);
        break;
      case Operation::layernorm:
        tie_all(0);
        for (std::size_t i = 1; i < node_.operands.size(); ++i) tie(node_.axis, i, 0);
        break;
      case Operation::batchnorm:
        tie_all(0);
        for (std::size_t i = 1; i < node_.operands.size(); ++i) tie(1, i, 0);
        break;
      case Operation::reshape: tie_reshape(); break;
      case Operation::transpose:
        for (std::size_t d = 0; d < y_.size(); ++d) tie(d, 0, node_.order[d]);
        break;
      case Operation::embedding_sum:
        for (std::size_t d = 0; d + 1 < y_.size(); ++d) tie(d, 0, d);
        tie(y_.size() - 1, 1, 1);
        break;
      case Operation::slice:  // a slice of an index is a new index
        for (std::size_t d = 0; d < y_.size(); ++d)
          if (d != node_.axis) tie(d, 0, d);
        break;
      case Operation::reduce:
        for (std::size_t d = 0; d < y_.size(); ++d) tie(d, 0, node_.order[d]);
        break;
      case Operation::einsum: tie_labels(); break;
      case Operation::conv2d_transpose:
        for (const std::size_t d : {0u, 2u, 3u}) tie(d, 0, d);
        tie(1, 1, 1);
        made_.push_back({{0, 1}, {1, 0}});
        break;
      default:  // elementwise, along an axis, pooling, or concatenation
        for (std::size_t i = 0; i < node_.operands.size(); ++i) tie_all(i);
    }
    return std::move(made_);
  }

 private:
  const ModelShape& x(std::size_t operand) const { return file_.shape(node_.operands[operand]); }
  std::size_t rank(std::size_t operand) const { return x(operand).size(); }

  Status expect(bool fits, std::string_view what) const {
    if (fits) return {};
    std::string operands;
    for (const std::uint32_t operand : node_.operands) {
      if (!operands.empty()) operands += ", ";
      operands += print_shape(file_.shape(operand));
      if (operands.size() > 200) break;
    }
    return user_error(
        fmt::format("{} takes {}, found {} for {}", name(node_.operation), what, operands, print_shape(y_)));
  }

  void tie(std::size_t result, std::size_t operand, std::size_t place) {
    made_.push_back({{kResult, static_cast<std::uint32_t>(result)},
                     {static_cast<std::uint32_t>(operand), static_cast<std::uint32_t>(place)}});
  }
  void tie_all(std::size_t operand) {
    for (std::size_t d = 0; d < y_.size(); ++d) tie(d, operand, d);
  }

  void tie_matmul() {
    const std::size_t last = y_.size() - 1, less = rank(0) - rank(1);
    for (std::size_t d = 0; d < last; ++d) tie(d, 0, d);
    for (std::size_t d = less; d + 1 < last; ++d) tie(d, 1, d - less);
    tie(last, 1, rank(1) - 1);
    made_.push_back({{0, static_cast<std::uint32_t>(last)}, {1, static_cast<std::uint32_t>(rank(1) - 2)}});
  }

  void tie_labels() {
    std::map<std::size_t, ModelDim> first;
    for (std::size_t d = 0; d < y_.size(); ++d)
      first.emplace(d, ModelDim{kResult, static_cast<std::uint32_t>(d)});
    for (std::size_t i = 0; i < node_.labels.size(); ++i)
      for (std::size_t d = 0; d < node_.labels[i].size(); ++d) {
        const ModelDim here{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(d)};
        const auto [at, is_new] = first.emplace(node_.labels[i][d], here);
        if (!is_new) made_.push_back({at->second, here});
      }
  }

  void tie_reshape() {
    for (const ReshapeBlock& block : reshape_blocks(x(0), y_)) {
      const auto from = only_place(x(0), block.from, block.from_count);
      const auto to = only_place(y_, block.to, block.to_count);
      if (from && to) tie(*to, 0, *from);
    }
  }

  const ModelFile& file_;
  const ModelNode& node_;
  const ModelShape& y_;
  std::vector<ModelTie> made_;
};

}  // namespace

Status check_form(const ModelFile& file, std::size_t node) { return Form(file, node).check(); }

std::vector<ModelTie> ties(const ModelFile& file, std::size_t node) { return Form(file, node).ties(); }

}  // namespace weft::formats
