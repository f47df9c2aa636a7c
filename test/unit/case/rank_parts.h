// test/unit/case/rank_parts.h -- functions that tests run as ranks in separate processes.
#pragma once
#include <unistd.h>

#include <fstream>
#include <string>

#include "weft/runtime/run/rank_program.h"

namespace weft::session {

// Rank 2 fails before the exchange for which the others wait.
inline Status fail_as_rank_two(const std::shared_ptr<transport::Job>& job, std::span<const std::byte>) {
  if (job->rank() == 2) return environment_error("no disk", "buy one");
  const std::int32_t all[] = {0, 1, 2};
  const auto met = job->exchange(all, {0, 1}, {});
  if (met.ok()) return {};
  return met.error();
}

// A variable that the starting process changes. Ranks start with a fresh copy.
inline int& grown() {
  static int value = 0;
  return value;
}

// Writes its rank, the number of ranks and grown() to the file named by the work.
inline Status tell_what_it_is(const std::shared_ptr<transport::Job>& job, std::span<const std::byte> work) {
  const std::string name(reinterpret_cast<const char*>(work.data()), work.size());
  std::ofstream(name + std::to_string(job->rank()))
      << job->rank() << " of " << job->ranks() << ", grown " << grown();
  return {};
}

inline constexpr run::NamedRankFunction kRankParts[] = {{"fail as rank two", &fail_as_rank_two},
                                                        {"tell what it is", &tell_what_it_is}};

}  // namespace weft::session
