#include "weft/formats/model_names.h"

#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "weft/formats/model_form.h"

namespace weft::formats {
namespace {

using Operation = ModelOperation;

// Disjoint sets of dims that are one index. Sets with two dims of the same value are never joined.
class DimSets {
 public:
  explicit DimSets(std::span<const std::size_t> first) : parent_(first.back()), apart_(first.back()) {
    std::iota(parent_.begin(), parent_.end(), std::uint32_t{0});
    for (std::size_t value = 0; value + 1 < first.size(); ++value)
      for (std::size_t a = first[value]; a < first[value + 1]; ++a)
        for (std::size_t b = first[value]; b < first[value + 1]; ++b)
          if (a != b) apart_[a].insert(static_cast<std::uint32_t>(b));
  }

  std::uint32_t find(std::size_t dim) {
    while (parent_[dim] != dim) dim = parent_[dim] = parent_[parent_[dim]];
    return static_cast<std::uint32_t>(dim);
  }

  void join(std::size_t a, std::size_t b) {
    std::uint32_t kept = find(a), gone = find(b);
    if (kept == gone || apart_[kept].contains(gone)) return;
    if (apart_[kept].size() < apart_[gone].size()) std::swap(kept, gone);
    parent_[gone] = kept;
    for (const std::uint32_t other : apart_[gone]) {
      apart_[other].erase(gone);
      apart_[other].insert(kept);
      apart_[kept].insert(other);
    }
    apart_[gone] = {};
  }

 private:
  std::vector<std::uint32_t> parent_;
  std::vector<std::unordered_set<std::uint32_t>> apart_;  // per set: the sets that it must not join
};

// Conventional letters for the dims of an operand of this operation.
std::string_view letters(const ModelNode& node, std::size_t operand, std::size_t rank) {
  constexpr std::array<std::string_view, kMostModelRank + 1> kPlain = {"", "d", "bd", "bsd", "bchw"};
  constexpr std::array<std::string_view, kMostModelRank + 1> kMatrices = {"", "d", "bd", "bsd", "bhse"};
  switch (node.operation) {
    case Operation::conv2d: return operand == 0 ? "bchw" : "cirq";
    case Operation::conv2d_transpose: return operand == 0 ? "bchw" : "icrq";
    case Operation::matmul:
      if (operand == 0) return kMatrices[rank];
      return rank == 2 ? "dd" : rank == 3 ? "bst" : rank == 4 ? "bhst" : "";
    case Operation::einsum: return "";
    case Operation::embedding_sum: return operand == 1 ? "vd" : rank == 2 ? "bk" : "bsk";
    case Operation::softmax:
    case Operation::scale: return kMatrices[rank];
    case Operation::transpose:
    case Operation::reshape:
    case Operation::dropout: return rank < 4 ? kPlain[rank] : "";
    default: return kPlain[rank];
  }
}

}  // namespace

ModelNames::ModelNames(const ModelFile& file) : first_(file.values.size() + 1, 0) {
  for (std::size_t value = 0; value < file.values.size(); ++value)
    first_[value + 1] = first_[value] + file.values[value].shape.size();

  DimSets sets(first_);
  std::optional<std::size_t> windows;
  for (std::size_t n = 0; n < file.nodes.size(); ++n) {
    const ModelNode& node = file.nodes[n];
    const auto dim = [&](const ModelDim& of) {
      return first_[of.operand == kResult ? file.result(n) : node.operands[of.operand]] + of.place;
    };
    for (const ModelTie& tie : ties(file, n)) sets.join(dim(tie.a), dim(tie.b));
    if (node.operation != Operation::conv2d) continue;
    const std::size_t window = first_[node.operands[1]] + 2;
    if (!windows) windows = window;
    sets.join(*windows, window);
    sets.join(*windows + 1, window + 1);
  }

  std::vector<char> letter(first_.back(), 0);  // per set
  const auto call = [&](std::size_t dim, char what) {
    char& own = letter[sets.find(dim)];
    if (own == 0) own = what;
  };
  for (std::size_t n = 0; n < file.nodes.size(); ++n) {
    const ModelNode& node = file.nodes[n];
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const std::uint32_t operand = node.operands[i];
      const std::string_view called = letters(node, i, file.shape(operand).size());
      for (std::size_t d = 0; d < called.size(); ++d) call(first_[operand] + d, called[d]);
    }
    const std::size_t result = first_[file.result(n)], end = first_[file.result(n) + 1];
    // A reshape that splits a row of features yields heads and their elements. The last dim of
    // attention scores is the key position.
    if (node.operation == Operation::reshape && end - result > file.shape(node.operands[0]).size())
      call(end - 1, 'e'), call(end - 2, 'h');
    if (node.operation == Operation::matmul && file.shape(node.operands[1]).size() > 2) call(end - 1, 't');
  }

  std::map<char, int> taken;
  std::vector<std::string> of_set(first_.back());
  names_.resize(first_.back());
  for (std::size_t dim = 0; dim < first_.back(); ++dim) {
    std::string& own = of_set[sets.find(dim)];
    if (own.empty()) {
      const char what = letter[sets.find(dim)] == 0 ? 'd' : letter[sets.find(dim)];
      const int number = taken[what]++;
      own = number == 0 ? std::string(1, what) : fmt::format("{}{}", what, number);
    }
    names_[dim] = own;
  }
}

}  // namespace weft::formats
