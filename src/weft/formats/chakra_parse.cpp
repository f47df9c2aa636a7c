#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/formats/chakra.h"
#include "weft/formats/chakra_fields.h"
#include "weft/formats/protobuf_wire.h"

namespace weft::formats {
namespace {

using sim::ExecutionTrace;
using sim::TraceNode;

constexpr std::int64_t kMostPeer = 1 << 20;
constexpr std::uint64_t kMostMicroseconds = 1'000'000'000'000'000;  // 31 years
// Limits what a file of zeros could make the reader allocate.
constexpr std::size_t kMostNodes = 1 << 22, kMostDependencies = 1 << 26;
constexpr double kMostWork = 0x1p60;  // bytes or operations per node

struct ChakraAttribute {
  std::string_view name, text;
  std::optional<double> number;
  std::uint64_t whole = 0;  // unconverted; negative values wrap around
};

std::uint64_t whole_of(double value) {
  return value >= 0 && value < 0x1p63 ? static_cast<std::uint64_t>(value) : 0;
}

void set_value(const WireField& field, ChakraAttribute& attribute) {
  const auto set = [&](double value, std::uint64_t whole) {
    attribute.number = value;
    attribute.whole = whole;
  };
  const auto set_signed = [&](std::int64_t value) {
    set(static_cast<double>(value), static_cast<std::uint64_t>(value));
  };
  const auto low_bits = static_cast<std::uint32_t>(field.whole);
  switch (field.number) {
    case chakra::kDouble:
      return set(std::bit_cast<double>(field.whole), whole_of(std::bit_cast<double>(field.whole)));
    case chakra::kFloat: return set(std::bit_cast<float>(low_bits), whole_of(std::bit_cast<float>(low_bits)));
    case chakra::kSint32:
    case chakra::kSint64: return set_signed(unzigzag(field.whole));
    case chakra::kSfixed32: return set_signed(static_cast<std::int32_t>(low_bits));
    case chakra::kInt32:
    case chakra::kInt64:
    case chakra::kSfixed64: return set_signed(static_cast<std::int64_t>(field.whole));
    case chakra::kUint32:
    case chakra::kUint64:
    case chakra::kFixed32:
    case chakra::kFixed64:
    case chakra::kBool: return set(static_cast<double>(field.whole), field.whole);
    default: return;  // lists, and types added by later versions
  }
}

bool read_attribute(std::string_view bytes, ChakraAttribute& attribute) {
  WireReader reader(bytes);
  WireField field;
  while (!reader.at_end()) {
    if (!reader.read_field(field)) return false;
    if (field.number == chakra::kAttributeName) {
      attribute.name = field.bytes;
    } else if (field.number == chakra::kString) {
      attribute.text = field.bytes;
    } else {
      set_value(field, attribute);
    }
  }
  return true;
}

struct RawNode {
  TraceNode node;
  std::vector<std::uint64_t> after;
  std::uint64_t type = 0;
  std::int64_t from = -1, to = -1;
  std::string_view group;
};

class ChakraReader {
 public:
  ChakraReader(std::string_view bytes, std::string_view name, ExecutionTrace& trace)
      : file_(bytes), name_(name), trace_(trace) {
    for (std::size_t g = 0; g < trace.groups.size(); ++g)
      groups_.emplace(trace.groups[g].name, static_cast<std::int32_t>(g));
  }

  Status read() {
    std::string_view message;
    if (!file_.at_end() && !file_.read_delimited(message)) return cut_short("the metadata");
    while (!file_.at_end()) {
      if (!file_.read_delimited(message)) return cut_short(fmt::format("node number {}", nodes_.size()));
      WEFT_TRY_STATUS(read_node(message));
    }
    return finish();
  }

 private:
  Error complain(std::string text) const { return user_error(fmt::format("{}: {}", name_, text)); }
  Error cut_short(std::string what) const {
    return complain(fmt::format("{} is truncated or not protobuf, at byte {}", what, file_.offset()));
  }

  Status read_node(std::string_view message) {
    RawNode raw;
    WireReader reader(message);
    WireField field;
    while (!reader.at_end()) {
      if (!reader.read_field(field)) return cut_short(fmt::format("node number {}", nodes_.size()));
      switch (field.number) {
        case chakra::kId: raw.node.id = field.whole; break;
        case chakra::kName: raw.node.name = field.bytes; break;
        case chakra::kType: raw.type = field.whole; break;
        case chakra::kControl:
        case chakra::kData: WEFT_TRY_STATUS(read_dependencies(field, raw)); break;
        case chakra::kDuration:
          if (field.whole > kMostMicroseconds)
            return complain(fmt::format("node {} takes too long: {} us", raw.node.id, field.whole));
          // duration_nanos is finer and overrides this; attributes come later.
          raw.node.seconds = static_cast<double>(field.whole) / 1e6;
          break;
        case chakra::kAttribute: WEFT_TRY_STATUS(read_node_attribute(field.bytes, raw)); break;
        default: break;
      }
    }
    dependencies_ += raw.after.size();
    nodes_.push_back(std::move(raw));
    if (nodes_.size() > kMostNodes || dependencies_ > kMostDependencies)
      return complain(fmt::format("more than {} nodes or {} dependencies", kMostNodes, kMostDependencies));
    return {};
  }

