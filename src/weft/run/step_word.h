// weft/run/step_word.h -- what ranks say to each other before every step.
//
// Included by the files of run/ only.
#pragma once
#include <cstdint>

namespace weft::run {

// What a rank wants before a step. What all do is the largest.
enum Word : std::int64_t {
  kGoOn,
  kGoOnAndKeep,
  kChangePlan,
  kTimeUp,
  kInterrupted,
  kTerminated,
  kDone,
  kGiveUp
};

}  // namespace weft::run
