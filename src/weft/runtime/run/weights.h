// weft/runtime/run/weights.h -- the trained tensors of a model by name: parameters, states and moments.
//
// A session keeps one per model that it trained or loaded. SAVE writes it, LOAD reads it, TRAIN
// continues from it, and INFER uses it. Together with the data and the settings it determines the
// next step, so a run that was saved and loaded continues as if it had not stopped.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/formats/safetensors.h"
#include "weft/runtime/exec/host_bytes.h"
#include "weft/runtime/exec/rank.h"

namespace weft::run {

struct Tensor {
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct Weights {
  std::string model;
  std::int64_t step = 0;                                    // steps completed so far
  std::uint64_t seed = 0;                                   // for initial values and the order of the data
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // of the model when it was trained
  std::map<std::string, Tensor, std::less<>> tensors;
  std::string plan = {};    // the plan it was trained with, as written by the session; empty: unknown
  std::string launch = {};  // the `weft launch` it was trained under; empty: none
};

// A copy without the tensors.
Weights without_tensors(const Weights& weights);

std::vector<std::int64_t> shape_of(const program::Place& place);

// The initial values of a parameter or state, given by its node in a plan. An element depends only
// on the seed, the tensor's name and its position.
void write_initial(const plan::NodeView& source, std::uint64_t seed, std::span<std::byte> memory);
// Fills a rank's parameters and states with their initial values.
Status write_initial(exec::Rank& rank, std::uint64_t seed);

// The tensor with a given name; null if it is missing and not needed. Fails if it is missing and
// needed, or has another type or shape.
Result<const Tensor*> find_tensor(const Weights& weights, const std::string& name, plan::DType dtype,
                                  const std::vector<std::int64_t>& shape, bool needed);

// Creates a missing master weight from its parameter, for weights that were imported or trained
// without one. Empty if the name is not that of a master weight, or if the parameter is missing.
std::optional<Tensor> make_master(const Weights& weights, std::string_view name, plan::DType dtype);

// The error feedback of codecs (distribute/feedback.h), which has one row per rank. For a different
// number of ranks, rows are added up, so that their total is still to be sent. Empty if the weights
// have none.
std::optional<Tensor> fold_feedback(const Weights& weights, std::string_view name, const plan::Graph& graph,
                                    const plan::Type& type);

// Fills a rank's parameters and states from weights, and optional tensors that are missing, such as
// an optimizer's moments, with initial values. Fails if a parameter is missing or has another
// shape. `computed` holds parameters computed from weights (fold_weights.h).
Status write_weights(exec::Rank& rank, const Weights& weights,
                     const std::map<std::string, Tensor, std::less<>>& computed = {});

// The same asynchronously: tasks of the next step wait only for the tensors they read
// (exec/loading.h). Both arguments must stay alive until that step ends.
Status load_weights(exec::Rank& rank, const Weights& weights,
                    const std::map<std::string, Tensor, std::less<>>& computed);

// Copies the rank's parameters and states.
Status read_weights(const exec::Rank& rank, Weights& weights);
// The same when no step follows: frees each tensor's memory in the rank once it is copied, so that
// the weights are not in memory twice.
Status take_weights(exec::Rank& rank, Weights& weights);

// Copies the states of other optimizers to `learned`: those in `before` that `learned` lacks.
void keep_moments(Weights& learned, Weights before);
std::int64_t bytes_of(const Weights& weights);
// A digest of everything that the next step depends on.
Digest digest_of(const Weights& weights);

formats::Checkpoint to_checkpoint(const Weights& weights);

// A checkpoint of a rank's current tensors without copying them; valid until the next step.
// `weights` provides all but the tensors.
struct RankCheckpoint {
  formats::Checkpoint checkpoint;
  std::vector<exec::HostBytes> held;  // memory that the checkpoint's tensors point to
};
Result<RankCheckpoint> to_checkpoint(const exec::Rank& rank, const Weights& weights);
// The same for a checkpoint.
void keep_moments(formats::Checkpoint& learned, const Weights& before);

// Fails if the file is of another model.
Result<Weights> from_checkpoint(const formats::Checkpoint& checkpoint, std::string_view model,
                                const std::string& path);

}  // namespace weft::run
