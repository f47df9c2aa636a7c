// The sections after a report's lines: one table per aspect of the plan.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/operator_list.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/report.h"
#include "weft/app/explain/stages.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/stage_meshes.h"
#include "weft/parallel/pipeline/draw.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/pipeline/offload.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::explain {
namespace {

using plan::NodeId;
using search::StageCost;

constexpr std::size_t kMostRows = 16;  // in a drawing or for unequal stages, unless VERBOSE

constexpr std::array<std::string_view, 8> kSections = {"MESH",   "PIPELINE",     "OPERATORS", "COLLECTIVES",
                                                       "STAGES", "ALTERNATIVES", "TRAIL",     "MEMORY"};

std::string optional_count(double count) { return count > 0 ? print_count(count) : std::string(); }
std::string optional_bytes(double bytes) { return bytes > 0 ? print_bytes(bytes) : std::string(); }
std::string optional_seconds(double seconds) { return seconds > 0 ? print_seconds(seconds) : std::string(); }

// "1.8x": two significant digits, since measured times are no more precise.
std::string print_ratio(double part, double whole) {
  if (!(part > 0 && whole > 0)) return {};
  const double ratio = part / whole;
  if (ratio >= 9.95) return print_exact(std::llround(ratio)) + "x";
  return fmt::format("{:.{}f}x", ratio, ratio >= 0.995 ? 1 : 2);
}

// Mesh

Section mesh_section(const Report& report) {
  Section section{"Mesh",
                  {{"mesh axis"},
                   {"ranks", Align::right},
                   {"link", Align::left, Fit::cut, 1},
                   {"slices", Align::left, Fit::wrap},
                   {"shards"},
                   {"sent per rank", Align::right, Fit::whole, 3},
                   {"busy", Align::right, Fit::whole, 2}}};
  section.option = "MESH";
  const auto* distribution = report.distribution();
  if (distribution == nullptr || report.pipeline) return section;
  for (std::size_t a = 0; a < distribution->axes.size(); ++a) {
    const plan::MeshAxis& axis = distribution->mesh.axes[a];
    const cluster::Axis* under = cost::axis_under(report.cluster, axis.name);
    const std::string link =
        under != nullptr && under->link.bytes_per_second > 0
            ? fmt::format("{} {}", under->link.name, print_rate(under->link.bytes_per_second))
            : std::string();
    std::string sent, busy;
    if (report.prediction != nullptr)
      for (const sim::AxisTraffic& moved : report.prediction->traffic)
        if (moved.axis == axis.name && moved.bytes > 0)
          sent = print_bytes(moved.bytes), busy = print_seconds(moved.busy_seconds);
    const distribute::AxisUse& use = distribution->axes[a];
    section.rows.push_back({axis.name, fmt::format("{}", axis.ranks), link,
                            use.slice.empty() ? "nothing" : fmt::format("{}", fmt::join(use.slice, ", ")),
                            std::string(distribute::name(use.shard)), sent, busy});
  }
  for (const distribute::Exception& exception : distribution->exceptions)
    section.lines.push_back(
        exception.index.empty()
            ? fmt::format("{} is replicated across {}", exception.tensor, exception.axis)
            : fmt::format("{} of {} is sliced across {}", exception.index, exception.tensor, exception.axis));
  return section;
}

// Pipeline

std::string parts_of(const search::ChosenPipeline& choice, const StageCost& first, const StageCost& last) {
  std::string text;
  for (std::size_t r = 0; r < first.runs.size(); ++r) {
    const StageCost::Run& begin = first.runs[r];
    const StageCost::Run& end = r < last.runs.size() ? last.runs[r] : begin;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", choice.parts[begin.first]);
    if (end.first + end.count > begin.first + 1)
      text += fmt::format(" .. {}", choice.parts[end.first + end.count - 1]);
  }
  return text;
}

std::string print_bubble(const search::PipelineEstimate& priced) {
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
    text += fmt::format("; the busiest stage computes {} more than the average stage",
                        print_seconds(priced.unequal));
  return text;
}

// "micro-batches per replica 11, 5: 11 on a100 in 24.1 ms, 5 on v100 in 23.7 ms"; equal replicas are
// listed once.
std::string print_replicas(const search::ChosenPipeline& choice) {
  std::string takes, kinds;
  std::set<std::pair<std::int64_t, std::string>> known;
  for (const search::Replica& replica : choice.replicas) {
    takes += fmt::format("{}{}", takes.empty() ? "" : ", ", replica.takes);
    if (!known.emplace(replica.takes, replica.device).second) continue;
    kinds += fmt::format("{}{}{} in {}", kinds.empty() ? "" : ", ", replica.takes,
                         replica.device.empty() ? std::string() : " on " + replica.device,
                         print_seconds(replica.seconds));
  }
  return fmt::format("micro-batches per replica {}: {}", takes, kinds);
}

// Recomputation and offload, with their cost.
void add_savings(const search::ChosenPipeline& choice, std::vector<std::string>& lines) {
  const search::PipelineEstimate& priced = choice.priced;
  const distribute::Distribution& distribution = choice.distribution;
  const StageCost& stage = priced.stages[priced.fullest];
  if (!distribution.recompute.is_nothing())
    lines.push_back(fmt::format(
        "recomputation: {}, {} of the compute time of stage {}", train::print(distribution.recompute),
        rounded_percent(stage.repeated / (stage.forward + stage.backward + stage.weight)), priced.fullest));
  if (distribution.offload)
    lines.push_back(fmt::format(
        "offload: {} of optimizer states per rank are kept on the host, which updates them: {} of the step, "
        "with {} between host and device and {} of host memory bandwidth per device",
        print_bytes(stage.on_host), rounded_percent(stage.update / priced.seconds),
        print_rate(search::kHostLinkBytesPerSecond), print_rate(search::kHostMemoryBytesPerSecond)));
}

// Draws the schedule at the width of the terminal.
std::string draw(const Report& report, const pipeline::Price& price) {
  const search::PipelineEstimate& priced = report.pipeline->choice->priced;
  if (priced.stages.size() < 2) return {};
  std::string text = pipeline::draw_text(priced.schedule, price, report.width);
  if (priced.stages.size() <= kMostRows || report.verbose) return text;
  std::size_t end = 0;
  for (std::size_t line = 0; line < kMostRows; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

// One measured step, starting at its first pass.
std::string draw_measured(const Report& report) {
  pipeline::Price price;
  price.slots = report.measured->slots;
  double begin = INFINITY;
  for (const auto& slots : price.slots)
    for (const pipeline::Slot& slot : slots) begin = std::min(begin, slot.begin);
  for (auto& slots : price.slots)
    for (pipeline::Slot& slot : slots) {
      slot = {slot.begin - begin, slot.end - begin};
      price.end = std::max(price.end, slot.end);
    }
  return "measured\n" + draw(report, price);
}

// Merges neighbouring stages whose printed figures are equal, unless stages were measured.
void add_stages(const Report& report, Section& section) {
  const search::ChosenPipeline& choice = *report.pipeline->choice;
  const search::PipelineEstimate& priced = choice.priced;
  const auto figures = [&](std::size_t s) -> std::vector<std::string> {
    const StageCost& stage = priced.stages[s];
    return {print_seconds(stage.forward),
            print_seconds(stage.backward),
            print_seconds(stage.weight),
            print_seconds(stage.update),
            rounded_percent(stage.idle / priced.seconds),
            fmt::format("{:.4g}", stage.in_flight),
            print_bytes(stage.memory.total())};
  };
  std::size_t next = 0;
  for (std::size_t first = 0; first < priced.stages.size(); first = next) {
    const std::vector<std::string> own = figures(first);
    const std::string& device = priced.stages[first].device;
    for (next = first + 1; next < priced.stages.size() && !report.measured && !report.verbose; ++next)
      if (figures(next) != own || priced.stages[next].device != device) break;
    std::vector<std::string> row = {
        next == first + 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, next - 1), device,
        parts_of(choice, priced.stages[first], priced.stages[next - 1])};
    row.insert(row.end(), own.begin(), own.end());
    section.rows.push_back(std::move(row));
    if (!report.measured) continue;
    const Measured::Stage& took = report.measured->stages[first];
    section.rows.push_back({"", "", "measured", print_seconds(took.forward), print_seconds(took.backward),
                            print_seconds(took.weight), print_seconds(took.update),
                            rounded_percent(took.idle / report.measured->times.step_seconds)});
  }
}

Section pipeline_section(const Report& report) {
  Section section{"Pipeline: seconds of F, B and W per micro-batch, of update per step",
                  {{"stage", Align::right},
                   {"device"},
                   {"layers", Align::left, report.verbose ? Fit::wrap : Fit::cut},
                   {"F", Align::right},
                   {"B", Align::right},
                   {"W", Align::right},
                   {"update", Align::right, Fit::whole, 1},
                   {"idle", Align::right},
                   {"in flight", Align::right},
                   {"memory", Align::right}}};
  section.option = "PIPELINE";
  if (!report.pipeline) return section;
  const Pipeline& pipeline = *report.pipeline;
  const search::ChosenPipeline& choice = *pipeline.choice;
  add_stages(report, section);
  section.drawing = draw(report, choice.priced.price);
  if (report.measured && !section.drawing.empty())
    section.drawing = "predicted\n" + section.drawing + draw_measured(report);
  const pipeline::Schedule& schedule = choice.priced.schedule;
  const std::int64_t rows = pipeline.rows / choice.distribution.micro_batches;
  section.lines.push_back(
      fmt::format("schedule {}: {} stage{}{}, {} micro-batch{} of {} = {}", schedule.name, schedule.stages,
                  schedule.stages == 1 ? "" : "s",
                  schedule.chunks > 1 ? fmt::format(" of {} chunks", schedule.chunks) : std::string(),
                  schedule.micro_batches, schedule.micro_batches == 1 ? "" : "es", pipeline.batch, rows));
  if (!choice.replicas.empty()) section.lines.push_back(print_replicas(choice));
  section.lines.push_back(print_bubble(choice.priced));
  if (report.measured)
    section.lines.push_back(fmt::format(
        "measured bubble {}",
        rounded_percent(report.measured->bubble / std::max(report.measured->times.step_seconds, 1e-12))));
  if (distribute::has_stage_meshes(choice.distribution)) {
    const auto stages = static_cast<std::int32_t>(choice.priced.stages.size());
    for (std::int32_t first = 0, next = 0; first < stages; first = next) {
      const std::string mesh = distribute::print_stage_mesh(choice.distribution, first);
      for (next = first + 1;
           next < stages && distribute::print_stage_mesh(choice.distribution, next) == mesh;)
        ++next;
      section.lines.push_back(fmt::format("{} on {}", distribute::print_stages(first, next - 1), mesh));
    }
  }
  if (pipeline.batch_norms > 0 && choice.distribution.micro_batches > 1)
    section.lines.push_back(fmt::format(
        "{} batch norm{} use{} the statistics of a micro-batch, {} = {}: not the same model as with micro=1",
        pipeline.batch_norms, pipeline.batch_norms == 1 ? "" : "s", pipeline.batch_norms == 1 ? "s" : "",
        pipeline.batch, rows));
  add_savings(choice, section.lines);
  return section;
}

// Memory

// Peak bytes of each stage's ranks by kind; neighbouring stages with equal figures are one row.
Section memory_section(const Report& report) {
  Section section{"Memory: peak bytes per rank, by stage", {{"stage", Align::right}, {"device"}}};
  section.option = "MEMORY";
  if (!report.pipeline) return section;
  const std::vector<StageCost>& stages = report.pipeline->choice->priced.stages;
  for (const auto& [what, bytes] : stages.front().memory.kinds())
    section.columns.push_back({std::string(what), Align::right, Fit::whole, 1});
  section.columns.push_back({"peak", Align::right});
  section.columns.push_back({"needed", Align::right});
  const auto figures = [&](std::size_t s) {
    std::vector<std::string> row = {stages[s].device};
    for (const auto& [what, bytes] : stages[s].memory.kinds()) row.push_back(optional_bytes(bytes));
    row.push_back(print_bytes(stages[s].memory.total()));
    row.push_back(print_bytes(stages[s].needed_bytes));
    return row;
  };
  for (std::size_t first = 0, next = 0; first < stages.size(); first = next) {
    const std::vector<std::string> own = figures(first);
    for (next = first + 1; next < stages.size() && figures(next) == own;) ++next;
    std::vector<std::string> row = {next == first + 1 ? fmt::format("{}", first)
                                                      : fmt::format("{}-{}", first, next - 1)};
    row.insert(row.end(), own.begin(), own.end());
    section.rows.push_back(std::move(row));
  }
  const cluster::Stack& stack = report.cluster.stack;
  if (stack.context > 0 || stack.buffers > 0 || stack.fragmentation > 0)
    section.lines.push_back(fmt::format(
        "needed: with {} outside of the allocator, {} per group of ranks and {} lost by fragmentation",
        print_bytes(stack.context), print_bytes(stack.buffers), rounded_percent(stack.fragmentation)));
  return section;
}

// Operators

// The operator table. Its outlines (roofline, predicted, measured) have the same shape.
class OperatorRows {
 public:
  OperatorRows(const Report& report, Section& section) : report_(report), section_(section) {
    if (report.operators.kept.empty()) return;
    node_kept_.resize(graph().node_count());
    for (const plan::ValueId value : report.operators.kept)
      node_kept_[graph().value(value).producer.value] += static_cast<double>(graph().type(value).bytes());
  }

  void add(plan::Phase phase) {
    const auto outlined = [&](std::span<const double> seconds) {
      return outline(graph(), phase, report_.cluster.device, seconds, node_kept_);
    };
    const Entry predicted = outlined(report_.operators.predicted);
    seconds_ += predicted.measured;
    work_ += predicted.work;
    if (report_.measured) {
      const Entry took = outlined(report_.measured->times.node_seconds);
      add(predicted, &took, "", "");
    } else {
      add(predicted, nullptr, "", "");
    }
  }

  double predicted_seconds() const { return seconds_; }
  const plan::Work& work() const { return work_; }

 private:
  const plan::Graph& graph() const { return *report_.operators.graph; }
  bool is_predicted() const { return !report_.operators.predicted.empty(); }

  void add_row(std::string name, std::string operators, std::string result, const plan::Work& work,
               double kept, double best, double predicted, double took, cost::Limit limit) {
    const double expected = is_predicted() ? predicted : best;
    section_.rows.push_back(
        {std::move(name), std::move(operators), std::move(result), optional_count(work.multiply_adds),
         print_bytes(work.bytes()), optional_bytes(kept),
         is_predicted() ? optional_seconds(predicted) : print_seconds(best), optional_seconds(took),
         print_ratio(took, expected), is_predicted() ? std::string() : std::string(cost::name(limit))});
  }

  // A phase is a root: it has no branch and no single result.
  void add(const Entry& entry, const Entry* took, const std::string& branch, const std::string& below) {
    std::string name = entry.name;
    if (entry.repeated) name += fmt::format(" × {}", entry.times);
    add_row(branch + name, operator_list(graph(), entry.nodes),
            branch.empty() || entry.nodes.empty()
                ? std::string()
                : print(graph().type(graph().result(entry.nodes.back())), graph().symbols()),
            entry.work, entry.kept, entry.seconds, entry.measured, took != nullptr ? took->measured : 0,
            entry.limit());
    if (report_.verbose)
      for (std::size_t i = 0; i < entry.nodes.size(); ++i) {
        const bool last = i + 1 == entry.nodes.size() && entry.children.empty();
        add_node(entry.nodes[i], entry.node_measured[i], took != nullptr ? took->node_measured[i] : 0,
                 below + (last ? "└─ " : "├─ "));
      }
    for (std::size_t i = 0; i < entry.children.size(); ++i) {
      const bool last = i + 1 == entry.children.size();
      const bool paired = took != nullptr && i < took->children.size();
      add(entry.children[i], paired ? &took->children[i] : nullptr, below + (last ? "└─ " : "├─ "),
          below + (last ? "   " : "│  "));
    }
  }

  void add_node(NodeId id, double predicted, double took, const std::string& branch) {
    const plan::NodeView node = graph().view(id);
    const cost::Estimate estimate = cost::roofline(node, report_.cluster.device);
    std::string operands;
    for (const plan::ValueId input : node.node().inputs)
      operands += fmt::format("{}%{}", operands.empty() ? " " : ", ", input.value);
    double kept = 0;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (std::ranges::binary_search(report_.operators.kept, node.result(k)))
        kept += static_cast<double>(node.result_type(k).bytes());
    add_row(fmt::format("{}%{}", branch, node.result(0).value), shown_name(node) + operands,
            print(node.result_type(0), graph().symbols()), node.op().work(node), kept, estimate.seconds,
            predicted, took, estimate.limit);
  }

  const Report& report_;
  Section& section_;
  std::vector<double> node_kept_;
  double seconds_ = 0;
  plan::Work work_;
};

// The device figures behind roofline times.
std::string print_roofline(const Report& report) {
  const cluster::Device& device = report.cluster.device;
  return fmt::format("roofline of {}: {} {}, memory {}, {} per launch", device.name,
                     plan::name(report.precision),
                     print(Quantity{cost::peak_rate(device, report.precision), Dimension::flops_per_second}),
                     print_rate(device.memory_bytes_per_second), print_seconds(device.launch_seconds));
}

// Adds notes on time and memory that the table does not show.
void add_measured_notes(const Report& report, Section& section) {
  const Measured& measured = *report.measured;
  const program::Attribution& times = measured.times;
  if (const double other = other_seconds(*report.operators.graph, times); other > 0)
    section.rows.push_back({"other", "copies, constants", "", "", "", "", "", print_seconds(other)});
  if (report.alone)
    section.lines.push_back(fmt::format("busy {}{}", rounded_percent(times.busy()),
                                        times.workers > 1 ? "; the table adds up all threads" : ""));
  if (measured.memory_lower_bound > 0)
    section.lines.push_back(fmt::format(
        "memory {}{}", print_bytes(measured.memory_bytes),
        measured.memory_bytes <= measured.memory_lower_bound
            ? std::string(", the lower bound for any packing")
            : fmt::format("; no packing takes less than {}", print_bytes(measured.memory_lower_bound))));
  section.lines.emplace_back("nodes that ran as one unit share its time by their estimates");
}

Section operators_section(const Report& report) {
  const Fit fit = report.verbose ? Fit::wrap : Fit::cut;
  const auto spare = [&](int rank) { return report.verbose ? 0 : rank; };
  Section section{report.alone ? "Operators" : fmt::format("Operators on each {}", report.per()),
                  {{"step", Align::left, Fit::cut},
                   {"operators", Align::left, fit, spare(5)},
                   {"result", Align::left, fit, spare(6)},
                   {"multiply-\nadds", Align::right, Fit::whole, spare(3)},
                   {"moved", Align::right, Fit::whole, 2},
                   {"kept", Align::right, Fit::whole, 4},
                   {report.operators.predicted.empty() ? "at best" : "predicted", Align::right},
                   {"measured", Align::right},
                   {"ratio", Align::right},
                   {"bound by", Align::left, Fit::whole, spare(1)}}};
  section.option = "OPERATORS";
  if (report.operators.graph == nullptr) return section;
  OperatorRows rows(report, section);
  for (const plan::Phase phase : report.operators.phases) rows.add(phase);
  if (report.alone)
    section.lines.push_back(fmt::format(
        "parameters {}, multiply-adds {}, {} in all", print_exact(count_parameters(*report.operators.graph)),
        print_count(rows.work().multiply_adds), print_flops(rows.work().flops)));
  if (report.operators.predicted.empty()) section.lines.push_back(print_roofline(report));
  if (report.alone && report.alone->predicted_seconds > 0)
    section.lines.push_back(fmt::format("kernels fuse operators: the step is predicted to take {}",
                                        print_seconds(report.alone->predicted_seconds)));
  if (report.measured && !report.measured->times.node_seconds.empty()) add_measured_notes(report, section);
  // Rows can include work that overlaps other rows.
  constexpr double kNoticed = 1.005;
  if (const StepFacts facts = step_of(report); rows.predicted_seconds() > kNoticed * facts.seconds)
    section.lines.push_back(
        fmt::format("the rows add up to {}, the step takes {}: communication overlaps computation",
                    print_seconds(rows.predicted_seconds()), print_seconds(facts.seconds)));
  return section;
}

// Alternatives

Section alternatives_section(const Report& report) {
  Section section{"Plans compared",
                  {{"plan", Align::left, Fit::cut},
                   {"step", Align::right},
                   {"of peak", Align::right, Fit::whole, 2},
                   {"memory", Align::right},
                   {"exposed", Align::right, Fit::whole, 1},
                   {"bubble", Align::right, Fit::whole, 1},
                   {"sent per rank", Align::left, Fit::wrap, 3}}};
  section.option = "ALTERNATIVES";
  const auto* distribution = report.distribution();
  if (distribution == nullptr) return section;
  const auto add = [&](const Candidate& plan, const std::vector<sim::AxisTraffic>& traffic) {
    section.rows.push_back({plan.name, print_seconds(plan.seconds),
                            rounded_percent(report.utilization(plan.seconds)), print_bytes(plan.bytes),
                            plan.in_time == nullptr ? print_seconds(plan.exposed) : std::string(),
                            plan.bubble > 0 ? rounded_percent(plan.bubble / plan.seconds) : std::string(),
                            sent_by_axis(traffic)});
  };
  const StepFacts facts = step_of(report);
  Candidate chosen{.name = "chosen", .seconds = facts.seconds, .bytes = facts.memory_bytes};
  if (report.pipeline) {
    chosen.in_time = report.pipeline->choice;
    chosen.bubble = report.pipeline->choice->priced.bubble();
  } else {
    chosen.exposed = report.prediction->exposed_communication_seconds;
  }
  section.marked = 0;
  add(chosen, report.pipeline ? std::vector<sim::AxisTraffic>() : report.prediction->traffic);
  section.below.push_back({});
  for (const Candidate& other : alternatives_of(report)) {
    add(other, other.evaluation != nullptr ? other.evaluation->traffic : std::vector<sim::AxisTraffic>());
    const bool same = *other.distribution == *distribution;
    std::string why = same                                                        ? "the chosen plan"
                      : !other.why_not.empty() || report.pipeline == std::nullopt ? other.why_not
                      : other.fits ? fmt::format("{:.2f}x slower", other.seconds / facts.seconds)
                                   : std::string("does not fit");
    section.below.push_back({print(*other.distribution), std::move(why)});
  }
  const std::string took = print_seconds(report.planning_seconds);
  if (report.pipeline) {
    const search::ChosenPipeline& choice = *report.pipeline->choice;
    if (report.pipeline->given)
      section.lines.emplace_back("the distribution was given: no search");
    else if (choice.candidates == 0)
      section.lines.emplace_back("the number of micro-batches was given; the plan is that for whole batches");
    else
      section.lines.push_back(fmt::format(
          "planned in {}: {} pipeline plans tried, {} programs and {} schedules simulated{}{}", took,
          print_exact(choice.candidates), print_exact(choice.simulated), print_exact(choice.priced_events),
          choice.folded > 0 ? fmt::format(", {} of {} layers each", choice.folded, choice.layers)
                            : std::string(),
          choice.ended_early ? "; stopped: out of time" : ""));
    return section;
  }
  const search::DistributionChoice& choice = *report.choice;
  section.lines.push_back(fmt::format("no plan can take less than {}: {}",
                                      print_seconds(choice.lower_bound_seconds), choice.lower_bound_why));
  if (choice.outcome.estimates == 0) {
    section.lines.emplace_back("the distribution was given: no search");
    return section;
  }
  std::string text = fmt::format("planned in {}{}: {} candidates tried on {} meshes", took,
                                 choice.from_plan_cache ? ", from the plan cache" : "",
                                 print_exact(choice.outcome.estimates), choice.outcome.meshes);
  if (choice.outcome.ruled_out > 0)
    text += fmt::format(", {} ruled out by bounds", print_exact(choice.outcome.ruled_out));
  if (choice.folded > 0) text += fmt::format(", {} of {} layers each", choice.folded, choice.layers);
  if (choice.outcome.failed > 0) text += fmt::format("; {} could not be planned", choice.outcome.failed);
  section.lines.push_back(text + fmt::format("; stopped: {}", search::name(choice.outcome.ended)));
  if (!choice.outcome.parts.empty()) section.lines.push_back(choice.outcome.parts);
  return section;
}

// Trail

void add_trail(const Report& report, std::vector<Section>& sections) {
  const auto rules = [&](std::string title, std::span<const search::Step> trail) {
    Section section = trail_section(trail);
    section.title = std::move(title);
    section.option = "TRAIL";
    sections.push_back(std::move(section));
  };
  rules("Rules that rewrote the plan of one device", report.rules);
  rules("Rules that rewrote what the ranks exchange", report.communication_rules);
  if (report.choice == nullptr) return;
  Section found{"Best plans during the search, each better than the one above",
                {{"plan", Align::left, Fit::wrap}, {"step", Align::right}, {"memory", Align::right}}};
  found.option = "TRAIL";
  for (const search::Improvement& step : report.choice->outcome.trail)
    found.rows.push_back({step.to, print_seconds(step.after.seconds), print_bytes(step.after.bytes)});
  sections.push_back(std::move(found));
}

}  // namespace

bool is_section(std::string_view option) { return std::ranges::find(kSections, option) != kSections.end(); }

Section collectives_section(const sim::Prediction& prediction, bool every) {
  Section section{"Collectives per step",
                  {{"collective"},
                   {"along"},
                   {"size", Align::right},
                   {"times", Align::right},
                   {"each", Align::right},
                   {"algorithm", Align::left, Fit::cut},
                   {"source", Align::left, Fit::whole, every ? 0 : 1}}};
  section.option = "COLLECTIVES";
  const auto& all = prediction.collectives;
  if (all.empty()) return section;
  constexpr std::size_t kMostShown = 8;
  const std::size_t shown = every ? all.size() : std::min(all.size(), kMostShown);
  double rest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const sim::EstimatedCollective& one = all[i];
    if (i >= shown)
      rest += static_cast<double>(one.times) * one.price.seconds();
    else
      section.rows.push_back({std::string(name(one.kind)), one.axis,
                              print_bytes(static_cast<double>(one.bytes)), fmt::format("{}", one.times),
                              print_seconds(one.price.seconds()), cost::short_name(one.kind, one.price),
                              std::string(name(one.price.source))});
  }
  if (all.size() > shown)
    section.lines.push_back(
        fmt::format("and {} other sizes, {} together", all.size() - shown, print_seconds(rest)));
  section.lines.push_back(fmt::format("communication {}, {} of it exposed",
                                      print_seconds(prediction.communication_seconds),
                                      print_seconds(prediction.exposed_communication_seconds)));
  return section;
}

std::vector<Section> sections_of(const Report& report) {
  std::vector<Section> sections = {mesh_section(report), pipeline_section(report), memory_section(report),
                                   operators_section(report)};
  if (report.prediction != nullptr)
    sections.push_back(collectives_section(*report.prediction, report.verbose));
  const bool timed = report.sections.contains("STAGES");
  sections.push_back(stages_section(report.stages, timed));
  if (timed)
    sections.back().lines.push_back(fmt::format("planning took {}", print_seconds(report.planning_seconds)));
  sections.push_back(alternatives_section(report));
  add_trail(report, sections);
  std::erase_if(sections, [](const Section& section) { return section.empty(); });
  return sections;
}

}  // namespace weft::explain
