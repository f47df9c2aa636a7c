// Executes a chunk program on numbers with a random schedule. It shares only the program with the
// checker.
#pragma once
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::plans {

class ProgramSimulator {
 public:
  ProgramSimulator(const collective::Program& program, collective::Placement placement, std::uint64_t seed)
      : program_(program), placement_(placement), random_(seed) {}

  // The error, or empty if every output is correct.
  std::string run() {
    using namespace collective;
    for (std::int32_t rank = 0; rank < program_.collective.ranks; ++rank)
      for (std::int32_t i = 0; i < extent(program_.collective, Buffer::input, rank); ++i)
        at(rank, {Buffer::input, i}) = input(rank, i);
    struct Place {
      std::int32_t rank, block;
      std::size_t step;
      std::int32_t chunk;
    };
    std::vector<Place> places;
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank)
      for (std::size_t block = 0; block < program_.ranks[rank].blocks.size(); ++block)
        places.push_back({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(block), 0, 0});
    std::map<std::array<std::int32_t, 3>, std::deque<std::uint64_t>> fifo;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> published;  // the last published step
    for (;;) {
      std::vector<Place*> ready;
      bool left = false;
      for (Place& place : places) {
        const Threadblock& block = program_.ranks[place.rank].blocks[place.block];
        if (place.step == block.steps.size()) continue;
        left = true;
        const Step& step = block.steps[place.step];
        if (step.wait_block >= 0 && place.chunk == 0) {
          const auto seen = published.find({place.rank, step.wait_block});
          if (seen == published.end() || seen->second < step.wait_step) continue;
        }
        if (receives(step.op) && fifo[{block.receive_from, place.rank, block.channel}].empty()) continue;
        ready.push_back(&place);
      }
      if (!left) break;
      if (ready.empty()) return "hangs";
      Place& place = *ready[random_() % ready.size()];
      const Threadblock& block = program_.ranks[place.rank].blocks[place.block];
      const Step& step = block.steps[place.step];
      if (step.op != Op::nop) {
        const Slot source{step.source.buffer, step.source.index + place.chunk},
            target{step.target.buffer, step.target.index + place.chunk};
        std::uint64_t value = reads_source(step.op) ? at(place.rank, source) : 0;
        if (reads_target(step.op)) value += at(place.rank, target);
        if (receives(step.op)) {
          auto& queue = fifo[{block.receive_from, place.rank, block.channel}];
          value += queue.front();
          queue.pop_front();
        }
        if (writes_target(step.op)) at(place.rank, target) = value;
        if (sends(step.op)) fifo[{place.rank, block.send_to, block.channel}].push_back(value);
      }
      if (step.op != Op::nop && ++place.chunk < step.count) continue;
      if (step.publishes) published[{place.rank, place.block}] = static_cast<std::int32_t>(place.step);
      place.chunk = 0;
      ++place.step;
    }
    for (const auto& [connection, queue] : fifo)
      if (!queue.empty()) return "a message is never taken";
    for (std::int32_t rank = 0; rank < program_.collective.ranks; ++rank)
      for (std::int32_t i = 0; i < extent(program_.collective, Buffer::output, rank); ++i) {
        const Want wanted = want(program_.collective, rank, i);
        std::uint64_t expected = 0;
        if (wanted.what == Want::What::anything) continue;
        if (wanted.what == Want::What::chunk) expected = input(wanted.rank, wanted.index);
        if (wanted.what == Want::What::sum)
          for (std::int32_t r = 0; r < program_.collective.ranks; ++r) expected += input(r, wanted.index);
        for (const Contribution& part : wanted.contributions) expected += input(part.rank, part.index);
        if (at(rank, {Buffer::output, i}) != expected) return "an output is wrong";
      }
    return "";
  }

 private:
  static std::uint64_t input(std::int32_t rank, std::int32_t chunk) {
    return (static_cast<std::uint64_t>(rank) * 1000003 + static_cast<std::uint64_t>(chunk) + 1) *
           0x9e3779b97f4a7c15ull;
  }
  std::uint64_t& at(std::int32_t rank, collective::Slot slot) {
    slot = collective::resolve(program_.collective, placement_, rank, slot);
    return memory_[{rank, static_cast<std::int32_t>(slot.buffer), slot.index}];
  }

  const collective::Program& program_;
  const collective::Placement placement_;
  std::mt19937_64 random_;
  std::map<std::array<std::int32_t, 3>, std::uint64_t> memory_;
};

}  // namespace weft::plans
