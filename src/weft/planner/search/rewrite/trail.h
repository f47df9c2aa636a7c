// weft/planner/search/rewrite/trail.h -- the rewrites that a search applied, and why it rejected others.
//
//   merge_products    encoder.3.q, encoder.3.k          -11.4 us
//   merge_products    encoder.3.q, encoder.3.v          -10.9 us      a step of the chosen plan
//
//   hoist_relu        encoder.3.hidden     the cost would rise by 2.1 us
//   merge_products    encoder.3.k, encoder.3.v          already rewritten by merge_products
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::search {

struct Step {
  std::string rule;
  std::vector<std::string> replaced;  // paths of the matched nodes, as in verify.h
  double change = 0;                  // seconds; may be positive if a later step gains more

  friend bool operator==(const Step&, const Step&) = default;
};

// A match that was considered but not applied.
struct Refusal {
  std::string rule;
  std::vector<std::string> nodes;
  std::string because;  // "guard: ..", "the cost would rise by 2.1 us", "already rewritten by .."

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

enum class Stopped : std::uint8_t {
  saturated,  // nothing in the search space pays any more
  rewrite_limit,
  node_limit,
  time_limit
};

std::string_view name(Stopped stopped);  // "rewrite limit"

struct Counts {
  std::int64_t matches = 0;     // found, counted once per plan
  std::int64_t rewrites = 0;    // tried
  std::int64_t priced = 0;      // nodes evaluated by the cost model
  std::int64_t plans = 0;       // distinct plans compared
  std::int64_t regions = 0;     // of the plan
  std::int64_t searched = 0;    // regions that were searched; the others were known
  std::int64_t from_cache = 0;  // regions planned by an earlier run

  Counts& operator+=(const Counts& other);
  friend bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace weft::search
