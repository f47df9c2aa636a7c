// weft/planner/search/bucket/cut_exchanges.h -- long all-reduces in parts, so that what is there first is read first.
//
//   %5, %6 = all-reduce %2, %3 {axis=gpu}      =>      %5, %6 = all-reduce %2, %3 {axis=gpu, parts=4}
//
// Along an axis one part is under way at a time, so the size of a part is a credit: no more bytes of all-reduces than
// that are in flight there, whatever waits behind them, and what is urgent overtakes between two parts
// (program/tasks/exchange_parts.h). Each part has its latency: a smaller credit releases earlier and takes longer in all.
// Several credits are simulated; the quickest stands, if the step is shorter by `least_gain`. One that is given is
// honoured whatever it gains.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

// The least piece in which a communicator passes on what it moves: calls below it are latency alone.
constexpr double kLeastCredit = 32 << 10;

struct CreditOptions {
  double least_gain = 0.02;  // of the step
  double memory_bytes = 0;   // that a rank may take; 0: no limit
  double credit = 0;         // bytes of a part; 0: as it is quickest
};

struct CutExchanges {
  std::optional<PredictedPlan> plan;  // none: it stays as it is
  double credit = 0;                  // of the plan
  std::string said;  // "2 all-reduces in 9 parts of at most 4 MiB"; where there is no plan, why not
};

Result<CutExchanges> cut_exchanges(const PredictedPlan& before, const Machine& machine,
                                   const CreditOptions& options = {});

// The plan with its all-reduces in parts of at most so many bytes, `bytes` being by node what each moves; how many were
// cut, and in how many parts.
struct InParts {
  distribute::DistributedPlan plan;
  std::size_t cut = 0, parts = 0;
};
Result<InParts> in_parts(const distribute::DistributedPlan& plan, std::span<const std::int64_t> bytes,
                         double credit);

}  // namespace weft::search
