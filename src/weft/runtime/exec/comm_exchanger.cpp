#include "weft/runtime/exec/comm_exchanger.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/hash.h"
#include "weft/runtime/exec/exchange_call.h"

namespace weft::exec {
namespace {

using comm::Communicator;
using program::Exchange;
using Kind = program::Exchange::Kind;

bool are_equal(std::span<const std::int64_t> counts) {
  return std::ranges::all_of(counts, [&](std::int64_t count) { return count == counts.front(); });
}

// counts[from * ranks + to] of an all-to-all. Each rank knows only what it sends and receives
// itself.
Result<std::vector<std::int64_t>> all_counts(Communicator& group, const Exchange& exchange) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto me = static_cast<std::size_t>(group.rank());
  std::vector<std::int64_t> counts(ranks * ranks);
  WEFT_TRY_STATUS(
      group.all_gather(exchange.counts.data(), counts.data(), group.size(), comm::ElementType::i64));
  for (std::size_t from = 0; from < ranks; ++from) {
    if (counts[from * ranks + me] == exchange.takes[from]) continue;
    return environment_error(
        fmt::format("ranks {} and {} of axis {} run different plans: one sends {} elements "
                    "where the other expects {}",
                    from, me, exchange.axis, counts[from * ranks + me], exchange.takes[from]),
        "run the same statement on every rank");
  }
  return counts;
}

}  // namespace

comm::Options training_options(comm::TransportKind transport) {
  comm::Options options;
  options.transport = transport;
  options.background = false;  // the rank's exchange thread waits for the calls it starts
  options.statistics = "none";
  return options;
}

Result<std::unique_ptr<CommExchanger>> CommExchanger::open(Communicator& world, const plan::Mesh& mesh,
                                                           Agreement agreement, Communicator* whole) {
  if (world.size() != mesh.ranks())
    return user_error(fmt::format("the plan is for {} ranks, found {}", mesh.ranks(), world.size()));
  std::unique_ptr<CommExchanger> exchanger(new CommExchanger(world, mesh, agreement, whole));
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (mesh.axes[axis].ranks == mesh.ranks()) {
      exchanger->groups_.push_back({mesh.ranks() > 1 ? &world : nullptr, nullptr});
      continue;
    }
    WEFT_TRY(group, exchanger->make_group(axis));
    exchanger->groups_.push_back(std::move(group));
  }
  return exchanger;
}

Result<CommExchanger::Group> CommExchanger::make_group(std::size_t axis) {
  Group group;
  if (mesh_.axes[axis].ranks < 2) return group;
  // The lowest rank of a group is the group's colour.
  const std::int32_t colour = mesh_.group(world_.rank(), axis).front();
  WEFT_TRY(made, world_.split(colour, mesh_.coordinate(world_.rank(), axis)));
  group.own = std::move(made);
  group.communicator = group.own.get();
  return group;
}

// All ranks have the same exchanges, so all make the same splits.
Status CommExchanger::open_low_groups(std::span<const Exchange* const> exchanges) {
  low_groups_.resize(groups_.size());
  for (std::size_t axis = 0; axis < groups_.size(); ++axis) {
    const bool is_used = std::ranges::any_of(exchanges, [&](const Exchange* exchange) {
      return exchange->axis == mesh_.axes[axis].name &&
             exchange->algorithm.priority == collective::Priority::low;
    });
    if (!is_used || low_groups_[axis].communicator != nullptr) continue;
    WEFT_TRY(group, make_group(axis));
    low_groups_[axis] = std::move(group);
  }
  return {};
}

// Summation servers make the same splits.
Status CommExchanger::open_served_groups(std::span<const Exchange* const> exchanges) {
  if (!served_.empty()) return {};
  for (ServedGroup& group : served_groups(exchanges, mesh_)) {
    if (whole_ == nullptr)
      return user_error("the plan uses summation servers, but there are none",
                        "plan it with parameter_servers = off");
    WEFT_TRY(opened, open_served(*whole_, group, mesh_));
    if (opened != nullptr) served_.push_back({std::move(group), std::move(opened)});
  }
  return {};
}

Result<CommExchanger::Ready> CommExchanger::make_served(const Exchange& exchange) {
  const auto found =
      std::ranges::find_if(served_, [&](const Served& one) { return runs(one.group, exchange, mesh_); });
  WEFT_CHECK(found != served_.end(), "a sum by servers without a group");
  Ready ready;
  ready.communicator = found->communicator.get();
  WEFT_TRY(served,
           served_call(*ready.communicator, exchange, static_cast<std::int32_t>(found->group.ranks.size())));
  ready.call = served.call;
  const std::int64_t size = plan::size_in_bytes(exchange.dtype);
  ready.bytes = exchange.counts.at(0) * size;
  if (served.room * size > ready.bytes) ready.longer.resize(static_cast<std::size_t>(served.room * size));
  return ready;
}

