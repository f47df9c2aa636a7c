// weft/planner/step/statement_pipeline.h -- a statement as a problem for the search of pipeline plans.
//
//   TRAIN char_gpt ON LOCAL 4 ..    the model at any number of rows, bound once per number; cluster and costs
//
// The estimate of a pipeline plan and the cuts of one that runs use the same problem.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

// The index that micro-batches split, and its size.
struct Batch {
  std::string name;
  std::int64_t rows = 1;
};

// batch_of returns nothing if the model does not name the batch index; needed_batch_of fails.
std::optional<Batch> batch_of(const Prepared& prepared);
Result<Batch> needed_batch_of(const Prepared& prepared);

// The statement without stages, micro-batches and recomputation.
Result<Prepared> without_recompute(const Knowledge& state, const Prepared& prepared);

class StatementPipeline {
 public:
  // `micro_batches`: for the statistics of batch norms. `context` may be null.
  // REQUIRES: all arguments outlive it.
  StatementPipeline(const Knowledge& state, const Observer* context, const Prepared& prepared,
                    const Batch& batch, std::int64_t micro_batches);
  StatementPipeline(const StatementPipeline&) = delete;
  StatementPipeline& operator=(const StatementPipeline&) = delete;

  const search::PipelineProblem& problem() const { return problem_; }
  // The statement without stages and micro-batches, with this number of rows.
  Result<const Prepared*> at_rows(std::int64_t rows);
  // The same with the recomputation that a search chose.
  Result<Prepared> recomputed(std::int64_t rows, const train::Recompute& what) const;

  // Renames mesh axes for cost lookup. Ranks of this machine form one cluster axis, and a
  // distribution may name its factors freely; costs know them as factors of that axis. One rank is
  // a mesh of one.
  distribute::Distribution as_priced(distribute::Distribution distribution) const;

 private:
  const Knowledge& state_;
  const cluster::Cluster cluster_;
  const search::Machine machine_;
  // The same cluster restricted to one kind of device, by device name.
  struct OfOneKind {
    cluster::Cluster cluster;
    search::Machine machine;
  };
  std::map<std::string, OfOneKind> kinds_;
  PlanRequest like_;  // without stages and micro-batches
  std::string batch_;
  std::map<std::int64_t, Prepared> made_;  // by rows
  search::PipelineProblem problem_;
};

}  // namespace weft::planner
