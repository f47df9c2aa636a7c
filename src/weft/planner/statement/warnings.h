// weft/planner/statement/warnings.h -- what a user should know although everything goes on.
//
//   warning: the proof cache is neither read nor written: expected a folder that only its owner may write to: /x has mode 0777
//     chmod go-w /x
//
// Nothing here prints: a reply carries the warnings in front of its complaint.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::planner {

class Warnings {
 public:
  // Nothing, where it is ok. `so` says what is done without.
  void add(std::string_view so, const Status& status);

  // What a user should know now, where there is a way to say it; else the reply says it.
  void add_now(std::string_view so, const Status& status,
               const std::function<void(std::string_view)>& on_warning);

  // What is right, and might surprise.
  void note(std::string_view what, std::string_view more);
  // The same, and only the first time.
  void note_once(std::string_view what, std::string_view more);

  // What was not told before.
  std::string take();

 private:
  std::string untold_;
  std::set<std::string> known_;
};

}  // namespace weft::planner
