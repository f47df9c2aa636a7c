// weft/planner/statement/warnings.h -- warnings and notes for the user.
//
//   warning: the proof cache is neither read nor written: expected a folder that only its owner may ..
//     chmod go-w /x
//
// Nothing is printed here: a reply contains the warnings before its error.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::planner {

class Warnings {
 public:
  // Adds a warning unless the status is ok. `so`: the consequence.
  void add(std::string_view so, const Status& status);

  // Reports a warning immediately if `on_warning` is set; otherwise the reply contains it.
  void add_now(std::string_view so, const Status& status,
               const std::function<void(std::string_view)>& on_warning);

  // Adds a note: expected behaviour that may be surprising.
  void note(std::string_view what, std::string_view more);
  // The same on one line, but only the first time.
  void note_once(std::string_view what, std::string_view more);

  // Returns and clears what was not reported yet.
  std::string take();

 private:
  std::string untold_;
  std::set<std::string> known_;
};

}  // namespace weft::planner
