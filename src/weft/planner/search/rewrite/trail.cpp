#include "weft/planner/search/rewrite/trail.h"

namespace weft::search {

std::string_view name(Stopped stopped) {
  switch (stopped) {
    case Stopped::saturated: return "saturated";
    case Stopped::rewrite_limit: return "rewrite limit";
    case Stopped::node_limit: return "node limit";
    case Stopped::time_limit: return "time limit";
  }
  return "";
}

Counts& Counts::operator+=(const Counts& other) {
  matches += other.matches;
  rewrites += other.rewrites;
  priced += other.priced;
  plans += other.plans;
  regions += other.regions;
  searched += other.searched;
  from_cache += other.from_cache;
  return *this;
}

}  // namespace weft::search
