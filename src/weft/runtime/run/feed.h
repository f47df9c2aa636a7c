// weft/runtime/run/feed.h -- the data of a training run: which examples each step sees.
//
//   table   .csv, .npy: a row is an example, its values the inputs one after the other; .npz, and a file
//           for each input: a row of each is an example
//   text    any other file: an example is a window of bytes, and the same one byte further on
//
// The batch of a step depends on the step's number and the seed alone. Rows come in an order that is
// shuffled anew each time all were seen, windows from anywhere in the text. The last part of the data
// may be held out: training does not see it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/exec/rank.h"

namespace weft::run {

// A file, and the input that it is for; none: it has all of them.
struct DataFile {
  std::string input, path;
};

struct FeedOptions {
  std::int64_t holdout = 0;  // rows, or bytes of a text, kept for testing
  std::uint64_t seed = 0;
  bool partial_batches = false;  // fewer rows than a step takes are enough: for testing alone
  bool holdout_drawn = false;    // by the seed, from anywhere; else it is the end
};

// Where one input of a batch goes, or the part of it that a rank takes: whole rows, one after the other.
struct InputMemory {
  plan::DType dtype = plan::DType::f32;
  std::span<std::byte> bytes;
  std::int64_t first = 0, rows = 0;  // of the batch
};

class Feed {
 public:
  virtual ~Feed() = default;

  virtual std::string_view example() const = 0;        // "rows" or "tokens": what throughput counts
  virtual std::int64_t examples_per_step() const = 0;  // of that
  // Writes the batch of a step, counted from 0: one memory for each input of the plan, in its order. Rows
  // that nobody takes are not made.
  virtual void fill(std::span<const InputMemory> inputs, std::int64_t step) const = 0;
  // The same into a rank's inputs.
  void fill(exec::Rank& rank, std::int64_t step) const;

  // Whether the inputs begin with the index of the examples. If not, a step takes one, all of every input.
  virtual bool has_batch() const { return true; }

  // Rows or windows for testing: those held out, or all where none are.
  virtual std::int64_t test_examples() const = 0;
  // Fills the rank's inputs with as many of them as its batch takes, from `first` on.
  virtual void fill_test(exec::Rank& rank, std::int64_t first) const = 0;

  // From what another process makes the same feed: see open_recipe(). Empty: it cannot.
  virtual std::string recipe() const { return {}; }

  // Of all examples and of the order they come in: what tells it from the feed of another host.
  virtual Digest digest() const = 0;
};

// Reads the data for the inputs of a plan. Fails when the file does not fit them or is too short.
Result<std::unique_ptr<Feed>> open_feed(std::span<const DataFile> files, const plan::Graph& graph,
                                        const FeedOptions& options);
Result<std::unique_ptr<Feed>> open_feed(const std::string& path, const plan::Graph& graph,
                                        const FeedOptions& options);

// Numbers made up to fit the inputs, for measuring where no data is given.
std::unique_ptr<Feed> made_up_feed(const plan::Graph& graph, std::uint64_t seed);

// The feed of a recipe, for a plan with the same inputs as that of the feed it comes from.
Result<std::unique_ptr<Feed>> open_recipe(const std::string& recipe, const plan::Graph& graph);

}  // namespace weft::run
