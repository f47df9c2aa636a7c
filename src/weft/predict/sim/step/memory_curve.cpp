#include "weft/predict/sim/step/memory_curve.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "weft/plan/graph/operator.h"

namespace weft::sim {
namespace {

using program::Buffer;
using program::BufferRole;

// Which values are parameter gradients, indexed by value of the rank's plan.
std::vector<bool> gradient_values(const plan::Graph& graph) {
  std::vector<bool> found(graph.value_count());
  std::vector<plan::ValueId> open;
  const auto note = [&](plan::ValueId value) {
    if (found[value.value] || graph.node(graph.value(value).producer).inputs.empty()) return;
    found[value.value] = true;
    open.push_back(value);
  };
  for (const plan::Output& output : graph.outputs()) {
    if (!output.updates.valid()) continue;
    const plan::Node& update = graph.node(graph.value(output.value).producer);
    // An update reads the source that it updates; a mere cast of another update's result does not.
    const bool reads_source = std::ranges::any_of(update.inputs, [&](plan::ValueId input) {
      return graph.node(graph.value(input).producer).inputs.empty();
    });
    if (reads_source)
      for (const plan::ValueId input : update.inputs) note(input);
  }
  while (!open.empty()) {
    const plan::Node& node = graph.node(graph.value(open.back()).producer);
    open.pop_back();
    const std::string_view name = node.op->name();
    if (node.op->is_view() || name == "exchange" || name == "cast" || name == "slice" || name == "transpose")
      note(node.inputs[0]);
  }
  return found;
}

// The unit that computes the first output that does not update a source: the loss.
std::uint32_t loss_unit(const program::Program& program) {
  const plan::Graph& graph = *program.graph;
  for (const plan::Output& output : graph.outputs()) {
    if (output.updates.valid()) continue;
    const plan::NodeId maker = graph.value(output.value).producer;
    for (std::uint32_t u = 0; u < program.units.size(); ++u)
      if (std::ranges::find(program.units[u].nodes, maker) != program.units[u].nodes.end()) return u;
  }
  return std::numeric_limits<std::uint32_t>::max();
}

// The unit at which temporaries use the most memory.
std::uint32_t fullest_unit(const program::Program& program) {
  std::vector<std::int64_t> change(program.units.size() + 1);
  for (const Buffer& buffer : program.buffers) {
    if (is_persistent(buffer.role) || buffer.born >= buffer.dies) continue;
    change[std::min<std::size_t>(buffer.born, program.units.size())] += buffer.bytes;
    change[std::min<std::size_t>(buffer.dies, program.units.size())] -= buffer.bytes;
  }
  std::int64_t alive = 0, most = 0;
  std::uint32_t fullest = 0;
  for (std::uint32_t u = 0; u < program.units.size(); ++u) {
    alive += change[u];
    if (alive > most) most = alive, fullest = u;
  }
  return fullest;
}

}  // namespace

std::vector<std::pair<double, double>> memory_curve(const program::Program& program,
                                                    std::span<const program::TaskTime> times) {
  struct Span {
    double begin = std::numeric_limits<double>::infinity(), end = 0;
  };
  std::vector<Span> units(program.units.size());
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    Span& unit = units[program.tasks[t].unit];
    unit.begin = std::min(unit.begin, times[t].begin);
    unit.end = std::max(unit.end, times[t].end);
  }
  std::vector<std::pair<double, double>> changes = {{0, static_cast<double>(program.persistent_bytes)}};
  for (const Buffer& buffer : program.buffers) {
    if (is_persistent(buffer.role) || buffer.born >= buffer.dies || buffer.dies > units.size()) continue;
    changes.emplace_back(units[buffer.born].begin, static_cast<double>(buffer.bytes));
    changes.emplace_back(units[buffer.dies - 1].end, -static_cast<double>(buffer.bytes));
  }
  // Memory freed at a moment is available to allocations at the same moment.
  std::ranges::sort(changes);
  std::vector<std::pair<double, double>> curve;
  double alive = 0;
  for (const auto& [when, bytes] : changes) {
    alive += bytes;
    if (!curve.empty() && curve.back().first == when)
      curve.back().second = alive;
    else
      curve.emplace_back(when, alive);
  }
  return curve;
}

