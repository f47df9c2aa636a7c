#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/formats/chakra.h"
#include "weft/formats/chakra_fields.h"
#include "weft/formats/protobuf_wire.h"

namespace weft::formats {
namespace {

using sim::TraceNode;

constexpr std::string_view kWrittenVersion = "0.0.4";

class NodeWriter {
 public:
  void attribute(std::string_view name, std::uint32_t field, std::uint64_t value) {
    WireWriter attribute;
    attribute.field(chakra::kAttributeName, name);
    attribute.field(field, value);
    node_.field(chakra::kAttribute, attribute.bytes());
  }
  void attribute(std::string_view name, std::string_view text) {
    WireWriter attribute;
    attribute.field(chakra::kAttributeName, name);
    attribute.field(chakra::kString, text);
    node_.field(chakra::kAttribute, attribute.bytes());
  }
  WireWriter& node() { return node_; }

 private:
  WireWriter node_;
};

template <class List, class Value>
std::uint64_t number_of(const List& list, Value value) {
  return static_cast<std::uint64_t>(std::ranges::find(list, value) - std::begin(list));
}

void write_communication(const TraceNode& node, const sim::ExecutionTrace& trace, std::size_t rank,
                         NodeWriter& writer) {
  writer.attribute("comm_size", chakra::kInt64, static_cast<std::uint64_t>(node.bytes));
  if (node.kind == chakra::Kind::collective) {
    const bool other = node.collective == chakra::Collective::other;
    writer.attribute("comm_type", chakra::kInt64,
                     other ? chakra::kOtherNumber : number_of(chakra::kCollectives, node.collective));
    if (node.group >= 0) writer.attribute("pg_name", trace.groups[static_cast<std::size_t>(node.group)].name);
    return;
  }
  const auto self = static_cast<std::uint64_t>(rank), peer = static_cast<std::uint64_t>(node.peer);
  writer.attribute("comm_src", chakra::kInt32, node.kind == chakra::Kind::send ? self : peer);
  writer.attribute("comm_dst", chakra::kInt32, node.kind == chakra::Kind::send ? peer : self);
  writer.attribute("comm_tag", chakra::kInt32, static_cast<std::uint64_t>(node.tag));
}

}  // namespace

std::string print_chakra(const sim::ExecutionTrace& trace, std::size_t rank) {
  WireWriter file;
  WireWriter metadata;
  metadata.field(chakra::kVersion, kWrittenVersion);
  file.delimited(metadata.bytes());
  const std::vector<TraceNode>& nodes = trace.ranks[rank].nodes;
  // Durations are whole microseconds: the rounding error carries over to the next node, so that
  // sums stay right.
  double exact = 0, written = 0;
  std::vector<std::uint64_t> after;
  for (const TraceNode& node : nodes) {
    NodeWriter writer;
    writer.node().field(chakra::kId, node.id);
    writer.node().field(chakra::kName, node.name);
    writer.node().field(chakra::kType, number_of(chakra::kKinds, node.kind));
    after.clear();
    for (const std::uint32_t before : node.after) after.push_back(nodes[before].id);
    writer.node().packed(chakra::kData, after);
    const bool computes = node.kind == chakra::Kind::compute || node.kind == chakra::Kind::memory;
    double microseconds = std::round(node.seconds * 1e6);
    if (computes) {
      exact += node.seconds * 1e6;
      microseconds = std::max(std::round(exact) - written, 0.0);
      written += microseconds;
    }
    if (microseconds > 0) writer.node().field(chakra::kDuration, static_cast<std::uint64_t>(microseconds));
    writer.attribute("is_cpu_op", chakra::kBool, node.on_cpu ? 1 : 0);
    if (computes) {
      writer.attribute("num_ops", chakra::kInt64, static_cast<std::uint64_t>(node.operations));
      writer.attribute("tensor_size", chakra::kUint64, static_cast<std::uint64_t>(node.tensor_bytes));
    } else if (node.kind != chakra::Kind::nothing) {
      write_communication(node, trace, rank, writer);
    }
    if (node.seconds > 0)
      writer.attribute(chakra::kNanoseconds, chakra::kUint64,
                       static_cast<std::uint64_t>(std::round(node.seconds * 1e9)));
    file.delimited(writer.node().bytes());
  }
  return file.take();
}

std::string print_chakra_groups(const sim::ExecutionTrace& trace) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  for (const sim::RankGroup& group : trace.groups) groups[group.name] = group.ranks;
  return groups.dump() + "\n";
}

}  // namespace weft::formats
