#include "weft/runtime/run/local_ranks_member.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/communication/transport/rank_names.h"
#include "weft/parallel/distribute/delayed.h"
#include "weft/parallel/distribute/feedback.h"
#include "weft/parallel/distribute/local_steps.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/runtime/run/local_ranks_run.h"
#include "weft/runtime/run/rank_comparison.h"
#include "weft/runtime/run/summation_server.h"

namespace weft::run {
namespace {

using comm::ElementType;
using program::Port;

std::vector<std::int64_t> shape_of_type(const plan::Type& type) {
  std::vector<std::int64_t> shape;
  for (const plan::Dim& dim : type.dims) shape.push_back(dim.size);
  return shape;
}

// A hash of some words selected by `seed`, or of everything if it is short.
std::uint64_t sample_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::size_t kWords = 64, kWord = sizeof(std::uint64_t);
  Hasher hasher;
  if (bytes.size() <= kWords * kWord)
    return hasher.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).digest().low;
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + mix(seed * kWords + i) % (bytes.size() / kWord) * kWord, kWord);
    hasher.number(word);
  }
  return hasher.digest().low;
}

// How many bytes of a tensor each rank contributes: its share, unless an earlier rank has the same.
std::vector<std::int64_t> bytes_from(const SharedSource& source, plan::DType dtype,
                                     std::span<const std::int32_t> numbers) {
  std::vector<std::int64_t> bytes;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
    const auto& share = source.shares[static_cast<std::size_t>(numbers[rank])];
    const auto has = [&](std::int32_t other) {
      return source.is_held(static_cast<std::size_t>(other)) &&
             source.shares[static_cast<std::size_t>(other)] == share;
    };
    const bool is_first = has(numbers[rank]) && std::ranges::none_of(numbers.first(rank), has);
    bytes.push_back(is_first ? elements_of(share) * plan::size_in_bytes(dtype) : 0);
  }
  return bytes;
}

}  // namespace

Member::Member(const distribute::DistributedPlan& plan, std::vector<SharedSource> sources)
    : plan_(plan), sources_(std::move(sources)) {}

Result<std::unique_ptr<Member>> Member::start(const distribute::DistributedPlan& plan,
                                              const std::shared_ptr<transport::Job>& job,
                                              const LocalRanksOptions& options, const Weights& weights) {
  WEFT_TRY(sources, shared_sources(plan));
  std::unique_ptr<Member> member(new Member(plan, std::move(sources)));
  // Assigns mesh positions host by host, so that the most frequent communication stays within a
  // host regardless of rank order.
  const std::vector<std::int32_t> order = transport::find_hosts(*job).by_host();
  const auto place = static_cast<std::int32_t>(std::ranges::find(order, job->rank()) - order.begin());
  WEFT_TRY(program, compile_for_rank(plan, place, options));
  WEFT_TRY(world, comm::Communicator::create(job, exec::training_options(options.transport)));
  member->world_ = std::move(world);
  if (const std::int32_t servers = servers_of(options.algorithms); servers > 0) {
    WEFT_TRY(ranks, member->world_->split(0, place));
    member->whole_ = std::exchange(member->world_, std::move(ranks));
  } else if (!std::ranges::is_sorted(order)) {
    WEFT_TRY(ordered, member->world_->split(0, place));
    member->as_launched_ = std::exchange(member->world_, std::move(ordered));
  }
  const bool takes_differ = plan.time && pipeline::unequal_axis(plan.time->distribution);
  WEFT_TRY(exchanger,
           exec::CommExchanger::open(*member->world_, plan.whole_mesh(),
                                     takes_differ ? exec::Agreement::of_groups : exec::Agreement::of_all,
                                     member->whole_.get()));
  member->exchanger_ = std::move(exchanger);
  exec::Exchanger* moves = member->exchanger_.get();
  if (options.gpu != nullptr) {
    member->on_gpu_ = std::make_unique<exec::GpuExchanger>(options.meeting, *member->exchanger_,
                                                           plan.whole_mesh(), member->world_->rank());
    moves = member->on_gpu_.get();
  }
  // Without overlap, a stage that waits for a message before computing could delay the stage that
  // waits for it.
  const bool overlap = options.overlap || plan.time.has_value();
  const int movers = overlap ? static_cast<int>(program.streams.size()) - 1 : 0;
  const std::int32_t here = transport::ranks_on_this_machine(*job, order);
  const int threads = here * (options.workers + movers);
  WEFT_TRY(rank, exec::Rank::start(std::move(program),
                                   {.device = options.gpu,
                                    .workers = options.workers,
                                    .memory_limit = options.memory_limit,
                                    .exchanger = moves,
                                    .overlap = overlap,
                                    // Spilling is per rank; shared memory is allocated by all ranks together.
                                    .shared_memory = options.shared_memory && !options.spills,
                                    .oversubscribed = threads > available_processors(),
                                    .ranks_here = here,
                                    .spill_folder = options.spill_folder,
                                    .flights = {.rank = member->number(),
                                                .ranks = options.ranks,
                                                .timeout = options.device_timeout,
                                                .unit_by_unit = options.unit_by_unit}}));
  member->rank_ = std::move(rank);
  // All ranks allocate their memory before any rank fills it.
  WEFT_TRY_STATUS(member->wait_for_all());
  WEFT_TRY_STATUS(member->fill(weights));
  member->steps_alone_ = distribute::steps_between_sums(plan.graph);
  if (member->steps_alone_ > 1) WEFT_TRY_STATUS(member->start_averages(weights, options.outer));
  return member;
}

