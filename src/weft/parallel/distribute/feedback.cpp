#include "weft/parallel/distribute/feedback.h"

#include <map>

#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/ops/codec.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

std::vector<Feedback> find_feedback(const plan::Graph& graph) {
  const std::map<std::string_view, NodeId> sources = sources_of(graph);
  const auto maker = [&](ValueId value) { return graph.view(graph.value(value).producer); };
  std::vector<Feedback> found;
  for (const plan::Output& output : graph.outputs()) {
    const auto source = sources.find(graph.updated(output));
    if (source == sources.end()) continue;
    const NodeView state = graph.view(source->second);
    if (&state.op() != &ops::state() || state.word(2) != "zeros") continue;
    // The error is not kept if it is not finite or the step is skipped, and it is rescaled with the
    // loss scale.
    NodeView lost = maker(output.value);
    for (;;) {
      if (&lost.op() == &ops::mul())
        lost = maker(lost.input(0));
      else if (&lost.op() == &ops::select() && lost.input(2) == state.result(0))
        lost = maker(lost.input(1));
      else if (&lost.op() == &ops::select() && lost.input(1) == state.result(0))
        lost = maker(lost.input(2));
      else
        break;
    }
    if (&lost.op() != &ops::sub()) continue;
    const NodeView add = maker(lost.input(0)), decode = maker(lost.input(1));
    if (&add.op() != &ops::add() || add.input(1) != state.result(0) || &decode.op() != &ops::decode())
      continue;
    const NodeView encode = maker(decode.input(0));
    if (&encode.op() != &ops::encode() || encode.input(0) != add.result(0) ||
        ops::codec_of(encode) != ops::codec_of(decode))
      continue;
    found.push_back({source->first, state.id(), add.id(), add.input(0)});
  }
  return found;
}

}  // namespace weft::distribute
