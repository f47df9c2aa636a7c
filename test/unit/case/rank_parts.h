// test/unit/case/rank_parts.h -- what ranks do that tests start in processes of their own.
#pragma once
#include <unistd.h>

#include <fstream>
#include <string>

#include "weft/runtime/run/rank_program.h"

namespace weft::session {

// Rank 2 has a reason not to come; the others wait for it.
inline Status fail_as_rank_two(const std::shared_ptr<transport::Job>& job, std::span<const std::byte>) {
  if (job->rank() == 2) return world_error("no disk", "buy one");
  const std::int32_t all[] = {0, 1, 2};
  const auto met = job->exchange(all, {0, 1}, {});
  if (met.ok()) return {};
  return met.error();
}

// A variable of the starter's that no rank may see changed: it starts afresh.
inline int& grown() {
  static int value = 0;
  return value;
}

// Writes what it was given and what it is to the file whose name the work is.
inline Status tell_what_it_is(const std::shared_ptr<transport::Job>& job, std::span<const std::byte> work) {
  const std::string name(reinterpret_cast<const char*>(work.data()), work.size());
  std::ofstream(name + std::to_string(job->rank()))
      << job->rank() << " of " << job->ranks() << ", grown " << grown();
  return {};
}

inline constexpr run::NamedPart kRankParts[] = {{"fail as rank two", &fail_as_rank_two},
                                                {"tell what it is", &tell_what_it_is}};

}  // namespace weft::session
