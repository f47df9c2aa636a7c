// weft/planner/statement/observer.h -- who looks on while a statement is planned: hears how far it is, may stop it.
#pragma once
#include <functional>
#include <string_view>

#include "weft/planner/search/distribution/search_watch.h"

namespace weft::planner {

struct Observer {
  // Asked now and then; true ends a search with the best that it has found.
  std::function<bool()> interrupted;
  // Told how far the search for the plan of a model is, and for how many seconds it has been planned.
  std::function<void(std::string_view model, const search::SearchProgress& now, double seconds)> on_search;
  // Told of what goes wrong while work goes on; the reply tells it where nobody listens.
  std::function<void(std::string_view)> on_warning;
};

}  // namespace weft::planner
