#include "weft/rules/rule/affected_roots.h"

#include <unordered_set>

namespace weft::rule {

using plan::NodeId;
using plan::ValueId;

std::uint32_t Climb::follow(std::uint32_t from, Step step, const plan::Operator* op) {
  for (const std::uint32_t next : ways_[from].next)
    if (ways_[next].step == step && ways_[next].op == op) return next;
  const auto made = static_cast<std::uint32_t>(ways_.size());
  ways_[from].next.push_back(made);
  ways_.push_back({step, op, false, {}});
  return made;
}

void Climb::add(const LeftTests& left) {
  // For every node: the node from which it was reached, and the step back.
  struct Met {
    std::size_t from = 0;
    Step back = Step::start;
    const plan::Operator* op = nullptr;
  };
  struct Origin {
    std::size_t node = 0;
    bool is_result = false;
  };
  std::vector<Met> nodes(1);
  std::vector<Origin> values;
  for (const Test& test : left.tests) {
    switch (test.kind) {
      case Test::Kind::op:
      case Test::Kind::op_class:
        nodes[test.node].op = test.op;
        values.resize(values.size() + test.results, {test.node, true});
        break;
      case Test::Kind::take: values.push_back({test.node, false}); break;
      case Test::Kind::producer:
        nodes.push_back({values[test.value].node, Step::reader_of_result, nullptr});
        break;
      case Test::Kind::reader: {
        const Origin origin = values[test.value];
        nodes.push_back(
            {origin.node, origin.is_result ? Step::producer_of_operand : Step::reader_of_operand, nullptr});
        break;
      }
      default: break;
    }
  }
  if (left.tests.empty()) return;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::uint32_t at = follow(0, Step::start, nodes[n].op);
    for (std::size_t up = n; up != 0; up = nodes[up].from)
      at = follow(at, nodes[up].back, nodes[nodes[up].from].op);
    ways_[at].is_root = true;
  }
}

class Climb::Walk {
 public:
  Walk(const Climb& climb, const Draft& draft, std::vector<NodeId>& roots)
      : climb_(climb), draft_(draft), roots_(roots) {}

  void visit(std::uint32_t at, NodeId node) {
    if (!climb_.ways_[at].leads_to(draft_.graph().node(node).op)) return;
    if (!seen_.insert(std::uint64_t{at} << 32 | node.value).second) return;
    if (climb_.ways_[at].is_root) roots_.push_back(node);
    for (const std::uint32_t next : climb_.ways_[at].next) step(next, node);
  }

 private:
  void step(std::uint32_t next, NodeId node) {
    switch (climb_.ways_[next].step) {
      case Step::start: break;
      case Step::reader_of_result:
        for (std::size_t k = 0; k < draft_.graph().node(node).result_count; ++k)
          for (const NodeId reader : draft_.readers(draft_.graph().result(node, k))) visit(next, reader);
        break;
      case Step::reader_of_operand:
        for (const ValueId operand : draft_.inputs(node))
          for (const NodeId reader : draft_.readers(operand)) visit(next, reader);
        break;
      case Step::producer_of_operand:
        for (const ValueId operand : draft_.inputs(node)) visit(next, draft_.graph().value(operand).producer);
        break;
    }
  }

  const Climb& climb_;
  const Draft& draft_;
  std::vector<NodeId>& roots_;
  std::unordered_set<std::uint64_t> seen_;
};

void Climb::roots_of(const Draft& draft, NodeId node, std::vector<NodeId>& roots) const {
  Walk walk(*this, draft, roots);
  for (const std::uint32_t start : ways_[0].next) walk.visit(start, node);
}

}  // namespace weft::rule