std::span<const plan::Share> Member::shares(const SharedSource& source) const {
  return source.shares[static_cast<std::size_t>(number())];
}

const Port* Member::port_of(const SharedSource& source) const {
  const program::Program& program = rank_->program();
  const std::vector<Port>& ports = source.kind == SharedSource::Kind::input       ? program.inputs
                                   : source.kind == SharedSource::Kind::parameter ? program.parameters
                                                                                  : program.states;
  const auto found = std::ranges::find(ports, source.name, &Port::name);
  return found == ports.end() ? nullptr : &*found;
}

Status Member::fill(const Weights& weights) {
  std::vector<std::byte> drawn;
  std::set<std::string_view> lost;
  for (const distribute::Feedback& feedback : distribute::find_feedback(plan_.graph))
    lost.insert(feedback.name);
  for (const distribute::Delayed& delayed : distribute::find_delayed(plan_.graph)) lost.insert(delayed.name);
  for (const SharedSource& source : sources_) {
    const Port* const port = port_of(source);
    if (source.kind == SharedSource::Kind::input) {
      take_input(source, port);
      continue;
    }
    if (port == nullptr) continue;
    const Tensor* known = nullptr;
    std::optional<Tensor> made;
    if (lost.contains(source.name)) {
      made = fold_feedback(weights, source.name, plan_.graph, source.type);
    } else if (!weights.tensors.empty()) {
      const bool needed = source.kind == SharedSource::Kind::parameter;
      WEFT_TRY(found,
               find_tensor(weights, source.name, source.type.dtype, shape_of_type(source.type), needed));
      known = found;
    }
    if (known == nullptr && !made) made = make_master(weights, source.name, source.type.dtype);
    if (made) known = &*made;
    const plan::NodeView node = plan_.graph.view(source.node);
    WEFT_TRY_STATUS(rank_->write(*port, [&](std::span<std::byte> memory) {
      if (known == nullptr && source.is_whole(number())) {
        write_initial(node, weights.seed, memory);
      } else if (known == nullptr) {
        drawn.resize(static_cast<std::size_t>(source.type.bytes()));
        write_initial(node, weights.seed, drawn);
        cut_share(source.type, shares(source), drawn, memory);
      } else {
        cut_share(source.type, shares(source), known->bytes, memory);
      }
    }));
  }
  return {};
}

// The group has the ranks with the same shares that read different examples.
Status Member::start_averages(const Weights& weights, const OuterUpdate& outer) {
  const std::vector<std::size_t> data = distribute::data_axes(plan_);
  std::int32_t colour = 0;
  for (std::size_t axis = 0; axis < plan_.mesh.axes.size(); ++axis)
    if (std::ranges::find(data, axis) == data.end())
      colour = colour * plan_.mesh.axes[axis].ranks + plan_.mesh.coordinate(number(), axis);
  WEFT_TRY(group, world_->split(colour, number()));
  averages_.emplace(*rank_, std::move(group), outer);
  std::vector<std::byte> share;
  // Parameters first, then the states that they are rounded from.
  for (const SharedSource::Kind kind : {SharedSource::Kind::parameter, SharedSource::Kind::state})
    for (const SharedSource& source : sources_) {
      const Port* const port = source.kind == kind ? port_of(source) : nullptr;
      if (port == nullptr) continue;
      const bool is_parameter = kind == SharedSource::Kind::parameter;
      const std::string of =
          is_parameter ? source.name : std::string(train::parameter_of_moment(source.name));
      WEFT_TRY(kept, find_tensor(weights, ParameterAverages::momentum_name(of), plan::DType::f32,
                                 shape_of_type(source.type), false));
      share.clear();
      if (kept != nullptr) {
        share.resize(static_cast<std::size_t>(elements_of(shares(source))) * sizeof(float));
        cut_share({plan::DType::f32, source.type.dims}, shares(source), kept->bytes, share);
      }
      WEFT_TRY_STATUS(averages_->add(*port, is_parameter, share));
    }
  return {};
}

