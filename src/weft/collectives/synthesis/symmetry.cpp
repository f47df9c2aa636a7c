#include "weft/collectives/synthesis/symmetry.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "weft/collectives/synthesis/automorphism.h"

namespace weft::synthesis {
namespace {

using Ends = std::pair<std::int32_t, std::int32_t>;

std::size_t place(std::int32_t number) { return static_cast<std::size_t>(number); }
std::int64_t key_of(std::int32_t from, std::int32_t to) { return (std::int64_t{from} << 32) | to; }

// Parallel wires become one arc.
ArcGraph wire_graph(const Wires& wires) {
  ArcGraph graph(wires.gpus, wires.nodes);
  for (const Wire& wire : wires.wires) graph.add(wire.from, wire.to, wire.capacity);
  graph.close();
  return graph;
}

std::int32_t shift_digit(Symmetry::Digit digit, std::int32_t gpu, std::int32_t by) {
  const std::int32_t old = gpu / digit.stride % digit.size;
  return gpu + ((old + by) % digit.size - old) * digit.stride;
}

// The image of every node under a shift of the devices; empty if it does not preserve all wires.
std::vector<std::int32_t> extend_shift(const ArcGraph& graph, Symmetry::Digit digit) {
  std::vector<std::int32_t> devices(place(graph.devices()));
  for (std::int32_t g = 0; g < graph.devices(); ++g) devices[place(g)] = shift_digit(digit, g, 1);
  return graph.extend(devices);
}

struct Shifts {
  std::vector<Symmetry::Digit> digits;
  std::vector<std::vector<std::int32_t>> images;
};

// Finds digits from `stride` on whose shifts preserve the wires. Tries large digits first, which
// give the fewest shifts.
bool find_digits(const ArcGraph& graph, std::int32_t stride, Shifts& shifts,
                 std::vector<std::int32_t>& failed, const Deadline& deadline) {
  if (stride == graph.devices()) return true;
  if (std::ranges::find(failed, stride) != failed.end()) return false;
  for (std::int32_t size = graph.devices() / stride; size >= 2; --size) {
    if (graph.devices() / stride % size != 0) continue;
    if (deadline.over()) return false;
    std::vector<std::int32_t> image = extend_shift(graph, {stride, size});
    if (image.empty()) continue;
    shifts.digits.push_back({stride, size});
    shifts.images.push_back(std::move(image));
    if (find_digits(graph, stride * size, shifts, failed, deadline)) return true;
    shifts.digits.pop_back();
    shifts.images.pop_back();
  }
  failed.push_back(stride);
  return false;
}

}  // namespace

std::int32_t shift(const Symmetry& symmetry, std::int32_t gpu, std::int32_t by) {
  for (const Symmetry::Digit& digit : symmetry.digits)
    gpu = shift_digit(digit, gpu, by / digit.stride % digit.size);
  return gpu;
}

std::optional<Symmetry> find_symmetry(const Wires& wires, const Deadline& deadline) {
  const ArcGraph graph = wire_graph(wires);
  Shifts shifts;
  std::vector<std::int32_t> failed;
  if (!find_digits(graph, 1, shifts, failed, deadline)) return std::nullopt;

  Symmetry symmetry;
  symmetry.digits = shifts.digits;
  // Wires that shifts map to each other are of one kind.
  std::unordered_map<std::int64_t, std::int32_t> kind_of;
  for (const Wire& wire : wires.wires) {
    if (kind_of.contains(key_of(wire.from, wire.to))) continue;
    const auto kind = static_cast<std::int32_t>(symmetry.kind_sizes.size());
    std::vector<Ends> list{{wire.from, wire.to}};
    kind_of[key_of(wire.from, wire.to)] = kind;
    for (std::size_t i = 0; i < list.size(); ++i)
      for (const std::vector<std::int32_t>& image : shifts.images) {
        const Ends next{image[place(list[i].first)], image[place(list[i].second)]};
        if (kind_of.try_emplace(key_of(next.first, next.second), kind).second) list.push_back(next);
      }
    symmetry.kind_sizes.push_back(static_cast<std::int32_t>(list.size()));
  }
  for (const Wire& wire : wires.wires) symmetry.kinds.push_back(kind_of.at(key_of(wire.from, wire.to)));
  return symmetry;
}

}  // namespace weft::synthesis
