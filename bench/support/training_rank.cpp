#include "support/training_rank.h"

#include <algorithm>
#include <string>

#include "weft/base/check.h"
#include "weft/base/random.h"
#include "weft/device/element_access.h"
#include "weft/language/shipped.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBatches = 4;  // consecutive steps use different batches

// Element `position` of a parameter, from the INIT in the parameter node's attributes.
double initial(const plan::NodeView& parameter, std::uint64_t stream, std::uint64_t position) {
  const std::string_view kind = parameter.word(2);
  if (kind == "normal") return parameter.real(3) + parameter.real(4) * normal_at(1, stream, position);
  if (kind == "ones") return 1;
  if (kind == "constant") return parameter.real(3);
  return 0;
}

}  // namespace

const language::Catalog& shipped() {
  static const language::Catalog catalog = [] {
    language::Catalog made;
    language::load_shipped(made);
    return made;
  }();
  return catalog;
}

train::TrainingPlan training_plan(std::string_view model, std::vector<language::SizeOverride> sizes,
                                  std::string_view precision) {
  train::TrainingOptions training;
  training.precision = train::find_precision(precision).value();
  language::BindOptions options;
  options.precision = training.precision.compute;
  options.mode = language::Mode::train;
  options.sizes = std::move(sizes);
  auto bound = or_throw(language::bind(shipped(), language::syntax::Name{model, {}}, options));
  if (training.precision.mixed) bound.graph = or_throw(train::with_wide_losses(bound.graph));
  return or_throw(train::make_training_plan(std::move(bound.graph), training));
}

std::shared_ptr<const plan::Graph> training_graph(std::string_view model,
                                                  std::vector<language::SizeOverride> sizes,
                                                  std::string_view precision) {
  return std::make_shared<const plan::Graph>(training_plan(model, std::move(sizes), precision).graph);
}

TrainingRank::TrainingRank(std::string_view model, const TrainingData& data)
    : rank_(or_throw(exec::Rank::start(
          or_throw(program::compile(training_graph(model, {}, data.precision), {.workers = data.workers})),
          {.workers = data.workers}))) {
  fill_parameters();
  draw_batches(data.labels);
}

void TrainingRank::fill_parameters() {
  const plan::Graph& graph = *rank_->program().graph;
  const auto fill = [&](const program::Port& port, std::uint64_t stream) {
    const plan::NodeView node = graph.view(graph.value(port.value).producer);
    const Status written = rank_->write(port, [&](std::span<std::byte> memory) {
      for (std::int64_t i = 0; i < port.place.elements(); ++i)
        device::store_element(port.place.dtype, memory.data(), i,
                              initial(node, stream, static_cast<std::uint64_t>(i)));
    });
    WEFT_CHECK(written.ok());
  };
  const program::Program& program = rank_->program();
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    fill(program.parameters[i], i);
    // The master weight of a narrow parameter.
    const std::string master = program.parameters[i].name + std::string(train::kMasterSuffix);
    const auto kept = std::ranges::find(program.states, master, &program::Port::name);
    if (kept != program.states.end()) fill(*kept, i);
  }
  const auto scale = std::ranges::find(program.states, train::kLossScaleName, &program::Port::name);
  if (scale != program.states.end()) fill(*scale, 0);
}

void TrainingRank::draw_batches(std::int64_t labels) {
  Random random(7);
  for (std::size_t b = 0; b < kBatches; ++b) {
    auto& batch = batches_.emplace_back();
    for (const program::Port& port : rank_->program().inputs) {
      auto& input = batch.emplace_back(rank_->input(port).size());
      for (std::int64_t i = 0; i < port.place.elements(); ++i)
        device::store_element(
            port.place.dtype, input.data(), i,
            static_cast<double>(plan::is_real(port.place.dtype) ? random.between(0, 16)
                                                                : random.between(0, labels - 1)));
    }
  }
}

void TrainingRank::feed() {
  const auto& batch = batches_[next_++ % kBatches];
  for (std::size_t i = 0; i < batch.size(); ++i)
    std::ranges::copy(batch[i], rank_->input(rank_->program().inputs[i]).begin());
}

void TrainingRank::step() {
  feed();
  WEFT_CHECK(rank_->step().ok());
}

void TrainingRank::step(program::Timeline& timeline) {
  feed();
  WEFT_CHECK(rank_->step(timeline).ok());
}

std::int64_t TrainingRank::parameter_elements() const {
  std::int64_t elements = 0;
  for (const program::Port& port : rank_->program().parameters) elements += port.place.elements();
  return elements;
}

}  // namespace weft::bench
