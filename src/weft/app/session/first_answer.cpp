#include "weft/app/session/first_answer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/median.h"

namespace weft::session {
namespace {

constexpr int kTurns = 5;

template <class Do>
Result<double> median_of_turns(const Do& turn) {
  std::vector<double> seconds;
  for (int i = 0; i < kTurns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    WEFT_TRY_STATUS(turn());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(std::move(seconds));
}

}  // namespace

Result<explain::FirstAnswer> measure_first_answer(exec::Rank& rank, device::Device& device) {
  const program::Program& program = rank.program();
  std::vector<std::unique_ptr<device::HostMemory>> pages;
  std::vector<exec::Loaded> weights;
  explain::FirstAnswer found;
  for (const auto* const ports : {&program.parameters, &program.states})
    for (const program::Port& port : *ports) {
      WEFT_TRY(held, rank.read(port));
      const std::span<const std::byte> bytes = held.bytes();
      if (bytes.empty()) continue;
      WEFT_TRY(memory, device.allocate_host(static_cast<std::int64_t>(bytes.size())));
      std::memcpy(memory->bytes().data(), bytes.data(), bytes.size());
      weights.push_back({&port, std::span<const std::byte>(memory->bytes()).first(bytes.size()),
                         /*is_page_locked=*/true});
      found.bytes += static_cast<double>(bytes.size());
      pages.push_back(std::move(memory));
    }
  WEFT_TRY(computing, median_of_turns([&] { return rank.step(); }));
  found.computing = computing;
  {
    WEFT_TRY(room, device.allocate(static_cast<std::int64_t>(found.bytes)));
    WEFT_TRY(stream, device.make_stream({.computes = false}));
    WEFT_TRY(copying, median_of_turns([&] {
               std::int64_t at = 0;
               for (const exec::Loaded& one : weights) {
                 stream->copy_in(room->address() + at, one.bytes);
                 at += static_cast<std::int64_t>(one.bytes.size());
               }
               return stream->synchronize();
             }));
    found.copying = copying;
  }
  exec::LoadingPace pace;
  if (found.copying > 0) pace.wire.bytes_per_second = found.bytes / found.copying;
  const auto answer = [&](const exec::LoadingGroups& groups) {
    return median_of_turns([&]() -> Status {
      WEFT_TRY_STATUS(rank.load(weights, groups));
      return rank.step();
    });
  };
  // Without compute time to overlap, all weights form one group.
  WEFT_TRY(one_by_one, answer(exec::loading_groups(program, weights, pace)));
  found.one_after_the_other = one_by_one;
  pace.step_seconds = found.computing;
  const exec::LoadingGroups groups = exec::loading_groups(program, weights, pace);
  found.groups = groups.size();
  WEFT_TRY(together, answer(groups));
  found.seconds = together;
  return found;
}

}  // namespace weft::session
