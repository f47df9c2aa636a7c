// progress.h -- shows how far a training or a search is, on the standard error.
//
// On a terminal a bar that is drawn over itself and gone when the answer comes; elsewhere plain lines,
// about ten a training and one a minute in long ones, and none of a search.
#pragma once
#include "weft/app/explain/progress.h"

namespace weft {

class ProgressDisplay {
 public:
  ProgressDisplay();

  void show(const explain::Progress& progress);
  void clear();  // before anything else is printed

 private:
  void show_bar(const explain::Progress& progress);
  void show_line(const explain::Progress& progress);

  bool terminal_, unicode_;
  bool drawn_ = false;
  std::string model_;
  std::int64_t next_step_ = 0;  // when the next line is due
  double next_seconds_ = 0;
};

}  // namespace weft
