// step_moves(): turns a schedule into moves, and locates each chunk on every device it passes.
#include <map>

#include <fmt/format.h>

#include "weft/collectives/synthesis/step_schedule.h"

namespace weft::synthesis {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Move;
using collective::Place;

class MoveWriter {
 public:
  MoveWriter(const StepQuestion& question, const StepNetwork& network) : network_(network) {
    moves_.collective = step_collective(question, network.devices);
    moves_.name =
        fmt::format("{}_{}_{}_{}", name(question.kind), question.chunks, question.steps, question.rounds);
    moves_.in_place = !rests_in_scratch();
    moves_.scratch.assign(static_cast<std::size_t>(network.devices), 0);
  }

  // Runs the schedule backwards: each send becomes a reduction in the opposite direction.
  void combine(const StepSchedule& schedule) {
    const StepNetwork back = reversed(network_);
    for (auto send = schedule.sends.rbegin(); send != schedule.sends.rend(); ++send) {
      const StepEdge& edge = back.edges[static_cast<std::size_t>(send->edge)];
      add(Move::Verb::reduce, {edge.to, Buffer::input, send->chunk}, {edge.from, Buffer::input, send->chunk});
    }
  }

  void spread(const StepSchedule& schedule) {
    if (rests_in_scratch()) keep_own();
    for (const StepSend& send : schedule.sends) {
      const StepEdge& edge = network_.edges[static_cast<std::size_t>(send.edge)];
      const Place from = place(send.chunk, edge.from);
      add(Move::Verb::copy, from, place(send.chunk, edge.to));
    }
  }

  collective::Moves take() { return std::move(moves_); }

 private:
  // Whether chunks in transit have no place in the buffers and go to scratch.
  bool rests_in_scratch() const {
    const Kind kind = moves_.collective.kind;
    return kind == Kind::all_to_all || kind == Kind::gather || kind == Kind::scatter;
  }

  void add(Move::Verb verb, const Place& from, const Place& to) {
    moves_.moves.push_back({verb, from, to, 1, -1});
  }

  Place place(std::int32_t chunk, std::int32_t device) {
    const std::int32_t copies = moves_.collective.chunks;
    const std::int32_t devices = network_.devices, root = moves_.collective.root;
    const std::int32_t block = chunk / copies, copy = chunk % copies;
    switch (moves_.collective.kind) {
      case Kind::all_gather: return {device, Buffer::output, chunk};
      case Kind::all_to_all: {
        const std::int32_t source = block / devices, target = block % devices;
        if (device == source) return {device, Buffer::input, target * copies + copy};
        if (device == target) return {device, Buffer::output, source * copies + copy};
        return resting(chunk, device);
      }
      case Kind::gather:
        if (device == block) return {device, Buffer::input, copy};
        if (device == root) return {device, Buffer::output, chunk};
        return resting(chunk, device);
      case Kind::scatter:
        if (device == root) return {device, Buffer::input, chunk};
        if (device == block) return {device, Buffer::output, copy};
        return resting(chunk, device);
      default: return {device, Buffer::input, chunk};  // broadcast, all_reduce
    }
  }

  Place resting(std::int32_t chunk, std::int32_t device) {
    std::int32_t& used = moves_.scratch[static_cast<std::size_t>(device)];
    const auto [slot, is_new] = resting_.try_emplace({chunk, device}, used);
    if (is_new) ++used;
    return {device, Buffer::scratch, slot->second};
  }

  // Out of place, a device must also copy the block that it keeps.
  void keep_own() {
    const std::int32_t copies = moves_.collective.chunks, devices = network_.devices;
    const std::int32_t root = moves_.collective.root;
    for (std::int32_t device = 0; device < devices; ++device) {
      const bool from_all = moves_.collective.kind != Kind::gather,
                 to_all = moves_.collective.kind != Kind::scatter;
      if (!(from_all && to_all) && device != root) continue;
      moves_.moves.push_back({Move::Verb::copy,
                              {device, Buffer::input, from_all ? device * copies : 0},
                              {device, Buffer::output, to_all ? device * copies : 0},
                              copies,
                              -1});
    }
  }

  const StepNetwork& network_;
  collective::Moves moves_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> resting_;
};

}  // namespace

collective::Moves step_moves(const StepQuestion& question, const StepNetwork& network,
                             const StepSchedule* combine, const StepSchedule* spread) {
  MoveWriter writer(question, network);
  if (combine) writer.combine(*combine);
  if (spread) writer.spread(*spread);
  return writer.take();
}

}  // namespace weft::synthesis