void Member::take_input(const SharedSource& source, const Port* port) {
  inputs_.push_back({source.type.dtype, {}});
  if (port == nullptr) return;  // this rank does not read it
  const std::span<const plan::Share> mine = shares(source);
  InputMemory& input = inputs_.back();
  input.bytes = rank_->input(*port);
  input.first = mine.empty() ? 0 : mine[0].begin;
  input.rows = mine.empty() ? 1 : mine[0].size;
  std::int64_t row = 1;
  for (std::size_t d = 1; d < mine.size(); ++d) row *= source.type.dims[d].size;
  if (elements_of(mine) == input.rows * row) return;
  CutRows& cut = cuts_.emplace_back();
  cut.dtype = source.type.dtype;
  cut.dims.assign(source.type.dims.begin(), source.type.dims.end());
  cut.shares.assign(mine.begin(), mine.end());
  cut.dims[0].size = input.rows;
  cut.shares[0].begin = 0;
  cut.whole.resize(static_cast<std::size_t>(input.rows * row * plan::size_in_bytes(cut.dtype)));
  cut.part = std::exchange(input.bytes, cut.whole);
}

void Member::feed(const Feed& feed, std::int64_t step) {
  feed.fill(inputs_, step);
  for (const CutRows& cut : cuts_) cut_share({cut.dtype, cut.dims}, cut.shares, cut.whole, cut.part);
}

Result<double> Member::loss() const { return rank_->number(rank_->program().outputs.front()); }

Result<StepRequest> Member::hear(Word word) {
  comm::Communicator& all = whole_ != nullptr ? *whole_ : *world_;
  std::int64_t packed = StepRequest{word, all.rank()}.pack();
  WEFT_TRY_STATUS(all.all_reduce(&packed, &packed, 1, ElementType::i64, comm::ReduceOp::max));
  return StepRequest::unpack(packed);
}

Status Member::compare_replicas(std::int64_t step) {
  std::vector<std::uint64_t> mine;
  for (const SharedSource& source : sources_) {
    if (source.kind == SharedSource::Kind::input) continue;
    const bool is_alike = steps_alone_ == 1 || source.kind == SharedSource::Kind::parameter;
    const Port* const port = source.is_read && source.has_copies && is_alike ? port_of(source) : nullptr;
    std::uint64_t sample = 0;
    if (port != nullptr) {
      WEFT_TRY(held, rank_->read(*port));
      sample = sample_of(held.bytes(), static_cast<std::uint64_t>(step));
    }
    mine.push_back(sample);
  }
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(world_->size()));
  WEFT_TRY_STATUS(
      world_->all_gather(mine.data(), all.data(), static_cast<std::int64_t>(mine.size()), ElementType::i64));
  std::size_t at = 0;
  for (const SharedSource& source : sources_) {
    if (source.kind == SharedSource::Kind::input) continue;
    std::vector<bool> seen(source.shares.size());
    for (std::size_t first = 0; first < source.shares.size(); ++first) {
      std::vector<RankValue> copies;  // of the share that rank `first` holds
      for (std::size_t rank = first; rank < source.shares.size(); ++rank) {
        if (seen[rank] || !source.is_held(rank) || source.shares[rank] != source.shares[first]) continue;
        seen[rank] = true;
        copies.push_back({static_cast<std::int32_t>(rank), fmt::format("{}", all[rank * mine.size() + at])});
      }
      const Sides sides = split_by_majority(copies);
      if (sides.odd.empty()) continue;
      return environment_error(
          fmt::format("{} {} other values of {} than {} after step {}", transport::name_ranks(sides.odd),
                      sides.odd.size() == 1 ? "has" : "have", source.name, transport::name_ranks(sides.alike),
                      print_exact(step)),
          "the ranks diverged: hosts that compute differently, or a memory fault; LOAD the "
          "last checkpoint; replica_check_every = 0 skips this check");
    }
    ++at;
  }
  return {};
}

