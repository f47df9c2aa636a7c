#include "weft/runtime/measure/tune_rank.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kElement = sizeof(float);

comm::Call call_of_order(const TuneOrder& order, std::int32_t ranks) {
  comm::Call call;
  call.kind = order.kind;
  call.type = comm::ElementType::f32;
  const std::int64_t elements = order.bytes / kElement;
  call.count = collective::has_block_per_rank(order.kind) ? elements / ranks : elements;
  if (order.kind != comm::Kind::barrier) call.count = std::max<std::int64_t>(call.count, 1);
  call.peer = ranks - 1;
  return call;
}

Error unreadable() {
  return environment_error("cannot read a message from a rank", "run the same weft version on all ranks");
}

}  // namespace

std::string print(const TuneOrder& order) {
  nlohmann::json turns = nlohmann::json::array();
  for (const TuneOrder::Turn& turn : order.turns) turns.push_back({turn.algorithm, turn.iterations});
  return nlohmann::json{{"end", order.end},         {"kind", collective::name(order.kind)},
                        {"bytes", order.bytes},     {"allocated", order.allocated},
                        {"batches", order.batches}, {"warm_up", order.warm_up},
                        {"turns", std::move(turns)}}
      .dump();
}

Result<TuneOrder> parse_tune_order(std::string_view text) {
  TuneOrder order;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    const auto kind = collective::find_kind(json.at("kind").get<std::string>());
    if (!kind) return unreadable();
    order.kind = *kind;
    order.end = json.at("end");
    order.bytes = json.at("bytes");
    order.allocated = json.at("allocated");
    order.batches = json.at("batches");
    order.warm_up = json.at("warm_up");
    for (const nlohmann::json& turn : json.at("turns")) order.turns.push_back({turn.at(0), turn.at(1)});
  } catch (const nlohmann::json::exception&) {
    return unreadable();
  }
  return order;
}

std::string print(const TuneTimes& times) {
  return nlohmann::json{times.batches, times.troubles}.dump(-1, ' ', false,
                                                            nlohmann::json::error_handler_t::replace);
}

Result<TuneTimes> parse_tune_times(std::string_view text) {
  TuneTimes times;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    times.batches = json.at(0).get<std::vector<std::vector<double>>>();
    times.troubles = json.at(1).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    return unreadable();
  }
  if (times.batches.size() != times.troubles.size()) return unreadable();
  return times;
}

Result<std::unique_ptr<TuneRank>> TuneRank::open(std::shared_ptr<transport::Job> job,
                                                 comm::TransportKind transport, std::string statistics) {
  auto rank = std::make_unique<TuneRank>();
  comm::Options options;
  options.transport = transport;
  options.background = false;
  options.statistics = "none";
  WEFT_TRY(control, comm::Communicator::create(job, options));
  rank->job_ = std::move(job);
  rank->transport_ = transport;
  rank->statistics_ = std::move(statistics);
  rank->control_ = std::move(control);
  return rank;
}

Status TuneRank::open_group(comm::Kind kind) {
  if (group_ && kind == kind_) return {};
  drop_group();
  comm::Options options;
  options.transport = transport_;
  options.background = false;
  options.statistics = statistics_;
  WEFT_TRY(made, comm::Communicator::create(job_, options));
  group_ = std::move(made);
  kind_ = kind;
  return {};
}

void TuneRank::free_allocated() {
  if (allocated_.output != nullptr) group_->free(allocated_.output);
  if (allocated_.input != nullptr) group_->free(allocated_.input);
  allocated_ = {};
  allocated_bytes_ = 0;
}

void TuneRank::drop_group() {
  free_allocated();
  group_.reset();
}

Result<TuneRank::Buffers> TuneRank::buffers_for(const TuneOrder& order) {
  // Counts are rounded up to at least one element per rank.
  const std::int64_t bytes = std::max(order.bytes, kElement * ranks());
  if (!order.allocated) {
    const auto elements = static_cast<std::size_t>((bytes + kElement - 1) / kElement);
    if (private_input_.size() < elements) {
      private_input_.assign(elements, 1.0f);
      private_output_.assign(elements, 0.0f);
    }
    return Buffers{private_input_.data(), private_output_.data()};
  }
  // Must be allocated from the measured group, because other groups treat the memory as private.
  if (allocated_bytes_ < bytes) {
    free_allocated();
    WEFT_TRY(input, group_->allocate(static_cast<std::size_t>(bytes)));
    allocated_.input = input;
    WEFT_TRY(output, group_->allocate(static_cast<std::size_t>(bytes)));
    allocated_.output = output;
    std::fill_n(static_cast<float*>(input), bytes / kElement, 1.0f);
    allocated_bytes_ = bytes;
  }
  return allocated_;
}

Result<double> TuneRank::run_batch(const comm::Call& call, const TuneOrder::Turn& turn, bool warm_up) {
  group_->use(turn.algorithm == kChosen ? "" : turn.algorithm);
  // Chooses the algorithm, opens connections and warms caches.
  if (warm_up) WEFT_TRY_STATUS(group_->run(call));
  WEFT_TRY_STATUS(control_->barrier());
  const auto start = Clock::now();
  for (std::int32_t i = 0; i < turn.iterations; ++i) WEFT_TRY_STATUS(group_->run(call));
  return std::chrono::duration<double>(Clock::now() - start).count() / turn.iterations;
}

TuneTimes TuneRank::measure(const TuneOrder& order) {
  TuneTimes times;
  times.batches.resize(order.turns.size());
  times.troubles.resize(order.turns.size());
  // A rank with a failed group or without memory must stay in step with the others, so all ranks
  // agree by an all-reduce.
  const auto any_rank = [this](bool mine) -> Result<bool> {
    const float one = mine ? 1.0f : 0.0f;
    float all = 0;
    WEFT_TRY_STATUS(control_->all_reduce(&one, &all, 1, comm::ElementType::f32));
    return all > 0;
  };
  Buffers buffers;
  const auto get_ready = [&]() -> Status {
    WEFT_TRY(broken, any_rank(std::exchange(broken_, false)));
    if (broken) drop_group();
    WEFT_TRY_STATUS(open_group(order.kind));
    const Result<Buffers> mine = buffers_for(order);
    WEFT_TRY(lacking, any_rank(!mine.ok()));
    if (!mine.ok()) return mine.error();
    if (lacking) return environment_error("another rank has no memory for its buffers");
    buffers = *mine;
    return {};
  };
  if (const Status ready = get_ready(); !ready.ok()) {
    std::ranges::fill(times.troubles, ready.error().message);
    return times;
  }
  comm::Call call = call_of_order(order, ranks());
  call.input = buffers.input;
  call.output = buffers.output;
  for (std::int32_t batch = 0; batch < order.batches; ++batch)
    for (std::size_t turn = 0; turn < order.turns.size(); ++turn) {
      const Result<double> seconds = run_batch(call, order.turns[turn], order.warm_up);
      if (!seconds.ok()) {  // the group failed too: later turns are not measured
        times.troubles[turn] = seconds.error().message;
        broken_ = true;
        return times;
      }
      times.batches[turn].push_back(*seconds);
    }
  return times;
}

}  // namespace weft::measure