  Status read_dependencies(const WireField& field, RawNode& raw) {
    if (field.type == WireType::varint) {
      raw.after.push_back(field.whole);
      return {};
    }
    WireReader list(field.bytes);
    for (std::uint64_t id = 0; !list.at_end();) {
      if (!list.read_varint(id)) return cut_short(fmt::format("what node {} comes after", raw.node.id));
      raw.after.push_back(id);
    }
    return {};
  }

  Status read_node_attribute(std::string_view bytes, RawNode& raw) {
    ChakraAttribute attribute;
    if (!read_attribute(bytes, attribute))
      return cut_short(fmt::format("an attribute of node {}", raw.node.id));
    if (attribute.name == "pg_name") raw.group = attribute.text;
    if (!attribute.number) return {};
    const auto signed_whole = static_cast<std::int64_t>(attribute.whole);
    if (attribute.name == "is_cpu_op") raw.node.on_cpu = attribute.whole != 0;
    if (attribute.name == "comm_type")
      raw.node.collective = attribute.whole < std::size(chakra::kCollectives)
                                ? chakra::kCollectives[attribute.whole]
                                : chakra::Collective::other;
    if (attribute.name == "comm_src") raw.from = signed_whole;
    if (attribute.name == "comm_dst") raw.to = signed_whole;
    if (attribute.name == "comm_tag") raw.node.tag = signed_whole;
    const bool size = attribute.name == "comm_size";
    const bool work = attribute.name == "num_ops" || attribute.name == "tensor_size";
    if ((size || work) && !(*attribute.number >= 0 && *attribute.number <= kMostWork))
      return complain(
          fmt::format("node {}: {} is out of range: {}", raw.node.id, attribute.name, *attribute.number));
    if (size) raw.node.bytes = signed_whole;
    if (attribute.name == "num_ops") raw.node.operations = *attribute.number;
    if (attribute.name == "tensor_size") raw.node.tensor_bytes = *attribute.number;
    if (attribute.name == chakra::kNanoseconds && attribute.whole <= kMostMicroseconds)
      raw.node.seconds = static_cast<double>(attribute.whole) / 1e9;
    return {};
  }

  Status finish() {
    std::ranges::stable_sort(nodes_, {}, [](const RawNode& raw) { return raw.node.id; });
    std::unordered_map<std::uint64_t, std::uint32_t> number;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
      if (!number.emplace(nodes_[n].node.id, n).second)
        return complain(fmt::format("two nodes have the id {}", nodes_[n].node.id));
    const auto rank = static_cast<std::int32_t>(trace_.ranks.size());
    std::size_t unknown_kinds = 0, unknown_nodes = 0;
    sim::RankTrace result;
    result.nodes.reserve(nodes_.size());
    for (RawNode& raw : nodes_) {
      TraceNode& node = raw.node;
      if (raw.type >= std::size(chakra::kKinds)) ++unknown_kinds;
      node.kind = raw.type < std::size(chakra::kKinds) ? chakra::kKinds[raw.type] : chakra::Kind::nothing;
      for (const std::uint64_t id : raw.after) {
        const auto found = number.find(id);
        if (found == number.end())
          ++unknown_nodes;
        else
          node.after.push_back(found->second);
      }
      // A node may depend on another both by data and by control.
      std::ranges::sort(node.after);
      node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
      WEFT_TRY_STATUS(set_partner(raw, rank));
      result.nodes.push_back(std::move(node));
    }
    if (unknown_kinds > 0)
      trace_.notes.push_back(
          fmt::format("{}: {} nodes of unknown type count as taking no time", name_, unknown_kinds));
    if (unknown_nodes > 0)
      trace_.notes.push_back(
          fmt::format("{}: ignored {} dependencies on nodes that are not in the file", name_, unknown_nodes));
    trace_.ranks.push_back(std::move(result));
    return {};
  }

  Status set_partner(RawNode& raw, std::int32_t rank) const {
    TraceNode& node = raw.node;
    if (node.kind == chakra::Kind::send || node.kind == chakra::Kind::receive) {
      const bool send = node.kind == chakra::Kind::send;
      const std::int64_t self = send ? raw.from : raw.to, peer = send ? raw.to : raw.from;
      if (self >= 0 && self != rank)
        return complain(fmt::format("node {} \"{}\" {} rank {}, but this is rank {}", node.id,
                                    node.name.substr(0, 80), send ? "sends from" : "receives at", self,
                                    rank));
      if (peer < 0 || peer > kMostPeer)
        return complain(fmt::format("node {} \"{}\" does not state which rank it {}", node.id,
                                    node.name.substr(0, 80), send ? "sends to" : "receives from"));
      node.peer = static_cast<std::int32_t>(peer);
    }
    if (node.kind != chakra::Kind::collective || raw.group.empty() || raw.group == "0") return {};
    const auto found = groups_.find(raw.group);
    if (found == groups_.end())
      return user_error(fmt::format("{}: node {} \"{}\" uses the unknown process group {}", name_, node.id,
                                    node.name.substr(0, 80), raw.group.substr(0, 40)),
                        "list the groups in PREFIX.json: {\"1\": [0, 1]}");
    node.group = found->second;
    return {};
  }

  WireReader file_;
  std::string_view name_;
  ExecutionTrace& trace_;
  std::vector<RawNode> nodes_;
  std::size_t dependencies_ = 0;
  std::map<std::string, std::int32_t, std::less<>> groups_;
};

}  // namespace

Status parse_chakra(std::string_view bytes, std::string_view name, sim::ExecutionTrace& trace) {
  return ChakraReader(bytes, name, trace).read();
}

}  // namespace weft::formats
