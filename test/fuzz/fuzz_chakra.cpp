// Any bytes are a rank's trace or an error; a trace prints, its print reads back as the same, its nodes come
// after nodes that there are, and it runs to an end or to an error that says why not.

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
  promise(std::ranges::is_sorted(nodes, {}, &sim::TraceNode::id), "nodes are in order of id");
  for (const sim::TraceNode& node : nodes)
    promise(std::ranges::all_of(node.after, [&](std::uint32_t before) { return before < nodes.size(); }),
            "a node comes after nodes that there are", node.name);
  sim::ExecutionTrace again;
  again.groups = trace.groups;
  const std::string printed = formats::print_chakra(trace, 0);
  promise(formats::parse_chakra(printed, "b.0.et", again).ok(), "what is printed reads back");
  promise(formats::print_chakra(again, 0) == printed, "print after parse changes nothing");

  const sim::TraceNetwork ring{{{sim::TraceDimension::Kind::ring, 1, 1e9, 1e-6}}};
  sim::TraceSystem system;
  system.roofline = true;
  const auto run = sim::run_trace(trace, ring, system);
  promise(run.ok() || !run.error().message.empty(), "an error has a message");
  return 0;
}
