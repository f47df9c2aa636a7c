#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/codecs.h"
#include "weft/app/explain/in_time.h"
#include "weft/app/explain/in_time_words.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/summary.h"
#include "weft/app/explain/table.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/stage_meshes.h"
#include "weft/parallel/pipeline/draw.h"
#include "weft/planner/search/pipeline/offload.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::explain {
namespace {

constexpr std::size_t kMostStages = 16;  // that are shown one by one

using search::StageCost;

}  // namespace

std::string parts_of(const InTimeExplanation& explanation, const StageCost& stage) {
  const std::vector<std::string>& names = explanation.choice->parts;
  std::string text;
  for (const StageCost::Run& run : stage.runs) {
    text += text.empty() ? "" : "; ";
    text += names[run.first];
    if (run.count > 1) text += fmt::format(" .. {}", names[run.first + run.count - 1]);
  }
  return text;
}

namespace {

std::size_t count_of(const StageCost& stage) {
  std::size_t count = 0;
  for (const StageCost::Run& run : stage.runs) count += run.count;
  return count;
}

std::string stages_table(const InTimeExplanation& explanation) {
  const search::PricedInTime& priced = explanation.choice->priced;
  const bool mixed = !priced.stages.front().device.empty();
  std::vector<Column> columns = {
      {"stage", Align::right},
      {"parts", Align::right},
      {"from .. to", Align::left, explanation.about.verbose ? Fit::wrap : Fit::cut},
      {"F", Align::right},
      {"B", Align::right},
      {"W", Align::right},
      {"update", Align::right, Fit::whole, 1},
      {"idle", Align::right},
      {"in flight", Align::right},
      {"memory", Align::right}};
  if (mixed) columns.insert(columns.begin() + 1, {"devices"});
  Table table(std::move(columns));
  const std::size_t shown = explanation.about.verbose ? priced.stages.size() : kMostStages;
  for (std::size_t s = 0; s < std::min(priced.stages.size(), shown); ++s) {
    const StageCost& stage = priced.stages[s];
    std::vector<std::string> row = {fmt::format("{}", s),
                                    fmt::format("{}", count_of(stage)),
                                    parts_of(explanation, stage),
                                    print_seconds(stage.forward),
                                    print_seconds(stage.backward),
                                    print_seconds(stage.weight),
                                    print_seconds(stage.update),
                                    rounded_percent(stage.idle / priced.seconds),
                                    fmt::format("{:.4g}", stage.in_flight),
                                    print_bytes(stage.memory.total())};
    if (mixed) row.insert(row.begin() + 1, stage.device);
    table.add(std::move(row));
  }
  std::string text = table.print(explanation.about.width);
  if (priced.stages.size() > shown)
    text += fmt::format("and {} more; VERBOSE shows them\n", priced.stages.size() - shown);
  return text;
}

// "stage 0 on data=4: slice b", and so on: those of equal meshes once, where meshes differ.
std::string meshes_lines(const InTimeExplanation& explanation) {
  const distribute::Distribution& distribution = explanation.choice->distribution;
  if (!distribute::has_stage_meshes(distribution)) return {};
  std::string text;
  const auto stages = static_cast<std::int32_t>(explanation.choice->priced.stages.size());
  for (std::int32_t first = 0, next = 0; first < stages; first = next) {
    const std::string mesh = distribute::print_stage_mesh(distribution, first);
    for (next = first + 1; next < stages && distribute::print_stage_mesh(distribution, next) == mesh;) ++next;
    text += wrap(fmt::format("{} on {}", distribute::print_stages(first, next - 1), mesh),
                 explanation.about.width);
  }
  return text + "\n";
}

// "+12 %": how far the measured time is from the predicted one.
std::string off_by(double predicted, double measured) {
  if (!(predicted > 0 && measured > 0)) return {};
  return fmt::format("{:+.0f} %", 100 * (measured / predicted - 1));
}

// A row a stage, predicted and measured beside one another.
std::string measured_table(const InTimeExplanation& explanation) {
  const MeasuredInTime& measured = *explanation.measured;
  const search::PricedInTime& priced = explanation.choice->priced;
  Table table({{"stage", Align::right},
               {"F", Align::right},
               {"measured", Align::right},
               {"B", Align::right},
               {"measured", Align::right},
               {"W", Align::right},
               {"measured", Align::right},
               {"update", Align::right, Fit::whole, 1},
               {"measured", Align::right, Fit::whole, 1},
               {"idle", Align::right},
               {"measured", Align::right}});
  for (std::size_t s = 0; s < measured.stages.size(); ++s) {
    const StageCost& stage = priced.stages[s];
    const MeasuredInTime::Stage& took = measured.stages[s];
    table.add({fmt::format("{}", s), print_seconds(stage.forward), print_seconds(took.forward),
               print_seconds(stage.backward), print_seconds(took.backward), print_seconds(stage.weight),
               print_seconds(took.weight), print_seconds(stage.update), print_seconds(took.update),
               rounded_percent(stage.idle / priced.seconds), rounded_percent(took.idle / measured.seconds)});
  }
  return table.print(explanation.about.width);
}

std::string measured_step_line(const InTimeExplanation& explanation) {
  const MeasuredInTime& measured = *explanation.measured;
  const search::PricedInTime& priced = explanation.choice->priced;
  return fmt::format(
      "measured {} a step (median of {}, {}), {}; bubble {}, predicted {}; memory {} on rank 0\n",
      print_seconds(measured.seconds), measured.steps, measured.ranks,
      off_by(priced.seconds, measured.seconds), rounded_percent(measured.bubble_rate()),
      rounded_percent(priced.bubble_rate()), print_bytes(measured.memory_bytes));
}

}  // namespace

