// weft/runtime/run/feed.h -- training data: which examples each step reads.
//
//   table   .csv, .npy: a row is an example that holds the values of all inputs in order; .npz, and one
//           file per input: an example is one row of each
//   tokens  .bin or .idx: an example is a sample of tokens, with the next tokens as target
//   text    any other file: an example is a window of bytes, with the window one byte later as target
//
// The batch of a step depends only on the step's number and the seed. Rows and samples are shuffled
// anew in every epoch; windows start at random positions. Part of the data can be held out from training.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/exec/rank.h"

namespace weft::run {

// A file and the input it is for; if `input` is empty, the file holds all inputs.
struct DataFile {
  std::string input, path;
};

struct FeedOptions {
  std::int64_t holdout = 0;  // rows, or bytes of a text, held out for testing
  std::uint64_t seed = 0;
  bool partial_batches = false;  // allow fewer rows than a batch; only for testing
  bool holdout_drawn = false;    // held-out rows are drawn by the seed; otherwise the end
};

// The memory of one input of a batch, or of a rank's consecutive rows of it.
struct InputMemory {
  plan::DType dtype = plan::DType::f32;
  std::span<std::byte> bytes;
  std::int64_t first = 0, rows = 0;  // within the batch
};

class Feed {
 public:
  virtual ~Feed() = default;

  virtual std::string_view example() const = 0;        // unit of throughput: "rows" or "tokens"
  virtual std::int64_t examples_per_step() const = 0;  // in that unit
  // The inputs of the plan, in its order. Rules may have put those of a program into another one.
  std::span<const std::string> input_names() const { return names_; }
  void name_inputs(std::vector<std::string> names) { names_ = std::move(names); }

  // Writes the batch of a step, counted from 0. `inputs` has one entry per input of the plan, in
  // its order. Rows that no entry covers are not computed.
  virtual void fill(std::span<const InputMemory> inputs, std::int64_t step) const = 0;
  // Writes it to a rank's inputs.
  void fill(exec::Rank& rank, std::int64_t step) const;

  // Whether all inputs start with the batch index. If not, a step reads one example.
  virtual bool has_batch() const { return true; }

  // Rows or windows for testing: those held out, or all if none are held out.
  virtual std::int64_t test_examples() const = 0;
  // Fills the rank's inputs with a batch of test examples, starting at `first`.
  virtual void fill_test(exec::Rank& rank, std::int64_t first) const = 0;

  // A description from which another process can create the same feed with open_recipe(); empty if
  // that is not possible.
  virtual std::string recipe() const { return {}; }

  // A digest of all examples and their order, to compare the feeds of several hosts.
  virtual Digest digest() const = 0;

 private:
  std::vector<std::string> names_;
};

// Opens data for the inputs of a plan. Fails if a file does not fit them or is too short.
Result<std::unique_ptr<Feed>> open_feed(std::span<const DataFile> files, const plan::Graph& graph,
                                        const FeedOptions& options);
Result<std::unique_ptr<Feed>> open_feed(const std::string& path, const plan::Graph& graph,
                                        const FeedOptions& options);

// Made-up numbers that fit the inputs, for measuring without data.
std::unique_ptr<Feed> made_up_feed(const plan::Graph& graph, std::uint64_t seed);

// Opens the feed of a recipe. The plan must have the same inputs as the plan of the original feed.
Result<std::unique_ptr<Feed>> open_recipe(const std::string& recipe, const plan::Graph& graph);

}  // namespace weft::run
