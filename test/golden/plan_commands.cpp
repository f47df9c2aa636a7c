// Commands whose input is plan text.

#include <fmt/format.h>

#include "commands.h"
#include "weft/language/complaint.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::golden {
namespace {

// Reads the plan and passes it to `then`. Returns the error if it cannot be read.
template <class Then>
std::string with_plan(const Case& test, Then then) {
  const auto graph = plan::read(test.input, ops::all());
  return graph.ok() ? then(*graph) : language::complain(graph.error(), test.input);
}

// How commands name a node, for example "%4 %5 layer-norm".
std::string title(const plan::NodeView& node) {
  std::string text;
  for (std::size_t k = 0; k < node.result_count(); ++k) text += fmt::format("%{} ", node.result(k).value);
  return text + std::string(node.op().name());
}

// The dims of the operands (or results) that a loop iterates: "0.1, 1.0" is dim 1 of the first and
// dim 0 of the second.
std::string places(std::span<const std::int8_t> dims) {
  std::string text;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0) text += fmt::format("{}{}.{}", text.empty() ? "" : ", ", i, dims[i]);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string plan_command(const Case& test) {
  return with_plan(test, [](const plan::Graph& graph) { return plan::print(graph); });
}

std::string verify_command(const Case& test) {
  return with_plan(test, [](const plan::Graph& graph) {
    const Status status = plan::verify(graph);
    return status.ok() ? "ok" : fmt::format("error: {}", status.error().message);
  });
}

std::string hash_command(const Case& test) {
  return with_plan(test, [](const plan::Graph& graph) { return plan::structural_hash(graph).hex(); });
}

std::string signature_command(const Case& test) {
  return with_plan(test, [](const plan::Graph& graph) {
    std::string text;
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const plan::NodeView node = graph.view(plan::NodeId(i));
      if (node.input_count() == 0) continue;  // only the result of a source can be sliced
      text += title(node) + '\n';
      for (const plan::Loop& loop : node.op().signature(node).loops) {
        const std::string role = loop.role == plan::Role::reduced
                                     ? fmt::format("{} {}", name(loop.role), name(loop.monoid))
                                     : std::string(name(loop.role));
        text +=
            fmt::format("  {}={} {}{}: {} -> {}\n", graph.text(loop.index), loop.size, role,
                        loop.positional ? " positional" : "", places(loop.operands), places(loop.results));
      }
    }
    return text;
  });
}

std::string work_command(const Case& test) {
  return with_plan(test, [](const plan::Graph& graph) {
    std::string text;
    plan::Work total;
    const auto row = [&](std::string_view what, const plan::Work& work) {
      text += fmt::format("{}: {:.0f} multiply-adds, {:.0f} flops, {:.0f} bytes read, {:.0f} written\n", what,
                          work.multiply_adds, work.flops, work.bytes_read, work.bytes_written);
    };
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const plan::NodeView node = graph.view(plan::NodeId(i));
      if (node.input_count() == 0) continue;
      const plan::Work work = node.op().work(node);
      row(title(node), work);
      total += work;
    }
    row("total", total);
    return text;
  });
}

}  // namespace weft::golden
