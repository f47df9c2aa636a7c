// weft/planner/step/time_problem.h -- a statement as the search for plans in time takes it.
//
//   TRAIN char_gpt ON LOCAL 4 ..    the model at any number of rows, bound once each; the cluster and what it costs
//
// What prices a plan in time and what cuts the stages of one that runs ask the same problem.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weft/planner/search/pipeline/choose_in_time.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

// The index that micro-batches cut, and its size.
struct Batch {
  std::string name;
  std::int64_t rows = 1;
};

// None where the model has no name for it; the other fails there.
std::optional<Batch> batch_of(const Prepared& prepared);
Result<Batch> needed_batch_of(const Prepared& prepared);

// The statement without time, and with nothing computed again.
Result<Prepared> without_recompute(const Knowledge& state, const Prepared& prepared);

class TimeProblem {
 public:
  // `micro_batches`: that batch norms take their statistics from. REQUIRES: all of them outlive it; `context` may be
  // null.
  TimeProblem(const Knowledge& state, const Observer* context, const Prepared& prepared, const Batch& batch,
              std::int64_t micro_batches);
  TimeProblem(const TimeProblem&) = delete;
  TimeProblem& operator=(const TimeProblem&) = delete;

  const search::InTimeProblem& problem() const { return problem_; }
  // The statement without time, for so many rows.
  Result<const Prepared*> at_rows(std::int64_t rows);
  // The same with what a search chose to do again.
  Result<Prepared> recomputed(std::int64_t rows, const train::Recompute& what) const;

  // Ranks of this machine lie along one axis, whose factors a distribution may call what it likes: prices know them
  // as factors of that axis. One rank is a mesh of one.
  distribute::Distribution as_priced(distribute::Distribution distribution) const;

 private:
  const Knowledge& state_;
  const cluster::Cluster cluster_;
  const search::Machine machine_;
  // The same cluster with one of its kinds of devices alone, by name.
  struct OfOneKind {
    cluster::Cluster cluster;
    search::Machine machine;
  };
  std::map<std::string, OfOneKind> kinds_;
  PlanRequest like_;  // without time
  std::string batch_;
  std::map<std::int64_t, Prepared> made_;  // by rows
  search::InTimeProblem problem_;
};

}  // namespace weft::planner