namespace {

// "replicas take 11, 5 micro-batches: 11 on a100 in 24.1 ms, 5 on v100 in 23.7 ms": of those alike once.
std::string replicas_line(const search::ChosenInTime& choice) {
  if (choice.replicas.empty()) return {};
  std::string takes, kinds;
  std::set<std::pair<std::int64_t, std::string>> said;
  for (const search::Replica& replica : choice.replicas) {
    takes += fmt::format("{}{}", takes.empty() ? "" : ", ", replica.takes);
    if (!said.emplace(replica.takes, replica.device).second) continue;
    kinds += fmt::format("{}{}{} in {}", kinds.empty() ? "" : ", ", replica.takes,
                         replica.device.empty() ? std::string() : " on " + replica.device,
                         print_seconds(replica.seconds));
  }
  return fmt::format("replicas take {} of them: {}\n", takes, kinds);
}

}  // namespace

std::string schedule_line(const InTimeExplanation& explanation) {
  const pipeline::Schedule& schedule = explanation.choice->priced.schedule;
  return fmt::format("schedule {}: {} stage{}{}, {} micro-batch{} of {} = {}\n", schedule.name,
                     schedule.stages, schedule.stages == 1 ? "" : "s",
                     schedule.chunks > 1 ? fmt::format(" of {} chunks", schedule.chunks) : std::string(),
                     schedule.micro_batches, schedule.micro_batches == 1 ? "" : "es", explanation.batch,
                     explanation.rows / explanation.choice->distribution.micro_batches) +
         replicas_line(*explanation.choice);
}

