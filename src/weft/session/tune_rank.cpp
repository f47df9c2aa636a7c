#include "weft/session/tune_rank.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::session {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr std::int64_t kElement = sizeof(float);
constexpr std::string_view kDirect = "direct";

comm::Call call_of(const TuneOrder& order, std::int32_t ranks) {
  comm::Call call;
  call.kind = order.kind;
  call.type = comm::ElementType::f32;
  const std::int64_t elements = order.bytes / kElement;
  call.count = collective::has_block_a_rank(order.kind) ? elements / ranks : elements;
  if (order.kind != comm::Kind::barrier) call.count = std::max<std::int64_t>(call.count, 1);
  call.peer = ranks - 1;
  return call;
}

Error unreadable() {
  return world_error("a rank said something that cannot be read", "all ranks must run the same weft");
}

}  // namespace

std::string print(const TuneOrder& order) {
  Json turns = Json::array();
  for (const TuneOrder::Turn& turn : order.turns) turns.push_back({turn.algorithm, turn.iterations});
  return Json{{"end", order.end},         {"kind", collective::name(order.kind)},
              {"bytes", order.bytes},     {"allocated", order.allocated},
              {"batches", order.batches}, {"turns", std::move(turns)}}
      .dump();
}

Result<TuneOrder> parse_tune_order(std::string_view text) {
  TuneOrder order;
  try {
    const Json json = Json::parse(text);
    const auto kind = collective::find_kind(json.at("kind").get<std::string>());
    if (!kind) return unreadable();
    order.kind = *kind;
    order.end = json.at("end");
    order.bytes = json.at("bytes");
    order.allocated = json.at("allocated");
    order.batches = json.at("batches");
    for (const Json& turn : json.at("turns")) order.turns.push_back({turn.at(0), turn.at(1)});
  } catch (const Json::exception&) {
    return unreadable();
  }
  return order;
}

std::string print(const TuneTimes& times) {
  return Json{times.batches, times.troubles}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TuneTimes> parse_tune_times(std::string_view text) {
  TuneTimes times;
  try {
    const Json json = Json::parse(text);
    times.batches = json.at(0).get<std::vector<std::vector<double>>>();
    times.troubles = json.at(1).get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    return unreadable();
  }
  if (times.batches.size() != times.troubles.size()) return unreadable();
  return times;
}

Result<std::unique_ptr<TuneRank>> TuneRank::open(std::shared_ptr<transport::Job> job,
                                                 comm::TransportKind transport) {
  auto rank = std::make_unique<TuneRank>();
  comm::Options options;
  options.transport = transport;
  options.background = false;
  options.statistics = "none";
  WEFT_TRY(control, comm::Communicator::create(job, options));
  rank->job_ = std::move(job);
  rank->transport_ = transport;
  rank->control_ = std::move(control);
  return rank;
}

Result<comm::Communicator*> TuneRank::group_for(const TuneOrder& order, const std::string& algorithm) {
  if (order.kind != kind_) {
    std::erase_if(groups_, [](const auto& group) { return !group.first.starts_with(kDirect); });
    kind_ = order.kind;
  }
  if (const auto found = groups_.find(algorithm); found != groups_.end()) return found->second.get();
  comm::Options options;
  options.transport = transport_;
  options.background = false;
  options.statistics = "none";
  options.algorithm = algorithm;
  WEFT_TRY(made, comm::Communicator::create(job_, options));
  return groups_.emplace(algorithm, std::move(made)).first->second.get();
}

Result<TuneRank::Buffers> TuneRank::buffers_for(const TuneOrder& order) {
  // Counts are rounded up to one element a rank.
  const std::int64_t bytes = std::max(order.bytes, kElement * ranks());
  if (!order.allocated) {
    const auto elements = static_cast<std::size_t>((bytes + kElement - 1) / kElement);
    if (private_input_.size() < elements) {
      private_input_.assign(elements, 1.0f);
      private_output_.assign(elements, 0.0f);
    }
    return Buffers{private_input_.data(), private_output_.data()};
  }
  if (allocated_bytes_ < bytes) {
    if (allocated_.output != nullptr) control_->free(allocated_.output);
    if (allocated_.input != nullptr) control_->free(allocated_.input);
    allocated_ = {};
    allocated_bytes_ = 0;
    WEFT_TRY(input, control_->allocate(static_cast<std::size_t>(bytes)));
    allocated_.input = input;
    WEFT_TRY(output, control_->allocate(static_cast<std::size_t>(bytes)));
    allocated_.output = output;
    std::fill_n(static_cast<float*>(input), bytes / kElement, 1.0f);
    allocated_bytes_ = bytes;
  }
  return allocated_;
}

Result<double> TuneRank::run_batch(comm::Communicator& group, const comm::Call& call,
                                   std::int32_t iterations) {
  WEFT_TRY_STATUS(control_->barrier());
  const auto start = Clock::now();
  for (std::int32_t i = 0; i < iterations; ++i) WEFT_TRY_STATUS(group.run(call));
  return std::chrono::duration<double>(Clock::now() - start).count() / iterations;
}

TuneTimes TuneRank::measure(const TuneOrder& order) {
  TuneTimes times;
  times.batches.resize(order.turns.size());
  times.troubles.resize(order.turns.size());
  const Result<Buffers> buffers = buffers_for(order);
  // A rank that has no memory must still keep in step with the others: it says so by a sum.
  float lacks = buffers.ok() ? 0 : 1, any_lacks = 0;
  const Status told = control_->all_reduce(&lacks, &any_lacks, 1, comm::ElementType::f32);
  if (!told.ok() || any_lacks > 0) {
    const std::string why = !told.ok()      ? told.error().message
                            : !buffers.ok() ? buffers.error().message
                                            : "another rank has no memory for its buffers";
    std::ranges::fill(times.troubles, why);
    return times;
  }
  comm::Call call = call_of(order, ranks());
  call.input = buffers->input;
  call.output = buffers->output;
  for (std::int32_t batch = 0; batch < order.batches; ++batch)
    for (std::size_t turn = 0; turn < order.turns.size(); ++turn) {
      if (!times.troubles[turn].empty()) continue;
      const auto run = [&]() -> Result<double> {
        WEFT_TRY(group, group_for(order, order.turns[turn].algorithm));
        if (batch == 0) WEFT_TRY_STATUS(group->run(call));  // opens what it needs, warms what it uses
        return run_batch(*group, call, order.turns[turn].iterations);
      };
      const Result<double> seconds = run();
      if (seconds.ok()) {
        times.batches[turn].push_back(*seconds);
      } else {
        times.troubles[turn] = seconds.error().message;
      }
    }
  return times;
}

}  // namespace weft::session
