// Any bytes are a rank's trace or an error. A trace prints and reads back the same, its
// dependencies refer to existing nodes, and running it ends normally or with an error that says
// why.

#include <algorithm>
#include <string>

#include "promise.h"
#include "weft/formats/astra_config.h"
#include "weft/formats/chakra.h"
#include "weft/predict/sim/trace/trace_run.h"

using weft::fuzz::promise;
namespace formats = weft::formats;
namespace sim = weft::sim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto network = formats::parse_astra_network(bytes);
  promise(network.ok() || !network.error().message.empty(), "an error has a message");

  sim::ExecutionTrace trace;
  trace.groups.push_back({"1", {0}});
  const auto parsed = formats::parse_chakra(bytes, "a.0.et", trace);
  if (!parsed.ok()) {
    promise(!parsed.error().message.empty(), "an error has a message");
    return 0;
  }
  const auto& nodes = trace.ranks.at(0).nodes;
  promise(std::ranges::is_sorted(nodes, {}, &sim::TraceNode::id), "nodes are sorted by id");
  for (const sim::TraceNode& node : nodes)
    promise(std::ranges::all_of(node.after, [&](std::uint32_t before) { return before < nodes.size(); }),
            "a node depends only on existing nodes", node.name);
  sim::ExecutionTrace again;
  again.groups = trace.groups;
  const std::string printed = formats::print_chakra(trace, 0);
  promise(formats::parse_chakra(printed, "b.0.et", again).ok(), "printed text reads back");
  promise(formats::print_chakra(again, 0) == printed, "parsed text prints the same");

  const sim::TraceNetwork ring{{{sim::TraceDimension::Kind::ring, 1, 1e9, 1e-6}}};
  sim::TraceSystem system;
  system.roofline = true;
  const auto run = sim::run_trace(trace, ring, system);
  promise(run.ok() || !run.error().message.empty(), "an error has a message");
  return 0;
}
