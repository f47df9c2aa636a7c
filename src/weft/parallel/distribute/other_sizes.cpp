#include "weft/parallel/distribute/other_sizes.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::ValueId;

constexpr std::size_t kAlong = 0, kBegin = 1, kEnd = 2;  // attributes of a slice
constexpr std::size_t kConstant = 0;                     // attribute of a constant: its value

// Scalars that depend only on the sizes and constants of a plan, such as the count of a mean. Rules
// merge equal ones. If two are equal at the plan's own sizes but differ at the others, the merged
// one cannot stand for both.
class NumbersOfSizes {
 public:
  NumbersOfSizes(const plan::Graph& original, const plan::Graph& other)
      : before_(plan::value_hashes(original)), after_(plan::value_hashes(other)) {
    const std::vector<bool> numbers = made_of_constants(original);
    for (std::size_t v = 0; v < original.value_count(); ++v)
      if (numbers[v]) by_hash_[before_[v]].insert(after_[v]);
    std::erase_if(by_hash_, [](const auto& known) { return known.second.size() < 2; });
  }

  bool any() const { return !by_hash_.empty(); }
  // `hash`: of the value that the node reads in the plan. `is`: the single-device value that it
  // corresponds to at the other sizes; `meant`: the value that the node reads in the single-device
  // plan. Either may be invalid.
  bool differ(const Digest& hash, ValueId is, ValueId meant) const {
    if (!by_hash_.contains(hash)) return false;
    return !is.valid() || !meant.valid() || before_[meant.value] != hash ||
           after_[is.value] != after_[meant.value];
  }

  static std::vector<bool> made_of_constants(const plan::Graph& graph) {
    std::vector<bool> numbers(graph.value_count());
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(NodeId(n));
      const bool number =
          !ops::is_source(node.op()) && node.result_count() == 1 && node.result_type(0).rank() == 0 &&
          std::ranges::all_of(node.node().inputs, [&](ValueId input) { return numbers[input.value]; });
      for (std::size_t k = 0; k < node.result_count(); ++k) numbers[node.result(k).value] = number;
    }
    return numbers;
  }

 private:
  std::vector<Digest> before_, after_;          // by value
  std::map<Digest, std::set<Digest>> by_hash_;  // hashes with several values at the other sizes
};

}  // namespace

OtherSizes::OtherSizes(const plan::Graph& original, const plan::Graph& other) {
  for (std::size_t v = 0; v < original.value_count(); ++v) {
    const plan::Type before = original.type(ValueId(v)), after = other.type(ValueId(v));
    for (std::size_t d = 0; d < std::min(before.rank(), after.rank()); ++d)
      known_[{std::string(original.text(before.dims[d].index)), before.dims[d].size}].insert(
          after.dims[d].size);
  }
  for (std::size_t n = 0; n < original.node_count(); ++n) {
    const plan::NodeView node = original.view(NodeId(n)), small = other.view(NodeId(n));
    if (&node.op() == &ops::constant()) numbers_[node.real(kConstant)].insert(small.real(kConstant));
    if (&node.op() != &ops::slice()) continue;
    slices_[{std::string(node.text(node.symbol(kAlong))), node.input_type(0).size_of(node.symbol(kAlong)),
             node.integer(kBegin), node.integer(kEnd)}]
        .emplace(small.integer(kBegin), small.integer(kEnd));
  }
}

Result<std::int64_t> OtherSizes::of(std::string_view index, std::int64_t size) const {
  const auto found = known_.find({std::string(index), size});
  if (size == 1 && found == known_.end()) return size;
  if (found == known_.end() || found->second.size() != 1)
    return user_error(
        fmt::format("{} of {} is specific to this plan and has no counterpart at other sizes", index, size));
  return *found->second.begin();
}

Result<Stretch> OtherSizes::of_slice(std::string_view index, std::int64_t size, Stretch slice) const {
  const auto found = slices_.find({std::string(index), size, slice.begin, slice.end});
  if (found == slices_.end() || found->second.size() != 1)
    return user_error(fmt::format("{} from {} to {} is specific to the plan and has no place at other sizes",
                                  index, slice.begin, slice.end));
  return Stretch{found->second.begin()->first, found->second.begin()->second};
}

Result<double> OtherSizes::of_number(const plan::NodeView& node, std::size_t attribute) const {
  const plan::AttributeSpec& spec = node.op().attributes()[attribute];
  const double number = node.real(attribute);
  const auto found = numbers_.find(number);
  const bool is_default = !spec.required && number == spec.number;
  if (found == numbers_.end() || is_default) return number;
  if (found->second.size() != 1)
    return user_error(fmt::format("{} is specific to the plan and has no value at other sizes", number));
  return *found->second.begin();
}

bool OtherSizes::change_number(const plan::NodeView& node) const {
  if (&node.op() == &ops::constant()) return false;
  const std::span<const plan::AttributeSpec> specs = node.op().attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (specs[k].kind != plan::AttributeKind::real) continue;
    const Result<double> becomes = of_number(node, k);
    if (!becomes.ok() || *becomes != node.real(k)) return true;
  }
  return false;
}

Status check_numbers(const DistributedPlan& plan, const plan::Graph& original, const plan::Graph& other) {
  const NumbersOfSizes numbers(original, other);
  if (!numbers.any()) return {};
  const std::vector<Digest> hashes = plan::value_hashes(plan.graph);
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(NodeId(n));
    const bool as_modelled =
        !plan.is_own(NodeId(n)) && plan.origin[n].valid() && ops::find_communication(node.op()) == nullptr;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      plan::Value read = plan.graph.value(node.input(i));
      // For a bucket: the member.
      while (plan.graph.node(read.producer).result_count > 1 &&
             ops::find_communication(*plan.graph.node(read.producer).op) != nullptr)
        read = plan.graph.value(plan.graph.view(read.producer).input(read.result));
      const NodeId made = plan.is_own(read.producer) ? NodeId() : plan.origin[read.producer.value];
      const ValueId is = made.valid() ? original.result(made, read.result) : ValueId();
      const plan::NodeView model = original.view(as_modelled ? plan.origin[n] : NodeId(0u));
      const ValueId meant = as_modelled && i < model.input_count() ? model.input(i) : ValueId();
      if (numbers.differ(hashes[node.input(i).value], is, meant))
        return user_error(
            fmt::format("node {} reads one constant for several numbers that differ at other sizes",
                        describe(plan.graph, node.id())));
    }
  }
  return {};
}

}  // namespace weft::distribute
