// weft/runtime/run/step_request.h -- the word that ranks all-reduce before every step, to agree on what to do.
//
// Included by the files of run/ only.
#pragma once
#include <cstdint>

namespace weft::run {

// What a rank requests before a step. All ranks follow the largest word.
enum Word : std::int64_t {
  kContinue,
  kContinueAndGather,
  kChangePlan,
  kTimeUp,
  kInterrupted,
  kTerminated,
  kDone,
  kAbort
};

// A word and the rank that sent it, packed so that the maximum is the largest word from the lowest
// rank.
struct StepRequest {
  Word word = kContinue;
  std::int32_t rank = 0;

  static constexpr std::int64_t kMostRequesters = std::int64_t{1} << 20;
  constexpr std::int64_t pack() const { return word * kMostRequesters + (kMostRequesters - 1 - rank); }
  static constexpr StepRequest unpack(std::int64_t packed) {
    return {static_cast<Word>(packed / kMostRequesters),
            static_cast<std::int32_t>(kMostRequesters - 1 - packed % kMostRequesters)};
  }
};

}  // namespace weft::run
