#include "weft/synthesis/symmetry.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace weft::synthesis {
namespace {

using Ends = std::pair<std::int32_t, std::int32_t>;

std::size_t place(std::int32_t number) { return static_cast<std::size_t>(number); }
std::int64_t key_of(std::int32_t from, std::int32_t to) { return (std::int64_t{from} << 32) | to; }

// The wires between two nodes as one.
struct Joined {
  explicit Joined(const Wires& wires) : nodes(wires.nodes), gpus(wires.gpus), around(place(wires.nodes)) {
    for (const Wire& wire : wires.wires) capacities[key_of(wire.from, wire.to)] += wire.capacity;
    for (const auto& [key, capacity] : capacities) {
      const auto from = static_cast<std::int32_t>(key >> 32),
                 to = static_cast<std::int32_t>(key & 0x7fffffff);
      around[place(from)].push_back({to, capacity});
      around[place(to)].push_back({from, -capacity});
    }
    for (auto& list : around) std::ranges::sort(list);
  }

  std::int32_t nodes, gpus;
  std::unordered_map<std::int64_t, Amount> capacities;
  std::vector<std::vector<std::pair<std::int32_t, Amount>>> around;  // negative: comes from there
};

std::int32_t shift_digit(Symmetry::Digit digit, std::int32_t gpu, std::int32_t by) {
  const std::int32_t old = gpu / digit.stride % digit.size;
  return gpu + ((old + by) % digit.size - old) * digit.stride;
}

// Where a shift of the devices leads every node, switches by what they are joined to; empty: it keeps not all.
std::vector<std::int32_t> extend_shift(const Joined& joined, Symmetry::Digit digit) {
  std::vector<std::int32_t> image(place(joined.nodes), -1), origin(place(joined.nodes), -1);
  for (std::int32_t g = 0; g < joined.gpus; ++g)
    image[place(g)] = shift_digit(digit, g, 1), origin[place(image[place(g)])] = g;
  for (bool more = true; more;) {
    more = false;
    using Signature = std::vector<std::pair<std::int32_t, Amount>>;
    std::map<Signature, std::vector<std::int32_t>> by_signature;
    for (std::int32_t w = joined.gpus; w < joined.nodes; ++w) {
      if (origin[place(w)] >= 0) continue;
      Signature signature;
      for (const auto& [node, capacity] : joined.around[place(w)])
        if (origin[place(node)] >= 0) signature.emplace_back(node, capacity);
      if (!signature.empty()) by_signature[signature].push_back(w);
    }
    for (auto& [signature, list] : by_signature) std::ranges::reverse(list);
    std::vector<Ends> found;
    for (std::int32_t w = joined.gpus; w < joined.nodes; ++w) {
      if (image[place(w)] >= 0) continue;
      Signature signature;
      for (const auto& [node, capacity] : joined.around[place(w)])
        if (image[place(node)] >= 0) signature.emplace_back(image[place(node)], capacity);
      std::ranges::sort(signature);
      const auto same = by_signature.find(signature);
      if (signature.empty()) continue;
      if (same == by_signature.end() || same->second.empty()) return {};
      found.emplace_back(w, same->second.back());
      same->second.pop_back();
    }
    for (const auto& [from, to] : found) image[place(from)] = to, origin[place(to)] = from, more = true;
  }
  for (const auto& [key, capacity] : joined.capacities) {
    const std::int32_t from = image[place(static_cast<std::int32_t>(key >> 32))],
                       to = image[place(static_cast<std::int32_t>(key & 0x7fffffff))];
    if (from < 0 || to < 0) return {};
    const auto other = joined.capacities.find(key_of(from, to));
    if (other == joined.capacities.end() || other->second != capacity) return {};
  }
  return image;
}

struct Shifts {
  std::vector<Symmetry::Digit> digits;
  std::vector<std::vector<std::int32_t>> images;
};

// Digits from `stride` on whose shifts keep the wires; large digits first, which need the fewest shifts.
bool find_digits(const Joined& joined, std::int32_t stride, Shifts& shifts,
                 std::vector<std::int32_t>& failed) {
  if (stride == joined.gpus) return true;
  if (std::ranges::find(failed, stride) != failed.end()) return false;
  for (std::int32_t size = joined.gpus / stride; size >= 2; --size) {
    if (joined.gpus / stride % size != 0) continue;
    std::vector<std::int32_t> image = extend_shift(joined, {stride, size});
    if (image.empty()) continue;
    shifts.digits.push_back({stride, size});
    shifts.images.push_back(std::move(image));
    if (find_digits(joined, stride * size, shifts, failed)) return true;
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

std::optional<Symmetry> find_symmetry(const Wires& wires) {
  const Joined joined(wires);
  Shifts shifts;
  std::vector<std::int32_t> failed;
  if (!find_digits(joined, 1, shifts, failed)) return std::nullopt;

  Symmetry symmetry;
  symmetry.digits = shifts.digits;
  // Wires that shifts lead to each other are of one kind.
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
