// weft/planner/statement/observer.h -- progress, interruption and warning callbacks for planning.
#pragma once
#include <functional>
#include <string_view>

#include "weft/planner/search/distribution/search_watch.h"

namespace weft::planner {

struct Observer {
  // Called regularly. True ends a search with the best plan found so far.
  std::function<bool()> interrupted;
  // Receives the progress of the search for a model's plan, and the seconds of planning so far.
  std::function<void(std::string_view model, const search::SearchProgress& now, double seconds)> on_search;
  // Receives warnings while work continues. If null, the reply contains them.
  std::function<void(std::string_view)> on_warning;
};

}  // namespace weft::planner
