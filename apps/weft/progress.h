// progress.h -- shows the progress of a training run or a search on standard error.
//
// On a terminal: a bar, redrawn in place and removed before the reply. Elsewhere: plain lines,
// about ten per training run and one per minute in long ones, and none for a search.
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