namespace {

// The first lines of a drawing where there are many stages.
std::string drawing(const InTimeExplanation& explanation, const pipeline::Price& price) {
  const search::PricedInTime& priced = explanation.choice->priced;
  if (priced.stages.size() < 2) return {};
  std::string text = pipeline::draw_text(priced.schedule, price, explanation.about.width);
  if (priced.stages.size() <= kMostStages || explanation.about.verbose) return text;
  std::size_t end = 0;
  for (std::size_t line = 0; line < kMostStages; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

// One step as it ran, from the begin of its first pass on.
std::string measured_drawing(const InTimeExplanation& explanation) {
  pipeline::Price price;
  price.slots = explanation.measured->slots;
  double begin = 0;
  bool first = true;
  for (const auto& slots : price.slots)
    for (const pipeline::Slot& slot : slots)
      begin = first ? slot.begin : std::min(begin, slot.begin), first = false;
  for (auto& slots : price.slots)
    for (pipeline::Slot& slot : slots) {
      slot = {slot.begin - begin, slot.end - begin};
      price.end = std::max(price.end, slot.end);
    }
  std::string text = drawing(explanation, price);
  return text.empty() ? text : "as it ran\n" + text;
}

}  // namespace

std::string bubble_line(const search::PricedInTime& priced) {
  std::vector<std::string> causes;
  const auto add = [&](double seconds, std::string_view why) {
    if (seconds >= 0.0005 * priced.seconds)
      causes.push_back(fmt::format("{} {}", print_seconds(seconds), why));
  };
  add(priced.filling, "while the pipeline fills and drains");
  add(priced.transferring, "for transfers between stages");
  std::string text = fmt::format("bubble {} of the step", rounded_percent(priced.bubble_rate()));
  if (!causes.empty()) text += fmt::format(": {}", fmt::join(causes, ", "));
  if (priced.unequal >= 0.0005 * priced.seconds)
    text += fmt::format("; the busiest stage computes {} more than the average one",
                        print_seconds(priced.unequal));
  return text + fmt::format("; sums of gradients and update {}\n", print_seconds(priced.updating));
}

namespace {

Summary summary_of(const InTimeExplanation& explanation) {
  const search::ChosenInTime& choice = *explanation.choice;
  const search::PricedInTime& priced = choice.priced;
  const StageCost& fullest = priced.stages[priced.fullest];
  double computing = 0;
  for (const StageCost& stage : priced.stages) computing = std::max(computing, stage.computing);
  computing *= static_cast<double>(priced.schedule.micro_batches);
  Summary summary;
  summary.parallelism = explanation.about.parallelism;
  summary.chosen = print(choice.distribution);
  const bool here = cost::is_local(explanation.about.cluster);
  summary.step = fmt::format(
      "{}, predicted; {} of the peak rate; computing {}, bubble {}, update {}", print_seconds(priced.seconds),
      rounded_percent(explanation.about.utilization(priced.seconds)), print_seconds(computing),
      print_seconds(priced.bubble()), print_seconds(priced.updating));
  if (explanation.measured)
    summary.step =
        fmt::format("{}, measured; {}", print_seconds(explanation.measured->seconds), summary.step);
  summary.bound =
      fmt::format("its busiest stage: {} of the step; no plan takes less than {}",
                  rounded_percent((priced.seconds - priced.bubble() - priced.updating) / priced.seconds),
                  print_seconds(explanation.lower_bound_seconds));
  summary.memory = fmt::format("{} a rank of stage {}", print_bytes(priced.peak_bytes), priced.fullest);
  if (const double limit = explanation.about.memory_bytes; limit > 0)
    summary.memory +=
        priced.peak_bytes <= limit
            ? fmt::format(", {} of {}", rounded_percent(priced.peak_bytes / limit), print_bytes(limit))
            : fmt::format(", which does not fit: there are {}", print_bytes(limit));
  summary.memory += ": " + memory_kinds(fullest.memory);
  if (!choice.fits)
    summary.next = "more stages, fewer rows a micro-batch, or shard optimizer";
  else if (here && !explanation.measured)
    summary.next = "EXPLAIN ANALYZE: it runs here, and measured stands beside predicted";
  else
    summary.next = "distribution = '...' prices a plan of yours; weft schedule show draws a schedule";
  return summary;
}

std::string alternatives(const InTimeExplanation& explanation) {
  const DistributedExplanation& about = explanation.about;
  const search::ChosenInTime& choice = *explanation.choice;
  Table table({{"plan", Align::left, Fit::cut},
               {"step", Align::right},
               {"of peak", Align::right, Fit::whole, 2},
               {"memory", Align::right},
               {"bubble", Align::right, Fit::whole, 1}});
  const auto add = [&](std::string name, double seconds, double bytes, std::string bubble) {
    table.add({std::move(name), print_seconds(seconds), rounded_percent(about.utilization(seconds)),
               print_bytes(bytes), std::move(bubble)});
  };
  const auto in_time = [&](std::string name, const search::PlanInTime& plan) {
    add(std::move(name), plan.priced.seconds, plan.priced.peak_bytes,
        rounded_percent(plan.priced.bubble_rate()));
  };
  in_time("chosen", choice);
  if (choice.megatron) {
    in_time("Megatron 3D", *choice.megatron);
    if (choice.megatron->distribution == choice.distribution) {
      table.add_below("it is the one chosen");
    } else {
      if (!about.brief) table.add_below(print(choice.megatron->distribution));
      table.add_below(choice.megatron->fits ? fmt::format("{:.2f}x slower", choice.megatron->priced.seconds /
                                                                                choice.priced.seconds)
                                            : "does not fit");
    }
  }
  for (const search::Alternative& other : explanation.without_stages) {
    add(other.name, other.evaluation.seconds, other.evaluation.peak_bytes, "");
    if (!about.brief) table.add_below(print(other.distribution));
    table.add_below(other.why_not);
  }
  return table.print(about.width);
}

std::string search_line(const InTimeExplanation& explanation) {
  const search::ChosenInTime& choice = *explanation.choice;
  if (explanation.given) return "the distribution was given, nothing was searched\n";
  if (choice.candidates == 0)
    return "micro-batches were given, and go through the plan that is chosen for whole batches\n";
  std::string text =
      fmt::format("planned in {}: searched {} pipeline plans, {} programs simulated",
                  print_seconds(explanation.about.planning_seconds), choice.candidates, choice.simulated);
  if (choice.folded > 0) text += fmt::format(", {} of {} layers each", choice.folded, choice.layers);
  text += fmt::format(", {} schedules priced; with its bubble none takes less than {}", choice.priced_events,
                      print_seconds(choice.least_seconds));
  return text + (choice.ended_early ? "; stopped: the time was up\n" : "\n");
}

std::string norms_line(const InTimeExplanation& explanation) {
  if (explanation.batch_norms == 0 || explanation.choice->distribution.micro_batches == 1) return {};
  return fmt::format(
      "batch norm{} take{} the statistics of a micro-batch, {} = {}, not of the batch: another model than "
      "with "
      "micro=1\n",
      explanation.batch_norms == 1 ? "" : "s", explanation.batch_norms == 1 ? "s" : "", explanation.batch,
      explanation.rows / explanation.choice->distribution.micro_batches);
}

// What is not kept on the device, and what that costs.
std::string savings_lines(const InTimeExplanation& explanation) {
  const search::PricedInTime& priced = explanation.choice->priced;
  const distribute::Distribution& distribution = explanation.choice->distribution;
  const StageCost& stage = priced.stages[priced.fullest];
  const std::size_t width = explanation.about.width;
  std::string text;
  if (!distribution.recompute.is_nothing())
    text +=
        wrap(fmt::format("recomputed: {}, {} of what stage {} computes", train::print(distribution.recompute),
                         rounded_percent(stage.repeated / (stage.forward + stage.backward + stage.weight)),
                         priced.fullest),
             width);
  if (distribution.offload)
    text +=
        wrap(fmt::format("offloaded: {} of optimizer states a rank lie on the host, which updates there: {} "
                         "of the step, by links of {} and memory of {} a device",
                         print_bytes(stage.on_host), rounded_percent(stage.update / priced.seconds),
                         print_rate(search::kHostLinkBytesPerSecond),
                         print_rate(search::kHostMemoryBytesPerSecond)),
             width);
  return text;
}

}  // namespace

std::string print_text(const InTimeExplanation& explanation) {
  const DistributedExplanation& about = explanation.about;
  const std::size_t width = about.width;
  std::string text =
      wrap(headline(about.task, about.model, about.cluster.name, about.sizes, about.settings), width);
  text += "\n" + print_summary(summary_of(explanation), width) + "\n";
  if (!about.brief) {
    text += stages_table(explanation) + "\n" + meshes_lines(explanation);
    if (explanation.measured)
      text += measured_table(explanation) + wrap(measured_step_line(explanation), width) + "\n";
    text += wrap(schedule_line(explanation), width) + drawing(explanation, explanation.choice->priced.price);
    if (explanation.measured) text += measured_drawing(explanation);
    text += wrap(bubble_line(explanation.choice->priced), width) + wrap(norms_line(explanation), width);
    text += savings_lines(explanation) + "\n";
  }
  text += alternatives(explanation) + "\n";
  if (!about.brief) text += wrap(search_line(explanation), width);
  if (!about.slices.empty()) text += wrap(fmt::format("slices: {}\n", about.slices), width);
  text += codecs_lines(about.coded, width) + wrap(about.proof, width);
  if (!about.hints.empty()) text += wrap(fmt::format("hints: {}", fmt::join(about.hints, ", ")), width);
  return text;
}

}  // namespace weft::explain
