#include "weft/collectives/reshard/replay.h"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::reshard {
namespace {

constexpr std::int64_t kNothing = -1;

using Place = std::vector<std::int64_t>;

// The memory of one device: only the boxes that it has.
class Memory {
 public:
  void add(const Box& box) {
    std::int64_t elements = 1;
    for (const plan::Share& share : box) elements *= share.size;
    boxes_.push_back({box, std::vector<std::int64_t>(static_cast<std::size_t>(elements), kNothing)});
  }

  // Null if no box contains the place.
  std::int64_t* at(const Place& place) {
    for (Array& array : boxes_) {
      std::int64_t offset = 0;
      bool inside = true;
      for (std::size_t dim = 0; dim < place.size() && inside; ++dim) {
        const plan::Share& share = array.box[dim];
        inside = place[dim] >= share.begin && place[dim] < share.begin + share.size;
        offset = offset * share.size + (place[dim] - share.begin);
      }
      if (inside) return &array.values[static_cast<std::size_t>(offset)];
    }
    return nullptr;
  }

 private:
  struct Array {
    Box box;
    std::vector<std::int64_t> values;
  };
  std::vector<Array> boxes_;
};

// Calls `visit` for every place of the box, and stops at the first failure.
template <class Visit>
Status for_each_place(const Box& box, const Visit& visit) {
  Place place;
  for (const plan::Share& share : box) {
    if (share.size <= 0) return {};
    place.push_back(share.begin);
  }
  while (true) {
    WEFT_TRY_STATUS(visit(place));
    std::size_t dim = box.size();
    while (dim > 0 && ++place[dim - 1] == box[dim - 1].begin + box[dim - 1].size) {
      place[dim - 1] = box[dim - 1].begin;
      --dim;
    }
    if (dim == 0) return {};
  }
}

std::int64_t number_of(const std::vector<std::int64_t>& sizes, const Place& place) {
  std::int64_t number = 0;
  for (std::size_t dim = 0; dim < place.size(); ++dim) number = number * sizes[dim] + place[dim];
  return number;
}

Status check_size(const Reshard& reshard) {
  double elements = 0;
  for (const auto* holdings : {&reshard.sources, &reshard.destinations})
    for (const Holding& holding : *holdings) {
      double held = 1;
      for (const plan::Share& share : holding.box) held *= static_cast<double>(share.size);
      elements += held;
    }
  if (elements <= static_cast<double>(kMostReplayed)) return {};
  return user_error(
      fmt::format("too large to replay: expected at most {} elements on all devices, found {:.0f}",
                  kMostReplayed, elements));
}

Error wrong_move(std::size_t move, std::string_view what, std::int32_t device, const Place& place) {
  return user_error(
      fmt::format("move {} {}: device {}, element [{}]", move, what, device, fmt::join(place, ", ")));
}

}  // namespace

Status replay(const Reshard& reshard, std::span<const Move> moves) {
  WEFT_TRY_STATUS(check_size(reshard));
  std::map<std::int32_t, Memory> before, after;
  for (const Holding& holding : reshard.sources) {
    Memory& memory = before[holding.device];
    memory.add(holding.box);
    WEFT_TRY_STATUS(for_each_place(holding.box, [&](const Place& place) -> Status {
      *memory.at(place) = number_of(reshard.sizes, place);
      return {};
    }));
  }
  for (const Holding& holding : reshard.destinations) after[holding.device].add(holding.box);

  for (std::size_t m = 0; m < moves.size(); ++m) {
    const Move& move = moves[m];
    if (move.box.size() != reshard.sizes.size())
      return user_error(
          fmt::format("move {} has a box of {} dims, expected {}", m, move.box.size(), reshard.sizes.size()));
    Memory& sender = (move.relay ? after : before)[move.from];
    Memory& receiver = after[move.to];
    WEFT_TRY_STATUS(for_each_place(move.box, [&](const Place& place) -> Status {
      const std::int64_t* read = sender.at(place);
      if (read == nullptr || *read == kNothing)
        return wrong_move(m, "reads what its sender does not hold", move.from, place);
      std::int64_t* written = receiver.at(place);
      if (written == nullptr) return wrong_move(m, "writes what its receiver does not need", move.to, place);
      if (*written != kNothing) return wrong_move(m, "writes what its receiver has already", move.to, place);
      *written = *read;
      return {};
    }));
  }

  for (const Holding& holding : reshard.destinations)
    WEFT_TRY_STATUS(for_each_place(holding.box, [&](const Place& place) -> Status {
      const std::int64_t expected = number_of(reshard.sizes, place), found = *after[holding.device].at(place);
      if (found == expected) return {};
      return user_error(fmt::format("device {} has {} at [{}], expected {}", holding.device,
                                    found == kNothing ? "nothing" : fmt::to_string(found),
                                    fmt::join(place, ", "), expected));
    }));
  return {};
}

}  // namespace weft::reshard
