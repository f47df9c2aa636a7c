#include "weft/rule/run_instance.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "weft/ops/interpret.h"
#include "weft/ops/operators.h"
#include "weft/spmd/mesh.h"

namespace weft::rule {
namespace {

using ops::Field;
using ops::Numbers;
using ops::Tensor;

std::string shown(double value) { return fmt::format("{}", value); }
std::string shown(Field value) { return fmt::format("{}", value.residue()); }

bool is_input(const plan::NodeView& node) { return &node.op() == &ops::input(); }

template <class T>
class Run {
 public:
  Run(const RuleInstance& instance, Random& random, Numbers<T> numbers)
      : instance_(instance), graph_(instance.graph), random_(random), numbers_(numbers) {}

  template <class Draw>
  Result<InstanceRun<T>> run(Draw draw) {
    for (std::size_t id = 0; id < graph_.node_count(); ++id) {
      const plan::NodeView node = graph_.view(plan::NodeId(id));
      if (!is_input(node)) continue;
      const plan::Type type = node.result_type(0);
      Tensor<T>& tensor = made_.inputs.emplace_back();
      for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
      tensor.data.resize(static_cast<std::size_t>(type.elements()));
      for (T& element : tensor.data) element = draw();
    }
    WEFT_TRY_STATUS(instance_.distributed() ? on_mesh() : on_one_device());
    if (!made_.difference) compare();
    return std::move(made_);
  }

 private:
  std::size_t outputs() const { return graph_.outputs().size() / 2; }

  Status on_one_device() {
    std::map<std::string_view, const Tensor<T>*> tensors;
    std::size_t next = 0;
    for (std::size_t id = 0; id < graph_.node_count(); ++id) {
      const plan::NodeView node = graph_.view(plan::NodeId(id));
      if (is_input(node)) tensors.emplace(node.word(0), &made_.inputs[next++]);
    }
    WEFT_TRY(all, ops::interpret<T>(
                      graph_, [&](std::string_view name) { return tensors.at(name); }, numbers_));
    for (std::size_t k = 0; k < all.size(); ++k)
      (k < outputs() ? made_.left : made_.right).push_back(std::move(all[k]));
    return {};
  }

  Status on_mesh() {
    std::map<std::string_view, spmd::MeshTensor<T>> held;
    std::size_t next = 0;
    for (std::size_t id = 0; id < graph_.node_count(); ++id) {
      const plan::NodeView node = graph_.view(plan::NodeId(id));
      if (!is_input(node)) continue;
      WEFT_TRY(shares, spmd::split_for_mesh<T>(made_.inputs[next++], node.result_type(0),
                                               instance_.layouts[node.result(0).value], instance_.mesh,
                                               numbers_, random_));
      held.emplace(node.word(0), std::move(shares));
    }
    WEFT_TRY(all,
             spmd::interpret_on_mesh<T>(
                 graph_, instance_.mesh, [&](std::string_view name) { return &held.at(name); }, numbers_));
    for (std::size_t k = 0; k < outputs(); ++k) {
      const spmd::MeshTensor<T>&left = all[k], &right = all[k + outputs()];
      if (left.layout != right.layout) {
        made_.difference =
            Difference{static_cast<std::int32_t>(k), -1, print(left.layout, instance_.mesh, graph_.symbols()),
                       print(right.layout, instance_.mesh, graph_.symbols())};
        return {};
      }
      WEFT_TRY(whole_left, whole(left, k));
      WEFT_TRY(whole_right, whole(right, k));
      made_.left.push_back(std::move(whole_left));
      made_.right.push_back(std::move(whole_right));
    }
    return {};
  }

  // What the ranks hold as one tensor. Where each has a value of its own, all of them one after the other.
  Result<Tensor<T>> whole(const spmd::MeshTensor<T>& held, std::size_t output) {
    const bool varies =
        std::ranges::any_of(held.layout.axes, [](const plan::AxisLayout& axis) { return axis.is_varying(); });
    if (!varies)
      return spmd::join_from_mesh<T>(held, graph_.type(graph_.outputs()[output].value), instance_.mesh,
                                     numbers_);
    Tensor<T> all;
    for (const Tensor<T>& rank : held.ranks)
      all.data.insert(all.data.end(), rank.data.begin(), rank.data.end());
    all.sizes = {all.elements()};
    return all;
  }

  void compare() {
    for (std::size_t k = 0; k < outputs(); ++k) {
      const Tensor<T>&left = made_.left[k], &right = made_.right[k];
      for (std::size_t i = 0; i < left.data.size(); ++i) {
        if (left.data[i] == right.data[i]) continue;
        made_.difference = Difference{static_cast<std::int32_t>(k), static_cast<std::int64_t>(i),
                                      shown(left.data[i]), shown(right.data[i])};
        return;
      }
    }
  }

  const RuleInstance& instance_;
  const plan::Graph& graph_;
  Random& random_;
  Numbers<T> numbers_;
  InstanceRun<T> made_;
};

}  // namespace

Result<InstanceRun<double>> run_whole(const RuleInstance& instance, Random& random) {
  return Run<double>(instance, random, {}).run([&] { return static_cast<double>(random.between(-3, 3)); });
}

Result<InstanceRun<double>> run_real(const RuleInstance& instance, Random& random) {
  return Run<double>(instance, random, {}).run([&] { return 0.5 + random.uniform(); });
}

Result<InstanceRun<Field>> run_field(const RuleInstance& instance, Random& random) {
  Numbers<Field> numbers;
  numbers.key = random.next();
  return Run<Field>(instance, random, numbers).run([&] { return Field(random.next()); });
}

}  // namespace weft::rule
