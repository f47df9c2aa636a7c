// bench/support/training_rank.h -- one rank that trains a shipped model on synthetic data.
//
//   TrainingRank rank("digits_mlp", {.workers = 2, .labels = 10});
//   rank.step();     // forward, backward and Adam on the next of a few batches
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/bind.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/exec/rank.h"

namespace weft::bench {

// Unwraps a result. Benchmarks stop at the first failure.
template <class T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// The shipped models, devices and clusters.
const language::Catalog& shipped();

// Forward, backward and Adam of a shipped model.
train::TrainingPlan training_plan(std::string_view model, std::vector<language::SizeOverride> sizes = {},
                                  std::string_view precision = "f32");
std::shared_ptr<const plan::Graph> training_graph(std::string_view model,
                                                  std::vector<language::SizeOverride> sizes = {},
                                                  std::string_view precision = "f32");

struct TrainingData {
  int workers = 1;
  std::int64_t labels = 10;  // upper bound of random integers; reals are pixels, 0 to 16
  std::string_view precision = "f32";
};

class TrainingRank {
 public:
  TrainingRank(std::string_view model, const TrainingData& data);

  void step();
  void step(program::Timeline& timeline);

  const exec::Rank& rank() const { return *rank_; }
  std::int64_t parameter_elements() const;

 private:
  void fill_parameters();
  void draw_batches(std::int64_t labels);
  void feed();

  std::unique_ptr<exec::Rank> rank_;
  std::vector<std::vector<std::vector<std::byte>>> batches_;  // by batch and input
  std::size_t next_ = 0;
};

}  // namespace weft::bench
