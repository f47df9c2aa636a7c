// weft/runtime/run/weights.h -- what a model has learned: its parameters, states and moments by name.
//
// A session keeps one for each model it trained or loaded; SAVE writes it, LOAD reads it, TRAIN goes
// on from it and INFER computes with it. Together with the data and the settings it holds all that
// the next step depends on, so that a run that was saved and loaded goes on as if it had not stopped.
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
  std::int64_t step = 0;                                    // steps taken so far
  std::uint64_t seed = 0;                                   // of the initial values and the order of the data
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // the model's, when it was trained
  std::map<std::string, Tensor, std::less<>> tensors;
  std::string plan = {};    // that it was trained with, as the session wrote it; empty: not known
  std::string launch = {};  // which `weft launch` it was trained under; empty: none
};

// All but the tensors.
Weights without_tensors(const Weights& weights);

std::vector<std::int64_t> shape_of(const program::Place& place);

// The initial values of a parameter or state, given by its node in a plan. An element depends on the seed,
// the tensor's name and its place alone, not on what else there is.
void write_initial(const plan::NodeView& source, std::uint64_t seed, std::span<std::byte> memory);
// Fills a rank's parameters and states with their initial values.
Status write_initial(exec::Rank& rank, std::uint64_t seed);

// What the weights hold under a name; null when they do not and need not. Fails when it is needed, or of
// another type or shape.
Result<const Tensor*> find_tensor(const Weights& weights, const std::string& name, plan::DType dtype,
                                  const std::vector<std::int64_t>& shape, bool needed);

// A master weight that the weights lack, made of the parameter that they hold: what was imported, or learned
// without one. None where the name is no master's or there is no such parameter.
std::optional<Tensor> make_master(const Weights& weights, std::string_view name, plan::DType dtype);

// What codecs lost (distribute/feedback.h), whose rows are those of ranks. On another number of ranks each row is added
// to one that there is: together they hold what is to be sent yet. None where the weights hold no such.
std::optional<Tensor> fold_lost(const Weights& weights, std::string_view name, const plan::Graph& graph,
                                const plan::Type& type);

// Fills them from weights, and with initial values what the weights do not hold and need not: an
// optimizer's moments. Fails when a parameter is missing or of another shape. `computed` holds parameters that
// were made of weights (fold_weights.h).
Status write_weights(exec::Rank& rank, const Weights& weights,
                     const std::map<std::string, Tensor, std::less<>>& computed = {});

// The same, where the rank's next step waits for what it reads alone (exec/loading.h). Both must stay until that is over.
Status load_weights(exec::Rank& rank, const Weights& weights,
                    const std::map<std::string, Tensor, std::less<>>& computed);

// Takes the rank's parameters and states.
Status read_weights(const exec::Rank& rank, Weights& weights);
// The same when no step comes any more: each gives its memory back once it is taken, so that the rank and
// what it learned are not in memory twice.
Status take_weights(exec::Rank& rank, Weights& weights);

// What other optimizers keep of the parameters goes on with them: those of `before` that `learned` lacks.
void keep_moments(Weights& learned, Weights before);
std::int64_t bytes_of(const Weights& weights);
// Of all that the next step depends on.
Digest digest_of(const Weights& weights);

formats::Checkpoint to_checkpoint(const Weights& weights);

// What a rank has learned by now, without a copy of it: until the next step. `weights` says all but the tensors.
struct RankCheckpoint {
  formats::Checkpoint checkpoint;
  std::vector<exec::HostBytes> held;  // what the checkpoint's tensors point into
};
Result<RankCheckpoint> to_checkpoint(const exec::Rank& rank, const Weights& weights);
// As keep_moments().
void keep_moments(formats::Checkpoint& learned, const Weights& before);

// Fails when the file is of another model.
Result<Weights> from_checkpoint(const formats::Checkpoint& checkpoint, std::string_view model,
                                const std::string& path);

}  // namespace weft::run