Status CommExchanger::prepare(std::span<const Exchange* const> exchanges) {
  WEFT_TRY_STATUS(agree_on(exchanges));
  WEFT_TRY_STATUS(open_low_groups(exchanges));
  WEFT_TRY_STATUS(open_served_groups(exchanges));
  open_mailboxes(exchanges);
  for (const Exchange* const exchange : exchanges) {
    WEFT_TRY(made, make_ready(*exchange));
    made.number = static_cast<std::uint32_t>(under_way_.size());
    under_way_.emplace_back();
    by_number_.push_back(exchange);
    Ready& kept = ready_[exchange] = std::move(made);
    kept.call.counts = kept.counts;
  }
  return {};
}

// Ranks that run different algorithms would deadlock without an error.
Status CommExchanger::agree_on(std::span<const Exchange* const> exchanges) {
  if (world_.size() == 1) return {};
  const bool has_stages =
      std::ranges::any_of(exchanges, [](const Exchange* e) { return is_message(e->kind); });
  if (!has_stages && agreement_ == Agreement::of_all) return agree_on(exchanges, world_, {});
  // Stages, and replicas with different numbers of micro-batches, have different collectives.
  // Within a group they are the same.
  for (std::size_t axis = 0; axis < groups_.size(); ++axis)
    if (groups_[axis].communicator != nullptr)
      WEFT_TRY_STATUS(agree_on(exchanges, *groups_[axis].communicator, mesh_.axes[axis].name));
  return {};
}

Status CommExchanger::agree_on(std::span<const Exchange* const> exchanges, Communicator& group,
                               std::string_view axis) {
  Hasher hasher;
  for (const Exchange* const exchange : exchanges)
    if (axis.empty() || (exchange->axis == axis && !is_message(exchange->kind)))
      hasher.text(name(exchange->kind)).text(exchange->axis).text(print(exchange->algorithm));
  const auto mine = static_cast<std::int64_t>(hasher.digest().low);
  std::vector<std::int64_t> all(static_cast<std::size_t>(group.size()));
  WEFT_TRY_STATUS(group.all_gather(&mine, all.data(), 1, comm::ElementType::i64));
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return environment_error(
          fmt::format("ranks 0 and {} run different plans: their collectives or algorithms differ", rank),
          "run the same statement on every rank");
  return {};
}

void CommExchanger::open_mailboxes(std::span<const Exchange* const> exchanges) {
  mailboxes_.resize(groups_.size());
  std::vector<std::int64_t> largest(groups_.size(), -1);
  for (const Exchange* const exchange : exchanges) {
    if (!is_message(exchange->kind)) continue;
    const auto axis = static_cast<std::size_t>(mesh_.find(exchange->axis));
    const bool comes = exchange->kind == Kind::receive;
    largest[axis] =
        std::max(largest[axis],
                 comes ? exchange->counts.at(0) * plan::size_in_bytes(exchange->dtype) : std::int64_t{0});
  }
  for (std::size_t axis = 0; axis < groups_.size(); ++axis)
    if (largest[axis] >= 0)
      mailboxes_[axis] =
          std::make_unique<Mailbox>(*groups_[axis].communicator, static_cast<std::size_t>(largest[axis]));
}

Status CommExchanger::pass(const Ready& ready, Kind kind) {
  const auto bytes = static_cast<std::size_t>(ready.bytes);
  if (kind == Kind::send)
    return ready.mailbox->send({static_cast<const std::byte*>(ready.call.input), bytes}, ready.other,
                               ready.tag);
  return ready.mailbox->take({static_cast<std::byte*>(ready.call.output), bytes}, ready.other, ready.tag);
}

// The algorithm that the program names; if it names none, the communicator chooses.
Result<comm::NamedAlgorithm> CommExchanger::named(Communicator& group, const Exchange& exchange,
                                                  const comm::Call& call) {
  const program::ChosenAlgorithm& chosen = exchange.algorithm;
  if (chosen.protocol && *chosen.protocol != collective::Protocol::simple)
    return user_error(fmt::format("{} over {} is planned with protocol {}, ranks of processors have {}",
                                  name(exchange.kind), exchange.axis, collective::name(*chosen.protocol),
                                  collective::name(collective::Protocol::simple)),
                      "plan it for LOCAL ranks");
  if (chosen.name.empty()) return comm::NamedAlgorithm();
  auto found = group.find_algorithm(chosen.name, call.kind, call.root);
  if (found.ok()) return found;
  Error error = std::move(found).error();
  error.message = fmt::format("{} over {} cannot run: {}", name(exchange.kind), exchange.axis, error.message);
  return error;
}