Status Member::gather(Weights& weights, bool everywhere) {
  std::vector<std::int32_t> everyone(static_cast<std::size_t>(world_->size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return gather(*world_, everyone, weights, everywhere);
}

Status Member::gather(comm::Communicator& group, std::span<const std::int32_t> numbers, Weights& weights,
                      bool everywhere) {
  weights.tensors.clear();
  const bool keeps = everywhere || group.rank() == 0;
  for (const SharedSource& source : sources_) {
    if (source.kind == SharedSource::Kind::input || !source.is_read) continue;
    const Port* const port = port_of(source);
    std::optional<exec::HostBytes> held;
    if (port != nullptr) {
      WEFT_TRY(read, rank_->read(*port));
      held = std::move(read);
    }
    const auto keep_tensor = [&](const std::string& name, plan::DType dtype,
                                 std::span<const std::byte> mine) -> Status {
      const plan::Type type{dtype, source.type.dims};
      WEFT_TRY(bytes, gather_shares(group, numbers, source, type, mine, everywhere));
      if (keeps) weights.tensors.emplace(name, Tensor{dtype, shape_of_type(type), std::move(bytes)});
      return {};
    };
    WEFT_TRY_STATUS(
        keep_tensor(source.name, source.type.dtype, held ? held->bytes() : std::span<const std::byte>()));
    if (!averages_ || source.kind != SharedSource::Kind::parameter) continue;
    if (const std::span<const float> momentum = averages_->momentum(source.name); !momentum.empty())
      WEFT_TRY_STATUS(keep_tensor(ParameterAverages::momentum_name(source.name), plan::DType::f32,
                                  std::as_bytes(momentum)));
  }
  return {};
}

Result<std::vector<std::byte>> Member::gather_shares(comm::Communicator& group,
                                                     std::span<const std::int32_t> numbers,
                                                     const SharedSource& source, const plan::Type& type,
                                                     std::span<const std::byte> mine, bool everywhere) {
  const bool keeps = everywhere || group.rank() == 0;
  std::vector<std::byte> whole;
  if (std::ranges::all_of(numbers, [&](std::int32_t rank) { return source.is_whole(rank); })) {
    if (keeps) whole.assign(mine.begin(), mine.end());
    return whole;
  }
  const std::vector<std::int64_t> counts = bytes_from(source, type.dtype, numbers);
  if (std::reduce(counts.begin(), counts.end()) != type.bytes())
    return environment_error(fmt::format("no surviving rank has all of {}", source.name));
  std::vector<std::byte> all(keeps ? static_cast<std::size_t>(type.bytes()) : 0);
  WEFT_TRY_STATUS(group.run({.kind = everywhere ? comm::Kind::all_gather : comm::Kind::gather,
                             .input = mine.data(),
                             .output = all.data(),
                             .type = ElementType::u8,
                             .counts = counts}));
  if (!keeps) return whole;
  whole.resize(all.size());
  std::span<const std::byte> rest = all;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const auto& share = source.shares[static_cast<std::size_t>(numbers[rank])];
    if (counts[rank] > 0) put_share(type, share, rest, whole);
    rest = rest.subspan(static_cast<std::size_t>(counts[rank]));
  }
  return whole;
}

Status Member::keep_copy(std::int64_t step) {
  std::swap(copies_[0], copies_[1]);
  copies_[0].step = -1;  // until the copy is complete
  WEFT_TRY_STATUS(rank_->keep(copies_[0].bytes));
  copies_[0].step = step;
  return {};
}

Result<Weights> Member::rescue(Weights weights) {
  WEFT_TRY(left, world_->shrink(comm::Quorum::any));
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(left->size()));
  const std::int32_t mine = number();
  WEFT_TRY_STATUS(left->all_gather(&mine, numbers.data(), 1, ElementType::i32));
  std::int64_t step = copies_[0].step;
  WEFT_TRY_STATUS(left->all_reduce(&step, &step, 1, ElementType::i64, comm::ReduceOp::min));
  const auto copy = std::ranges::find(copies_, step, &Copy::step);
  std::int64_t lacks = step < 0 || copy == copies_.end() || numbers.front() != 0;
  for (const SharedSource& source : sources_) {
    if (source.kind == SharedSource::Kind::input || !source.is_read) continue;
    // Values that only the failed rank had are lost.
    if (!source.has_copies) lacks = 1;
  }
  WEFT_TRY_STATUS(left->all_reduce(&lacks, &lacks, 1, ElementType::i64, comm::ReduceOp::max));
  if (lacks != 0) return environment_error("the surviving ranks have no copy of the same step");
  WEFT_TRY_STATUS(rank_->put_back(copy->bytes));
  WEFT_TRY_STATUS(gather(*left, numbers, weights, false));
  weights.step = step;
  return weights;
}

Result<std::vector<std::vector<std::byte>>> Member::gather(std::span<const std::byte> mine, bool everywhere) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(world_->size()));
  const auto bytes = static_cast<std::int64_t>(mine.size());
  WEFT_TRY_STATUS(world_->all_gather(&bytes, counts.data(), 1, ElementType::i64));
  const bool keeps = everywhere || number() == 0;
  std::vector<std::byte> all;
  if (keeps) all.resize(static_cast<std::size_t>(std::reduce(counts.begin(), counts.end())));
  WEFT_TRY_STATUS(world_->run({.kind = everywhere ? comm::Kind::all_gather : comm::Kind::gather,
                               .input = mine.data(),
                               .output = all.data(),
                               .type = ElementType::u8,
                               .counts = counts}));
  std::vector<std::vector<std::byte>> parts;
  if (!keeps) return parts;
  auto next = all.begin();
  for (const std::int64_t count : counts) {
    parts.emplace_back(next, next + count);
    next += count;
  }
  return parts;
}

}  // namespace weft::run
