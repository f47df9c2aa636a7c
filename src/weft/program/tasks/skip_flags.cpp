#include "weft/program/tasks/skip_flags.h"

#include <algorithm>

#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/operators.h"

namespace weft::program {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// A flag that, if true, means that the reader ignores the operand `value`.
ValueId flag_of_reader(const NodeView& reader, ValueId value, const std::vector<ValueId>& flags) {
  if (&reader.op() != &ops::select()) return flags[reader.id().value];
  const bool is_other_case = reader.input(2) == value && reader.input(1) != value && reader.input(0) != value;
  return is_other_case && reader.input_type(0).rank() == 0 ? reader.input(0) : flags[reader.id().value];
}

}  // namespace

std::vector<ValueId> skip_flags(const plan::Graph& graph, const Readers& readers,
                                const std::vector<bool>& needed) {
  std::vector<ValueId> flags(graph.node_count());
  std::vector<bool> is_output(graph.value_count());
  for (const plan::Output& output : graph.outputs()) is_output[output.value.value] = true;
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const NodeView node = graph.view(NodeId(n));
    if (!needed[n] || graph.phase(NodeId(n)) != plan::Phase::update || ops::is_source(node.op()) ||
        &node.op() == &ops::local_exchange())
      continue;
    ValueId flag;
    bool is_left_out = node.result_count() > 0;
    for (std::size_t r = 0; r < node.result_count() && is_left_out; ++r) {
      // Computing a scalar costs less than waiting for the flag.
      is_left_out = !is_output[node.result(r).value] && node.result_type(r).rank() > 0;
      for (const NodeId reader : readers.of(node.result(r))) {
        if (!needed[reader.value] || !is_left_out) continue;
        const ValueId other = flag_of_reader(graph.view(reader), node.result(r), flags);
        is_left_out = other.valid() && (!flag.valid() || flag == other);
        flag = other;
      }
    }
    if (is_left_out) flags[n] = flag;
  }
  return flags;
}

}  // namespace weft::program
