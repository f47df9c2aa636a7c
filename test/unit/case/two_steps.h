// test/unit/case/two_steps.h -- two steps of a plan in f64, as ranks that hold shards would run them.
//
// Shares no code with the prover: sources are sliced as run/ slices them (of a partial value, one
// rank gets all), a rank keeps its results for the next step, and an output is what a reader would
// assemble: the slices concatenated, else the value on rank 0.
#pragma once
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/random.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/ops/exchange.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/mesh.h"

namespace weft::distribute {

using Floats = ops::Tensor<double>;
using Named = std::map<std::string, Floats, std::less<>>;

// The value of a source before the first step. Inputs: reals, some of them large; integers from -1
// on.
inline Floats first_value(const plan::NodeView& source, std::uint64_t seed) {
  const plan::Type type = source.result_type(0);
  Floats tensor;
  for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
  const std::uint64_t stream = Hasher().text(source.word(0)).digest().low;
  for (std::int64_t e = 0; e < type.elements(); ++e) {
    const double drawn = normal_at(seed, stream, static_cast<std::uint64_t>(e));
    double value = drawn;
    if (&source.op() == &ops::input()) {
      if (!plan::is_real(type.dtype))
        value =
            type.dtype == plan::DType::boolean ? (drawn > -1 ? 1 : 0) : std::floor(std::abs(3 * drawn)) - 1;
    } else {
      const std::string_view init = source.word(2);
      const double a = source.real(3), b = source.real(4);
      value = init == "ones"       ? 1
              : init == "constant" ? a
              : init == "zeros"    ? 0
              : init == "normal"   ? a + 8 * b * drawn
                                   : a + (b - a) * std::abs(std::sin(drawn));
      // Zeros would hide their factors.
      if (plan::is_real(type.dtype))
        value += 0.3 * normal_at(seed + 1, stream, static_cast<std::uint64_t>(e));
      if (&source.op() == &ops::state()) value = std::abs(value);
    }
    tensor.data.push_back(value);
  }
  return tensor;
}

class TwoSteps {
 public:
  TwoSteps(const plan::Graph& one_device, const DistributedPlan& plan, std::uint64_t seed)
      : one_device_(one_device), plan_(plan), seed_(seed) {}

  // "" if both executions agree after both steps, else a description of the difference.
  std::string difference() {
    Named whole;
    std::map<std::string, spmd::MeshTensor<double>, std::less<>> held;
    for_sources(one_device_, [&](const plan::NodeView& node) {
      whole[std::string(node.word(0))] = first_value(node, seed_);
    });
    for_sources(plan_.graph, [&](const plan::NodeView& node) {
      const plan::Layout& layout = plan_.layouts[node.result(0).value];
      held[std::string(node.word(0))] = cut(first_value(node, seed_), node.result_type(0), layout);
    });
    for (int step = 0; step < 2; ++step) {
      const auto expected = ops::interpret<double>(one_device_, [&](std::string_view name) {
        const auto found = whole.find(name);
        return found == whole.end() ? nullptr : &found->second;
      });
      const auto found = spmd::interpret_on_mesh<double>(plan_.graph, plan_.mesh, [&](std::string_view name) {
        const auto tensor = held.find(name);
        return tensor == held.end() ? nullptr : &tensor->second;
      });
      if (!expected.ok()) return "";  // the model itself fails
      if (!found.ok()) return found.error().message;
      for (std::size_t o = 0; o < plan_.graph.outputs().size(); ++o) {
        const plan::Output& output = plan_.graph.outputs()[o];
        const std::string name(plan_.graph.text(output.name));
        const Floats* right = output_of(*expected, name);
        if (right == nullptr) return name + " is no output";
        if (const std::string why = compare(read((*found)[o], plan_.graph.type(output.value)), *right);
            !why.empty())
          return name + " " + why;
        if (!output.updates.valid()) continue;
        auto& now = held[std::string(plan_.graph.text(output.updates))];
        for (std::size_t rank = 0; rank < now.ranks.size(); ++rank) {
          if (now.ranks[rank].sizes != (*found)[o].ranks[rank].sizes) return name + " is another share";
          now.ranks[rank] = (*found)[o].ranks[rank];
        }
      }
      for (std::size_t o = 0; o < one_device_.outputs().size(); ++o)
        if (const plan::Output& output = one_device_.outputs()[o]; output.updates.valid())
          whole[std::string(one_device_.text(output.updates))] = (*expected)[o];
    }
    return "";
  }

 private:
  template <class Take>
  static void for_sources(const plan::Graph& graph, Take&& take) {
    for (std::size_t n = 0; n < graph.node_count(); ++n)
      if (const plan::NodeView node = graph.view(plan::NodeId(n)); ops::is_source(node.op())) take(node);
  }

  spmd::MeshTensor<double> cut(const Floats& whole, const plan::Type& type,
                               const plan::Layout& layout) const {
    spmd::MeshTensor<double> held{layout, {}};
    for (std::int32_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      Floats share = whole;
      const std::vector<plan::Share> shares = plan::shares_of(type, layout, plan_.mesh, rank);
      for (std::size_t dim = 0; dim < shares.size(); ++dim) share = ops::block_of(share, dim, shares[dim]);
      held.ranks.push_back(std::move(share));
    }
    return held;
  }

  Floats read(const spmd::MeshTensor<double>& held, const plan::Type& type) const {
    Floats whole;
    for (const plan::Dim& dim : type.dims) whole.sizes.push_back(dim.size);
    whole.data.assign(static_cast<std::size_t>(type.elements()), std::nan(""));
    for (std::int32_t rank = plan_.mesh.ranks(); rank-- > 0;) {  // rank 0 is written last and wins
      const std::vector<plan::Share> shares = plan::shares_of(type, held.layout, plan_.mesh, rank);
      const Floats& share = held.ranks[static_cast<std::size_t>(rank)];
      for (std::size_t e = 0; e < share.data.size(); ++e) {
        std::size_t left = e, place = 0, stride = 1;
        for (std::size_t dim = shares.size(); dim-- > 0;) {
          place += stride * (left % static_cast<std::size_t>(shares[dim].size) +
                             static_cast<std::size_t>(shares[dim].begin));
          left /= static_cast<std::size_t>(shares[dim].size);
          stride *= static_cast<std::size_t>(whole.sizes[dim]);
        }
        whole.data[place] = share.data[e];
      }
    }
    return whole;
  }

  const Floats* output_of(const std::vector<Floats>& values, std::string_view name) const {
    for (std::size_t o = 0; o < one_device_.outputs().size(); ++o)
      if (one_device_.text(one_device_.outputs()[o].name) == name) return &values[o];
    return nullptr;
  }

  static std::string compare(const Floats& found, const Floats& right) {
    if (found.sizes != right.sizes) return "has other sizes";
    double largest = 0;
    for (const double x : right.data)
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < right.data.size(); ++i) {
      const double a = found.data[i], b = right.data[i];
      if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-5 * (1e-6 + largest)) continue;
      return fmt::format("is {} in element {}, {} on one device", a, i, b);
    }
    return "";
  }

  const plan::Graph& one_device_;
  const DistributedPlan& plan_;
  const std::uint64_t seed_;
};

}  // namespace weft::distribute
