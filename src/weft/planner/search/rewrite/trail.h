// weft/planner/search/rewrite/trail.h -- what a search did, and what it did not do and why.
//
//   merge_products    encoder.3.q, encoder.3.k          -11.4 us
//   merge_products    encoder.3.q, encoder.3.v          -10.9 us      a step: the chosen plan keeps these
//
//   hoist_relu        encoder.3.hidden     the cost would rise by 2.1 us
//   merge_products    encoder.3.k, encoder.3.v          taken first by merge_products
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::search {

struct Step {
  std::string rule;
  std::vector<std::string> replaced;  // paths of the nodes it matched, as verify.h describes nodes
  double change = 0;                  // seconds; a step may lose what a later one wins back

  friend bool operator==(const Step&, const Step&) = default;
};

// Where a rule was considered and not taken.
struct Refusal {
  std::string rule;
  std::vector<std::string> nodes;
  std::string because;  // "guard: ..", "the cost would rise by 2.1 us", "taken first by merge_products"

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

enum class Stopped : std::uint8_t {
  saturated,  // of all that the search looks at, nothing pays any more
  rewrite_limit,
  node_limit,
  time_limit
};

std::string_view name(Stopped stopped);  // "rewrite limit"

struct Counts {
  std::int64_t matches = 0;     // seen, each once for each plan it was seen in
  std::int64_t rewrites = 0;    // tried
  std::int64_t priced = 0;      // nodes handed to the cost model
  std::int64_t plans = 0;       // distinct plans whose cost was compared
  std::int64_t regions = 0;     // that the plan was cut into
  std::int64_t searched = 0;    // of them, those that were searched; the others were known already
  std::int64_t from_cache = 0;  // of them, those that an earlier run had planned

  Counts& operator+=(const Counts& other);
  friend bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace weft::search