namespace {

// Classifies a buffer by the field of MemoryByKind that it counts towards.
class KindOf {
 public:
  explicit KindOf(const program::Program& program)
      : gradients_(gradient_values(*program.graph)), loss_(loss_unit(program)) {}

  std::string_view operator()(const Buffer& buffer) const {
    switch (buffer.role) {
      case BufferRole::input: return "inputs";
      case BufferRole::parameter: return "parameters";
      case BufferRole::state: return "optimizer";
      case BufferRole::result: return "scratch";
      case BufferRole::temporary: break;
    }
    if (buffer.value.valid() && gradients_[buffer.value.value]) return "gradients";
    return buffer.born <= loss_ && buffer.dies > loss_ + 1 ? "activations" : "scratch";
  }
  static double& field(MemoryByKind& memory, std::string_view kind) {
    if (kind == "inputs") return memory.inputs;
    if (kind == "parameters") return memory.parameters;
    if (kind == "optimizer") return memory.optimizer;
    if (kind == "gradients") return memory.gradients;
    return kind == "activations" ? memory.activations : memory.scratch;
  }

 private:
  const std::vector<bool> gradients_;
  const std::uint32_t loss_;
};

bool is_alive(const Buffer& buffer, std::uint32_t unit) {
  return is_persistent(buffer.role) || (buffer.born <= unit && unit < buffer.dies);
}

}  // namespace

std::vector<MemoryByKind> memory_by_unit(const program::Program& program) {
  const KindOf kind(program);
  const std::size_t units = program.units.size();
  std::vector<MemoryByKind> change(units + 1);
  for (const Buffer& buffer : program.buffers) {
    const bool always = is_persistent(buffer.role);
    const std::size_t born = always ? 0 : std::min<std::size_t>(buffer.born, units);
    const std::size_t dies = always ? units : std::clamp<std::size_t>(buffer.dies, born, units);
    KindOf::field(change[born], kind(buffer)) += static_cast<double>(buffer.bytes);
    KindOf::field(change[dies], kind(buffer)) -= static_cast<double>(buffer.bytes);
  }
  for (std::size_t u = 1; u < units; ++u)
    for (const auto& [name, bytes] : change[u - 1].kinds()) KindOf::field(change[u], name) += bytes;
  change.resize(units);
  return change;
}

std::vector<LiveBuffer> live_buffers(const program::Program& program, std::uint32_t unit) {
  const KindOf kind(program);
  std::vector<LiveBuffer> alive;
  for (const Buffer& buffer : program.buffers)
    if (buffer.bytes > 0 && is_alive(buffer, unit)) alive.push_back({&buffer, kind(buffer)});
  std::ranges::stable_sort(
      alive, [](const LiveBuffer& a, const LiveBuffer& b) { return a.buffer->bytes > b.buffer->bytes; });
  return alive;
}

MemoryByKind memory_by_kind(const program::Program& program, double total_bytes) {
  MemoryByKind memory;
  const std::vector<bool> gradients = gradient_values(*program.graph);
  const std::uint32_t fullest = fullest_unit(program), loss = loss_unit(program);
  for (const Buffer& buffer : program.buffers) {
    const auto bytes = static_cast<double>(buffer.bytes);
    switch (buffer.role) {
      case BufferRole::input: memory.inputs += bytes; break;
      case BufferRole::parameter: memory.parameters += bytes; break;
      case BufferRole::state: memory.optimizer += bytes; break;
      case BufferRole::result: break;
      case BufferRole::temporary:
        if (fullest < buffer.born || fullest >= buffer.dies) break;
        if (buffer.value.valid() && gradients[buffer.value.value])
          memory.gradients += bytes;
        else if (buffer.born <= loss && buffer.dies > loss + 1)
          memory.activations += bytes;
    }
  }
  memory.scratch = std::max(0.0, total_bytes - memory.total());
  return memory;
}

}  // namespace weft::sim