Result<CommExchanger::Ready> CommExchanger::make_ready(const Exchange& exchange) {
  const int axis = mesh_.find(exchange.axis);
  WEFT_CHECK(axis >= 0, "an exchange along an axis that the mesh lacks");
  if (is_served(exchange)) return make_served(exchange);
  Ready ready;
  const bool is_low = exchange.algorithm.priority == collective::Priority::low;
  ready.communicator = (is_low ? low_groups_ : groups_)[static_cast<std::size_t>(axis)].communicator;
  const plan::DType dtype = exchange.dtype;
  if (is_message(exchange.kind)) {
    ready.mailbox = mailboxes_[static_cast<std::size_t>(axis)].get();
    ready.bytes = exchange.counts.at(0) * plan::size_in_bytes(dtype);
    ready.other = static_cast<std::int32_t>(exchange.shift);
    ready.tag = static_cast<comm::Tag>(exchange.tag);
    return ready;
  }
  if (ready.communicator == nullptr) {
    ready.bytes = exchange.counts.at(0) * plan::size_in_bytes(dtype);
    return ready;
  }
  Communicator& group = *ready.communicator;
  comm::Call& call = ready.call;
  call = call_of(exchange);
  call.priority = exchange.algorithm.priority;
  WEFT_TRY(algorithm, named(group, exchange, call));
  call.algorithm = algorithm;
  if (exchange.kind == Kind::permute_ranks) {
    ready.counts = shifted_counts(group.size(), exchange.shift, exchange.counts.at(0));
  } else if (exchange.kind == Kind::all_to_all || exchange.kind == Kind::halo) {
    WEFT_TRY(counts, all_counts(group, exchange));
    ready.counts = std::move(counts);
  } else if (exchange.kind == Kind::all_gather || exchange.kind == Kind::reduce_scatter) {
    ready.counts = exchange.counts;
  }
  // Ranks compare their calls: if `counts` describes the call, `count` must not contain per-rank
  // values.
  if (ready.counts.empty()) {
    call.count = exchange.counts.at(0);
  } else if (are_equal(ready.counts)) {
    call.count = ready.counts.front();
    ready.counts.clear();
  }
  return ready;
}

CommExchanger::Ready& CommExchanger::ready_for(const Exchange& exchange, const std::byte* operand,
                                               std::byte* result) {
  const auto found = ready_.find(&exchange);
  WEFT_CHECK(found != ready_.end(), "an exchange that was not prepared");
  Ready& ready = found->second;
  ready.call.input = operand;
  ready.call.output = result;
  // Sums by servers run in place.
  const bool is_in_place = ready.communicator == nullptr || ready.call.kind == comm::Kind::custom;
  std::byte* const place = ready.longer.empty() ? result : ready.longer.data();
  if (is_in_place && operand != place && ready.bytes > 0)
    std::memmove(place, operand, static_cast<std::size_t>(ready.bytes));
  if (is_in_place) ready.call.input = ready.call.output = place;
  ready.result = result;
  return ready;
}

void CommExchanger::finish(const Ready& ready) {
  if (!ready.longer.empty())
    std::memcpy(ready.result, ready.longer.data(), static_cast<std::size_t>(ready.bytes));
}

Status CommExchanger::run(const Exchange& exchange, const std::byte* operand, std::byte* result) {
  const Ready& ready = ready_for(exchange, operand, result);
  if (ready.mailbox != nullptr) return pass(ready, exchange.kind);
  if (ready.communicator == nullptr) return {};
  Status status = ready.communicator->run(ready.call);
  if (status.ok()) finish(ready);
  return status;
}

Result<Exchanger::Handle> CommExchanger::start(const Exchange& exchange, const std::byte* operand,
                                               std::byte* result) {
  const Ready& ready = ready_for(exchange, operand, result);
  const Handle handle{ready.number};
  if (ready.communicator == nullptr || ready.mailbox != nullptr) return handle;
  WEFT_TRY(work, ready.communicator->start(ready.call));
  const std::lock_guard lock(mutex_);
  under_way_[handle.number] = std::move(work);
  return handle;
}

bool CommExchanger::test(Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto& work = under_way_[handle.number];
  return !work || work->done();
}

Status CommExchanger::wait(Handle handle) {
  const Exchange& exchange = *by_number_[handle.number];
  if (is_message(exchange.kind)) return pass(ready_.at(&exchange), exchange.kind);
  std::optional<comm::Work> work;
  {
    const std::lock_guard lock(mutex_);
    work = under_way_[handle.number];
  }
  if (!work) return {};  // a group of one rank
  Status status = work->wait();
  if (status.ok()) finish(ready_.at(&exchange));
  const std::lock_guard lock(mutex_);
  under_way_[handle.number].reset();
  return status;
}

void CommExchanger::stop(const Error& why) {
  // A started call is already running, since its communicator has no other call in flight; it
  // cannot be cancelled (comm::Work::cancel). Failing the communicators releases ranks that wait
  // for calls this rank will not start.
  for (const std::vector<Group>* groups : {&groups_, &low_groups_})
    for (const Group& group : *groups)
      if (group.communicator != nullptr) group.communicator->fail(why);
  for (const Served& served : served_) served.communicator->fail(why);
}

std::byte* CommExchanger::allocate(std::size_t bytes) {
  auto memory = world_.allocate(bytes);
  return memory.ok() ? static_cast<std::byte*>(*memory) : nullptr;
}

void CommExchanger::free(std::byte* memory) { world_.free(memory); }

}  // namespace weft::exec
