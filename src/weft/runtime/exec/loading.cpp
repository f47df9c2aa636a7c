#include "weft/runtime/exec/loading.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "weft/base/parallel_for.h"

namespace weft::exec {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

// The first task that reads or writes each tensor: a late copy must not overwrite the results of a
// step.
std::vector<std::uint32_t> first_tasks(const program::Program& program, std::span<const Loaded> weights) {
  std::map<program::BufferId, std::uint32_t> first;
  for (std::uint32_t task = 0; task < program.tasks.size(); ++task)
    for (const auto* const extents : {&program.tasks[task].reads, &program.tasks[task].writes})
      for (const program::Extent& extent : *extents) first.try_emplace(extent.buffer, task);
  std::vector<std::uint32_t> tasks;
  for (const Loaded& one : weights) {
    const auto found = first.find(one.port->place.buffer);
    tasks.push_back(found == first.end() ? kNobody : found->second);
  }
  return tasks;
}

std::vector<std::size_t> order_of_use(std::span<const std::uint32_t> first) {
  std::vector<std::size_t> order(first.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return first[i]; });
  return order;
}

// Copies with several threads, because one cannot saturate the bus.
void copy_bytes(std::span<const std::byte> from, std::byte* to) {
  constexpr std::size_t kPart = 1 << 20;
  parallel_for((from.size() + kPart - 1) / kPart, [&](std::size_t part) {
    const std::size_t at = part * kPart;
    std::memcpy(to + at, from.data() + at, std::min(kPart, from.size() - at));
  });
}

}  // namespace

LoadingGroups groups_of_bytes(const program::Program& program, std::span<const Loaded> weights,
                              std::size_t bytes) {
  LoadingGroups groups;
  std::size_t together = 0;
  for (const std::size_t i : order_of_use(first_tasks(program, weights))) {
    if (groups.empty() || together >= bytes) {
      groups.emplace_back();
      together = 0;
    }
    groups.back().push_back(i);
    together += weights[i].bytes.size();
  }
  return groups;
}

LoadingGroups loading_groups(const program::Program& program, std::span<const Loaded> weights,
                             const LoadingPace& pace) {
  const std::vector<std::uint32_t> first = first_tasks(program, weights);
  const std::vector<std::size_t> order = order_of_use(first);
  // The compute time between the first readers of consecutive tensors, assuming equal tasks.
  const auto tasks = static_cast<std::uint32_t>(program.tasks.size());
  const double each = tasks > 0 ? pace.step_seconds / tasks : 0;
  std::vector<partition::Tensor> chain;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t from = std::min(first[order[i]], tasks);
    const std::uint32_t to = i + 1 < order.size() ? std::min(first[order[i + 1]], tasks) : tasks;
    chain.push_back(
        {.bytes = static_cast<double>(weights[order[i]].bytes.size()), .read_seconds = each * (to - from)});
  }
  LoadingGroups groups;
  std::size_t begin = 0;
  for (const std::int32_t end : partition::bucketise(chain, pace.wire).ends) {
    groups.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + end);
    begin = static_cast<std::size_t>(end);
  }
  return groups;
}

Result<std::unique_ptr<Loading>> Loading::make(device::Device& device, const program::Program& program,
                                               device::Address memory, std::span<const Loaded> weights,
                                               const LoadingGroups& groups, std::size_t staged_bytes,
                                               Wait wait) {
  auto loading = std::make_unique<Loading>();
  loading->wait_ = std::move(wait);
  if (!std::ranges::all_of(weights, &Loaded::is_page_locked)) {
    for (int piece = 0; piece < 2; ++piece) {
      WEFT_TRY(room, device.allocate_host(static_cast<std::int64_t>(staged_bytes)));
      WEFT_TRY(copied, device.make_event());
      loading->staged_.push_back({std::move(room), std::move(copied)});
    }
    loading->staged_bytes_ = staged_bytes;
  }
  WEFT_TRY(copies, device.make_stream({.computes = false}));
  loading->copies_ = std::move(copies);
  WEFT_TRY(all_there, device.make_event());
  loading->all_there_ = std::move(all_there);
  std::map<program::BufferId, std::int32_t> group_of;
  for (const std::vector<std::size_t>& group : groups) {
    for (const std::size_t i : group) {
      group_of[weights[i].port->place.buffer] = static_cast<std::int32_t>(loading->there_.size());
      loading->all_.push_back({.to = memory + device::offset_of(program, weights[i].port->place),
                               .from = weights[i].bytes,
                               .group = loading->there_.size()});
    }
    WEFT_TRY(event, device.make_event());
    loading->there_.push_back(std::move(event));
  }
  for (const program::Task& task : program.tasks) {
    std::int32_t last = -1;
    for (const auto* const extents : {&task.reads, &task.writes})
      for (const program::Extent& extent : *extents)
        if (const auto found = group_of.find(extent.buffer); found != group_of.end())
          last = std::max(last, found->second);
    loading->needs_.push_back(last);
  }
  return loading;
}

void Loading::start() {
  if (staged_.empty()) give_until(static_cast<std::int32_t>(there_.size()) - 1);
}

void Loading::give(const Copy& copy) {
  if (staged_.empty()) return copies_->copy_in(copy.to, copy.from);
  for (std::size_t at = 0; at < copy.from.size();) {
    Staged& piece = staged_[filled_++ % staged_.size()];
    // The failure of the device is reported here, and again by the copy stream.
    if (!wait_(*piece.copied).ok()) return;
    const std::size_t bytes = std::min(staged_bytes_, copy.from.size() - at);
    copy_bytes(copy.from.subspan(at, bytes), piece.memory->bytes().data());
    copies_->copy_in(copy.to + static_cast<std::int64_t>(at), piece.memory->bytes().first(bytes));
    copies_->record(*piece.copied);
    at += bytes;
  }
}

void Loading::give_until(std::int32_t group) {
  for (; given_ < all_.size() && static_cast<std::int32_t>(all_[given_].group) <= group; ++given_) {
    const Copy& copy = all_[given_];
    give(copy);
    if (given_ + 1 == all_.size() || all_[given_ + 1].group != copy.group)
      copies_->record(*there_[copy.group]);
  }
}

void Loading::await(std::uint32_t task, device::Stream& stream) {
  if (needs_[task] <= awaited_) return;
  awaited_ = needs_[task];  // groups arrive in order, so waiting for one covers all before it
  give_until(awaited_);
  stream.wait(*there_[static_cast<std::size_t>(awaited_)]);
}

// Also completes tensors that no task reads.
Status Loading::finish() {
  give_until(static_cast<std::int32_t>(there_.size()) - 1);
  copies_->record(*all_there_);
  WEFT_TRY_STATUS(wait_(*all_there_));
  return copies_->synchronize();  // a stream reports more detail than its event
}

}  // namespace weft::exec
