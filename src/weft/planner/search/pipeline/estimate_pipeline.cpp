#include "weft/planner/search/pipeline/estimate_pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "weft/parallel/pipeline/cut_parts.h"

namespace weft::search {
namespace {

bool has_chunks(const pipeline::ScheduleText& schedule) {
  return std::ranges::find(schedule.parameters, "chunks", &pipeline::ScheduleText::Parameter::name) !=
         schedule.parameters.end();
}

// Bytes that a pass of a part works on, with the software's workspaces.
double working_of(const cluster::Stack& stack, const PartCost& cost) {
  return stack.working * cost.working + stack.logits * cost.logits + stack.weight_gradients * cost.largest;
}

// Sum over a run of consecutive parts.
PartCost sum_of(const cluster::Stack& stack, const PartCosts& costs, std::size_t first, std::size_t end) {
  PartCost sum;
  for (std::size_t p = first; p < end; ++p) {
    sum.forward += costs[p].forward;
    sum.backward += costs[p].backward;
    sum.weight += costs[p].weight;
    sum.repeated += costs[p].repeated;
    sum.on_host += costs[p].on_host;
    sum.computing += costs[p].computing;
    sum.products += costs[p].products;
    sum.attention += costs[p].attention;
    sum.update += costs[p].update;
    sum.reducing += costs[p].reducing;
    sum.gathering += costs[p].gathering;
    sum.layers += costs[p].layers;
    if (costs[p].layers > 0) sum.of_layers += costs[p].forward;
    sum.kept += costs[p].kept;
    sum.working = std::max(sum.working, working_of(stack, costs[p]));
    sum.parameters += costs[p].parameters;
    sum.gradients += costs[p].gradients;
    sum.optimizer += costs[p].optimizer;
    sum.tied.insert(sum.tied.end(), costs[p].tied.begin(), costs[p].tied.end());
  }
  if (first > 0) sum.kept += costs[first - 1].sent;
  return sum;
}

// What comes after the last pass of a stage, and how many of the model's layers it has.
struct EndOfStep {
  double reducing = 0, gathering = 0, layers = 0;
  double of_layers = 0;  // seconds of forward passes that are of layers
};

void add_run(const cluster::Stack& stack, StageCost& stage, const PartCost& run, double in_flight,
             EndOfStep& end) {
  stage.forward += run.forward;
  stage.backward += run.backward;
  stage.weight += run.weight;
  stage.repeated += run.repeated;
  stage.on_host += run.on_host;
  stage.computing += run.computing;
  stage.products += run.products;
  stage.attention += run.attention;
  stage.update += run.update;
  end.reducing += run.reducing;
  end.gathering += run.gathering;
  end.layers += run.layers;
  end.of_layers += run.of_layers;
  stage.memory.parameters += run.parameters;
  stage.memory.gradients += run.gradients;
  stage.memory.optimizer += run.optimizer;
  stage.memory.activations += in_flight * stack.kept * run.kept;
  stage.memory.scratch = std::max(stage.memory.scratch, run.working);
}

// The host launches a stage's kernels one by one: its passes take at least that long.
void apply_stack(const StagedCosts& staged, const pipeline::Schedule& schedule, const EndOfStep& end,
                 StageCost& stage) {
  const cluster::Stack& stack = staged.stack;
  if (stack.is_weft()) return;
  // Launchers that recompute a layer run all of it again, also what no gradient needs.
  if (stack.repeats_layers > 0 && staged.recomputes_layers)
    stage.backward += std::max(0.0, end.of_layers - stage.repeated);
  const bool in_stages = schedule.stages > 1;
  constexpr double kForwardShare = 0.4;  // of the kernels that a layer launches
  double host = stack.host_layer;
  if (in_stages)
    host +=
        stack.host_layer_staged + stack.host_layer_staged_rank * static_cast<double>(staged.tensor_ranks - 1);
  host = host * end.layers + stack.host_pass * static_cast<double>(stage.runs.size());
  const double forward = std::max(stage.forward, kForwardShare * host),
               backward = stage.backward + stage.weight,
               slowed = std::max(backward, (1 - kForwardShare) * host);
  stage.forward = forward;
  if (backward > 0) {
    stage.backward *= slowed / backward;
    stage.weight *= slowed / backward;
  }
}

// Software whose kernels are fused otherwise keeps other activations (add_run) and has other buffers of gradients.
void apply_stack_memory(const cluster::Stack& stack, StageCost& stage) {
  stage.memory.gradients *= stack.gradients;
  stage.memory.scratch += stack.workspace;
}

// What a device needs besides the tensors that the allocator counts.
double with_overheads(const cluster::Stack& stack, double bytes, std::size_t groups) {
  return bytes * (1 + stack.fragmentation) + stack.context + stack.buffers * static_cast<double>(groups);
}

// Gradient sums overlap the last backward pass and parameter gathers the first forward pass where the software
// allows it. Weft's own sums follow the last pass, beside the update.
double end_seconds(const StagedCosts& staged, const StageCost& stage, const EndOfStep& end) {
  const cluster::Stack& stack = staged.stack;
  if (stack.is_weft()) return std::max(stage.update, end.reducing);
  // `collectives` applies to collectives within passes only. 0 makes all of them free.
  const double alone = stack.collectives > 0 ? 1 / stack.collectives : 0;
  const double sums = (end.reducing - end.gathering) * alone, gathers = end.gathering * alone;
  // Sharded gradients are scattered by the code that gathers the parameters, whole ones by hooks of the passes.
  const double exposed =
      gathers > 0 ? std::max(stack.exposed_reduce, stack.exposed_gather) : stack.exposed_reduce;
  const double hidden_sums =
      staged.overlaps_reduce ? std::min(sums * (1 - exposed), stage.backward + stage.weight) : 0;
  const double hidden_gathers =
      staged.overlaps_gather ? std::min(gathers * (1 - stack.exposed_gather), stage.forward) : 0;
  return stage.update + sums - hidden_sums + gathers - hidden_gathers + stack.host_step;
}

struct Transfer {
  double seconds = 0;
  bool slices = false;
};

// Transfer to the next stage, either whole or in slices that are gathered there.
Transfer transfer_of(const PartCost& last, double sent, const StagedCosts& staged,
                     const cost::MeshLink& link) {
  const auto over = [](double bytes, const cost::MeshLink& wire) {
    return wire.bytes_per_second > 0 ? std::max(0.0, bytes) / wire.bytes_per_second : 0.0;
  };
  Transfer best{link.latency_seconds + over(sent - last.spared, link), false};
  bool must = staged.must_slice;
  for (std::size_t axis = 0; axis < std::min(staged.slicing.size(), last.alike.size()); ++axis) {
    const StagedCosts::Axis& along = staged.slicing[axis];
    if (along.ranks < 2 || last.alike[axis] <= 0 || sent <= 0) continue;
    const double less = last.alike[axis] * (1 - 1.0 / along.ranks);
    const double seconds = link.latency_seconds + over((sent - last.spared) * (1 - less / sent), link) +
                           along.link.latency_seconds * (along.ranks - 1) + over(less, along.link);
    if (!must && seconds >= best.seconds) continue;
    best = {seconds, true};
    must = false;
  }
  return best;
}

// A tied parameter is stored on several stages. One of them receives the others' gradients,
// updates, and sends back the new value. Their steps end only then.
void add_tied(const std::vector<std::map<std::uint32_t, TiedParameter>>& held, const cost::MeshLink& link,
              std::vector<StageCost>& stages) {
  std::map<std::uint32_t, std::vector<std::size_t>> holders;
  for (std::size_t s = 0; s < held.size(); ++s)
    for (const auto& [source, tied] : held[s]) holders[source].push_back(s);
  for (const auto& [source, of] : holders) {
    if (of.size() < 2) continue;
    const TiedParameter& tied = held[of.front()].at(source);
    double seconds = 2 * link.latency_seconds;
    if (link.bytes_per_second > 0) seconds += (tied.gradient + tied.value) / link.bytes_per_second;
    for (const std::size_t s : of) {
      const double exchanging = seconds * static_cast<double>(s == of.front() ? of.size() - 1 : 1);
      stages[s].tied += exchanging;
      stages[s].update += exchanging;
    }
  }
}

std::size_t wire_between(std::int32_t a, std::int32_t b) {
  const std::int32_t low = std::min(a, b), high = std::max(a, b);
  return static_cast<std::size_t>(high - low == 1 ? low : high);
}

}  // namespace

std::vector<double> work_of(const PartCosts& costs) {
  std::vector<double> work;
  for (const PartCost& cost : costs) work.push_back(cost.work());
  return work;
}

std::vector<std::size_t> cut_parts(const PartCosts& costs, std::size_t positions) {
  return pipeline::cut_parts(work_of(costs), positions);
}

std::int32_t chunks_of(const pipeline::ScheduleText& schedule, std::int32_t asked) {
  if (asked > 1) return asked;
  for (const pipeline::ScheduleText::Parameter& parameter : schedule.parameters)
    if (parameter.name == "chunks" && parameter.value) return static_cast<std::int32_t>(*parameter.value);
  return asked;
}

Result<Unfolded> unfold(const TimeShape& shape) {
  std::map<std::string, double> parameters = {{"stages", shape.stages},
                                              {"micro_batches", static_cast<double>(shape.micro_batches)}};
  if (has_chunks(*shape.schedule)) {
    parameters["chunks"] = shape.chunks;
  } else if (shape.chunks > 1) {
    return user_error(
        fmt::format("schedule {} has one chunk per stage, found {}", shape.schedule->name, shape.chunks),
        "interleaved_one_f_one_b allows any number of chunks");
  }
  WEFT_TRY(schedule, pipeline::unfold(*shape.schedule, parameters));
  WEFT_TRY_STATUS(pipeline::verify(schedule));
  std::vector<double> in_flight = pipeline::peak_in_flight(schedule);
  return Unfolded{std::move(schedule), std::move(in_flight)};
}

Result<PipelineEstimate> estimate_pipeline(const StagedCosts& staged, const Unfolded& order,
                                           const std::vector<std::size_t>& cuts, const cost::MeshLink& link,
                                           Detail detail) {
  const pipeline::Schedule& schedule = order.schedule;
  const std::vector<double>& in_flight = order.in_flight;
  const auto count = static_cast<std::size_t>(schedule.stages);
  const auto positions = static_cast<std::int32_t>(cuts.size());
  pipeline::Times times = pipeline::Times::alike(schedule.stages, 0, 0, 0, 0);
  std::vector<StageCost> stages(count);
  std::vector<EndOfStep> ends(count);
  bool slices = false;
  std::vector<std::map<std::uint32_t, TiedParameter>> tied(count);
  for (std::int32_t position = 0; position < positions; ++position) {
    const auto at = static_cast<std::size_t>(position);
    const std::size_t first = at == 0 ? 0 : cuts[at - 1], end = cuts[at];
    const std::int32_t here = schedule.stage_at(position, 0);
    const auto stage = static_cast<std::size_t>(here);
    const PartCosts& costs = staged.at(stage).costs;
    const PartCost run = sum_of(staged.stack, costs, first, end);
    stages[stage].runs.push_back({first, end - first});
    add_run(staged.stack, stages[stage], run, in_flight[stage], ends[stage]);
    for (const TiedParameter& one : run.tied)
      if (!tied[stage].emplace(one.source, one).second) {  // the stage holds it once
        stages[stage].memory.parameters -= one.value;
        stages[stage].memory.gradients -= one.gradient;
      }
    // In a bidirectional pipeline, every stage holds two parts of the model.
    if (schedule.route == pipeline::Route::both_ways) {
      StageCost& other = stages[count - 1 - stage];
      other.memory.parameters += run.parameters;
      other.memory.gradients += run.gradients;
      other.memory.optimizer += run.optimizer;
    }
    if (position + 1 == positions) continue;
    const std::int32_t next = schedule.stage_at(position + 1, 0);
    if (next == here) continue;
    // Both ends encode what they send and decode what they receive, once per pass.
    for (const std::int32_t end_of_wire : {here, next}) {
      StageCost& codes = stages[static_cast<std::size_t>(end_of_wire)];
      codes.forward += costs[end - 1].coding / 2;
      codes.backward += costs[end - 1].coding / 2;
    }
    double& transfer = times.transfer[wire_between(here, next)];
    // Between different meshes, the smaller share is sent and then gathered at the receiver.
    const auto [sent, held] =
        std::minmax(costs[end - 1].sent, staged.at(static_cast<std::size_t>(next)).costs[end - 1].sent);
    const Transfer sending = transfer_of(costs[end - 1], sent, staged, link);
    double seconds = sending.seconds;
    slices = slices || sending.slices;
    if (staged.within_bytes_per_second > 0) seconds += (held - sent) / staged.within_bytes_per_second;
    transfer = std::max(transfer, seconds);
  }
  for (std::size_t s = 0; s < count; ++s) {
    apply_stack(staged, schedule, ends[s], stages[s]);
    times.forward[s] = stages[s].forward;
    times.backward[s] = stages[s].backward;
    times.weight[s] = stages[s].weight;
    stages[s].transfer = times.transfer[s];
    stages[s].update = end_seconds(staged, stages[s], ends[s]);
    apply_stack_memory(staged.stack, stages[s]);
  }
  add_tied(tied, link, stages);
  PipelineEstimate made;
  made.slices = slices;
  WEFT_TRY_STATUS(pipeline::check(times, schedule.stages));
  pipeline::Price price = pipeline::time_verified(schedule, times);

  // The step time is the span of passes, plus update, of the stage that ends last.
  std::size_t last = 0;
  double busiest = 0, all = 0, fullest = 0;
  for (std::size_t s = 0; s < count; ++s) {
    StageCost& stage = stages[s];
    const double begin = schedule.clock == pipeline::Clock::end ? 0 : price.slots[s].front().begin;
    const double seconds = price.slots[s].back().end - begin + stage.update;
    const double busy = times.work(s) * static_cast<double>(schedule.micro_batches);
    if (seconds > made.seconds) made.seconds = seconds, last = s;
    busiest = std::max(busiest, busy);
    all += busy;
    stage.in_flight = in_flight[s];
    stage.device = staged.at(s).device;
    const double bytes = stage.memory.total(), room = staged.at(s).room;
    const double needed = with_overheads(staged.stack, bytes, staged.groups);
    stage.needed_bytes = needed;
    made.fits = made.fits && needed <= room;
    const double over = std::isfinite(room) ? needed - room : needed;
    if (s == 0 || over > fullest) {
      fullest = over;
      made.peak_bytes = bytes;
      made.needed_bytes = needed;
      made.room = room;
      made.fullest = s;
    }
  }
  for (std::size_t s = 0; s < count; ++s)
    stages[s].idle = std::max(
        0.0, made.seconds - stages[s].update - times.work(s) * static_cast<double>(schedule.micro_batches));
  made.updating = stages[last].update;
  made.stages = std::move(stages);
  if (detail == Detail::sums) return made;
  pipeline::Times without = times;
  without.transfer.assign(count, 0);
  made.transferring = std::max(0.0, price.cost - pipeline::time_verified(schedule, without).cost);
  made.filling = std::max(0.0, made.seconds - made.updating - busiest - made.transferring);
  made.unequal = busiest - all / static_cast<double>(count);
  price.peak_in_flight = in_flight;
  made.price = std::move(price);
  made.schedule = schedule;
  return made;
}

// If no pass waits for W, it can fill bubbles.
bool splits_weight_passes(const pipeline::ScheduleText& schedule) {
  return schedule.clock == pipeline::Clock::span || schedule.name.starts_with("zb");
}

namespace {

// All parts as if stages were alike. Stages of several kinds share them to take equal time.
PartCost shared_by_stages(const StagedCosts& costs, const TimeShape& shape) {
  PartCost all = sum_of(costs.stack, costs.kinds.front().costs, 0, costs.kinds.front().costs.size());
  if (!costs.is_mixed()) return all;
  double pace = 0, least_update = std::numeric_limits<double>::infinity(), least_reducing = least_update;
  std::vector<PartCost> sums;
  for (const StagedCosts::Kind& kind : costs.kinds) {
    sums.push_back(sum_of(costs.stack, kind.costs, 0, kind.costs.size()));
    least_update = std::min(least_update, sums.back().update);
    least_reducing = std::min(least_reducing, sums.back().reducing);
  }
  for (const std::size_t kind : costs.of_stage) pace += 1 / std::max(sums[kind].work(), 1e-30);
  const double slower = shape.stages / pace / std::max(all.work(), 1e-30);
  all.forward *= slower;
  all.backward *= slower;
  all.weight *= slower;
  all.update = least_update;
  all.reducing = least_reducing;
  return all;
}

}  // namespace

double likely_seconds(const StagedCosts& costs, const TimeShape& shape) {
  const PartCost all = shared_by_stages(costs, shape);
  const double stage = all.work() / shape.stages;
  const double filling =
      splits_weight_passes(*shape.schedule) ? 0 : stage * (shape.stages - 1) / shape.chunks;
  return static_cast<double>(shape.micro_batches) * stage + filling +
         std::max(all.update, all.reducing) / shape.stages;
}

double least_seconds(const StagedCosts& costs, const TimeShape& shape) {
  const PartCost all = shared_by_stages(costs, shape);
  const auto micro = static_cast<double>(shape.micro_batches);
  if (costs.is_mixed()) return micro * all.work() / shape.stages;
  // At least one stage is as busy as the average.
  const double busy = (micro * all.work() + std::max(all.update, all.reducing)) / shape.stages;
  if (splits_weight_passes(*shape.schedule) || shape.chunks > 1 || shape.micro_batches == 1)
    return std::max(busy, all.work());
  // T >= m w(s) + w(0) + .. + w(s - 1) for every stage s. Over all cuts, T is least if all are
  // equal, so that w(s) = T / m (1 - 1/m)^s.
  return std::max(busy, all.work() / (1 - std::pow(1 - 1 / micro, shape.stages)));
}

double least_bytes(const PartCosts& costs, const TimeShape& shape) {
  const PartCost all = sum_of(cluster::Stack(), costs, 0, costs.size());
  return (all.parameters + all.gradients + all.optimizer + all.kept) / shape.stages;
}

double held_bytes(const PartCosts& costs, const TimeShape& shape) {
  std::map<std::string, double> parameters = {{"stages", shape.stages},
                                              {"micro_batches", static_cast<double>(shape.micro_batches)}};
  if (shape.chunks > 1) parameters["chunks"] = shape.chunks;
  const auto claimed = pipeline::claims(*shape.schedule, parameters, 1, 1, 1);
  if (!claimed.ok() || !claimed->hold || claimed->peak.empty()) return 0;
  double persistent = 0, kept = 0;
  for (const PartCost& cost : costs) {
    persistent += cost.parameters + cost.gradients + cost.optimizer;
    kept += cost.kept;
  }
  constexpr double kUnequal = 1.1;  // stages are cut by time and may hold less than an equal share
  double least = std::numeric_limits<double>::infinity();
  for (const double peak : claimed->peak) least = std::min(least, persistent + peak * kept);
  const double most = persistent + *std::ranges::max_element(claimed->peak) * kept;
  return std::max(least, most / kUnequal) / shape.stages;
}

}  // namespace weft::search
