// weft/runtime/run/step_word.h -- the word that ranks all-reduce before every step, to agree on what to do.
//
// Included by the files of run/ only.
#pragma once
#include <cstdint>

namespace weft::run {

// What a rank requests before a step. All ranks follow the largest word.
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

// A word and the rank that sent it, packed so that the maximum is the largest word from the lowest
// rank.
struct SaidWord {
  Word word = kGoOn;
  std::int32_t rank = 0;

  static constexpr std::int64_t kSayers = std::int64_t{1} << 20;
  constexpr std::int64_t pack() const { return word * kSayers + (kSayers - 1 - rank); }
  static constexpr SaidWord unpack(std::int64_t packed) {
    return {static_cast<Word>(packed / kSayers), static_cast<std::int32_t>(kSayers - 1 - packed % kSayers)};
  }
};

}  // namespace weft::run
