#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/codecs.h"
#include "weft/app/explain/distributed.h"
#include "weft/app/explain/operator_list.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/summary.h"
#include "weft/app/explain/table.h"
#include "weft/base/units.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::explain {
namespace {

std::string seconds_or_nothing(double seconds) {
  return seconds > 0 ? print_seconds(seconds) : std::string();
}

// "+12 %": how far the measured time is from the predicted one.
std::string difference(double predicted, double measured) {
  if (!(predicted > 0 && measured > 0)) return {};
  return fmt::format("{:+.0f} %", 100 * (measured / predicted - 1));
}

std::string mesh_lines(const DistributedExplanation& explanation) {
  const distribute::Distribution& distribution = explanation.choice->distribution;
  Table table({{"mesh axis"},
               {"ranks", Align::right},
               {"link", Align::left, Fit::cut, 1},
               {"slices", Align::left, Fit::wrap},
               {"shards"}});
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    const plan::MeshAxis& axis = distribution.mesh.axes[a];
    const cluster::Axis* under = cost::axis_under(explanation.cluster, axis.name);
    const std::string link =
        under != nullptr && under->link.bytes_per_second > 0
            ? fmt::format("{} {}", under->link.name, print_rate(under->link.bytes_per_second))
            : std::string();
    const distribute::AxisUse& use = distribution.axes[a];
    table.add({axis.name, fmt::format("{}", axis.ranks), link,
               use.slice.empty() ? "nothing" : fmt::format("{}", fmt::join(use.slice, ", ")),
               std::string(distribute::name(use.shard))});
  }
  std::string text = table.print(explanation.width);
  for (const distribute::Exception& exception : distribution.exceptions)
    text += exception.index.empty()
                ? fmt::format("{} is replicated across {}\n", exception.tensor, exception.axis)
                : fmt::format("{} of {} is sliced across {}\n", exception.index, exception.tensor,
                              exception.axis);
  return text;
}

constexpr std::size_t kHostLabel = 10;  // as wide as the summary's

// "hosts 2: ranks 0 2, ranks 1 3; network 1.2 GB/s a rank, 30 us, measured"
std::string host_line(const planner::JobHosts& hosts) {
  constexpr std::size_t kMostShown = 8;
  std::string text = fmt::format("{:{}}{}: ", "hosts", kHostLabel, hosts.ranks.size());
  for (std::size_t h = 0; h < std::min(hosts.ranks.size(), kMostShown); ++h)
    text += fmt::format("{}{} {}", h > 0 ? ", " : "", hosts.ranks[h].size() == 1 ? "rank" : "ranks",
                        fmt::join(hosts.ranks[h], " "));
  if (hosts.ranks.size() > kMostShown) text += ", ...";
  if (hosts.ranks.size() > 1)
    text += fmt::format("; network {} a rank, {}, {}", print_rate(hosts.bytes_per_second),
                        print_seconds(hosts.latency_seconds), hosts.measured ? "measured" : "as given");
  return text + "\n";
}

// The tree, predicted and measured side by side: both are outlines of one plan, so they have one shape.
class DistributedRows {
 public:
  DistributedRows(const DistributedExplanation& explanation, Table& table)
      : explanation_(explanation), table_(table) {}

  void add(const Entry& predicted, const Entry* measured, const std::string& branch,
           const std::string& below) {
    const plan::Graph& graph = *explanation_.local;
    std::string name = predicted.name;
    if (predicted.repeated) name += fmt::format(" × {}", predicted.times);
    const double took = measured != nullptr ? measured->measured : 0;
    table_.add({branch + name, operator_list(graph, predicted.nodes),
                branch.empty() || predicted.nodes.empty()
                    ? std::string()
                    : print(graph.type(graph.result(predicted.nodes.back())), graph.symbols()),
                print_seconds(predicted.measured), seconds_or_nothing(took),
                difference(predicted.measured, took)});
    if (explanation_.verbose)
      for (std::size_t i = 0; i < predicted.nodes.size(); ++i) {
        const bool last = i + 1 == predicted.nodes.size() && predicted.children.empty();
        add_node(predicted.nodes[i], predicted.node_measured[i],
                 measured != nullptr ? measured->node_measured[i] : 0, below + (last ? "└─ " : "├─ "));
      }
    for (std::size_t i = 0; i < predicted.children.size(); ++i) {
      const bool last = i + 1 == predicted.children.size();
      const bool paired = measured != nullptr && i < measured->children.size();
      add(predicted.children[i], paired ? &measured->children[i] : nullptr, below + (last ? "└─ " : "├─ "),
          below + (last ? "   " : "│  "));
    }
  }

 private:
  void add_node(plan::NodeId id, double predicted, double measured, const std::string& branch) {
    const plan::NodeView node = explanation_.local->view(id);
    std::string operands;
    for (const plan::ValueId input : node.node().inputs)
      operands += fmt::format("{}%{}", operands.empty() ? " " : ", ", input.value);
    table_.add({fmt::format("{}%{}", branch, node.result(0).value), shown_name(node) + operands,
                print(node.result_type(0), node.graph().symbols()), seconds_or_nothing(predicted),
                seconds_or_nothing(measured), difference(predicted, measured)});
  }

  const DistributedExplanation& explanation_;
  Table& table_;
};

// Rows may count what runs side by side.
std::string overlap_note(const DistributedExplanation& explanation, double rows) {
  const double step = explanation.choice->chosen.prediction.seconds;
  constexpr double kNoticed = 1.005;
  if (rows <= kNoticed * step) return {};
  return fmt::format("the rows add up to {}, the step takes {}: communication overlaps computation\n",
                     print_seconds(rows), print_seconds(step));
}

std::string tree(const DistributedExplanation& explanation) {
  const Fit fit = explanation.verbose ? Fit::wrap : Fit::cut;
  const int spare = explanation.verbose ? 0 : 1;
  Table table({{"step on a rank", Align::left, Fit::cut},
               {"operators", Align::left, fit, spare},
               {"result", Align::left, fit, 2 * spare},
               {"predicted", Align::right},
               {"measured", Align::right},
               {"off by", Align::right}});
  DistributedRows rows(explanation, table);
  double predicted_seconds = 0;
  for (const plan::Phase phase : explanation.phases) {
    const auto outlined = [&](std::span<const double> seconds) {
      return outline(*explanation.local, phase, explanation.cluster.device, seconds);
    };
    const Entry predicted = outlined(explanation.predicted);
    predicted_seconds += predicted.measured;
    if (explanation.measured) {
      const Entry measured = outlined(explanation.measured->node_seconds);
      rows.add(predicted, &measured, "", "");
    } else {
      rows.add(predicted, nullptr, "", "");
    }
  }
  return table.print(explanation.width) +
         wrap(overlap_note(explanation, predicted_seconds), explanation.width);
}

// What the summary has no room for.
std::string step_notes(const DistributedExplanation& explanation) {
  const sim::Prediction& prediction = explanation.choice->chosen.prediction;
  std::string text =
      fmt::format("communicating {}, {} of it exposed", print_seconds(prediction.communication_seconds),
                  print_seconds(prediction.exposed_communication_seconds));
  if (const std::string sources = computing_sources(prediction); !sources.empty())
    text += fmt::format("; times of computing: {}", sources);
  if (explanation.spilled_seconds > 0)
    text +=
        fmt::format("\nwhat lies elsewhere adds {}: {} in all", print_seconds(explanation.spilled_seconds),
                    print_seconds(prediction.seconds + explanation.spilled_seconds));
  text += fmt::format("\nno plan takes less than {}: {}\n",
                      print_seconds(explanation.choice->lower_bound_seconds),
                      explanation.choice->lower_bound_why);
  if (const auto& measured = explanation.measured) {
    text += fmt::format("measured {} a step (median of {}, {}), {}; {} of communication exposed; memory {}\n",
                        print_seconds(measured->seconds), measured->steps, measured->ranks,
                        difference(prediction.seconds, measured->seconds),
                        print_seconds(measured->exposed_communication_seconds),
                        print_bytes(measured->memory_bytes));
    if (measured->error_after > 0)
      text += fmt::format(
          "the times of its units were predicted with a median error of {}; with what this run measured it "
          "is {}, and the step is predicted to take {} ({})\n",
          rounded_percent(measured->error_before), rounded_percent(measured->error_after),
          print_seconds(measured->predicted_after), difference(measured->predicted_after, measured->seconds));
  }
  return text;
}

std::string wire_lines(const DistributedExplanation& explanation) {
  std::string text;
  if (!explanation.credit.empty())
    text += wrap(fmt::format("credit: {}\n", explanation.credit), explanation.width);
  if (!explanation.servers.empty())
    text += wrap(fmt::format("servers: {}\n", explanation.servers), explanation.width);
  if (!explanation.delayed.empty())
    text += wrap(fmt::format("delay: {}\n", explanation.delayed), explanation.width);
  if (!explanation.averages.empty())
    text += wrap(fmt::format("sync: {}\n", explanation.averages), explanation.width);
  return text + codecs_lines(explanation.coded, explanation.width);
}

// The chosen plan is spelled out in the summary; below each other one stand its distribution and why not.
std::string alternatives(const DistributedExplanation& explanation) {
  Table table({{"plan", Align::left, Fit::cut},
               {"step", Align::right},
               {"of peak", Align::right, Fit::whole, 2},
               {"memory", Align::right},
               {"exposed", Align::right, Fit::whole, 1},
               {"a rank sends", Align::left, Fit::wrap, 3}});
  const auto add = [&](std::string name, const search::Evaluation& evaluation) {
    table.add({std::move(name), print_seconds(evaluation.seconds),
               rounded_percent(explanation.utilization(evaluation.seconds)),
               print_bytes(evaluation.peak_bytes), print_seconds(evaluation.exposed_communication_seconds),
               sent_by_axis(evaluation.traffic)});
  };
  add("chosen", explanation.choice->chosen.evaluation());
  for (const search::Alternative& other : explanation.choice->alternatives) {
    add(other.name, other.evaluation);
    if (!explanation.brief) table.add_below(print(other.distribution));
    table.add_below(other.why_not);
  }
  return table.print(explanation.width);
}

std::string search_line(const DistributedExplanation& explanation) {
  const search::DistributionChoice& choice = *explanation.choice;
  if (choice.outcome.estimates == 0) return "the distribution was given, nothing was searched\n";
  std::string text = fmt::format(
      "planned in {}{}: searched {} distributions on {} meshes", print_seconds(explanation.planning_seconds),
      choice.from_plan_cache ? ", from the plan cache" : "", choice.outcome.estimates, choice.outcome.meshes);
  if (choice.outcome.ruled_out > 0)
    text += fmt::format(", {} ruled out by what they compute and move", choice.outcome.ruled_out);
  if (choice.folded > 0) text += fmt::format(", {} of {} layers each", choice.folded, choice.layers);
  if (choice.outcome.failed > 0) text += fmt::format("; {} could not be planned", choice.outcome.failed);
  text += fmt::format("; stopped: {}\n", search::name(choice.outcome.ended));
  if (!choice.outcome.parts.empty()) text += choice.outcome.parts + "\n";
  return text;
}

// Rules that made the plan, where any did.
std::string rules_lines(const DistributedExplanation& explanation) {
  std::string text;
  const auto add = [&](std::string_view what, std::span<const search::Step> trail) {
    if (trail.empty()) return;
    text += fmt::format("rules: {} step{} {}\n", trail.size(), trail.size() == 1 ? "" : "s", what);
    if (explanation.verbose || explanation.trail) text += print_trail(trail, explanation.width);
  };
  add("before it was distributed", explanation.rules);
  add("in what the ranks exchange", explanation.communication_rules);
  return text;
}

std::string trail(const search::DistributionChoice& choice, std::size_t width) {
  Table table({{"better", Align::left, Fit::wrap}, {"step", Align::right}, {"memory", Align::right}});
  for (const search::Improvement& step : choice.outcome.trail)
    table.add({step.to, print_seconds(step.after.seconds), print_bytes(step.after.bytes)});
  return table.print(width);
}

}  // namespace

double DistributedExplanation::utilization(double seconds) const {
  return part_of_peak(model_flops, seconds, cluster, precision, devices_a_rank);
}

std::string print_text(const DistributedExplanation& explanation) {
  const std::size_t width = explanation.width;
  std::string text = wrap(headline(explanation.task, explanation.model, explanation.cluster.name,
                                   explanation.sizes, explanation.settings),
                          width);
  text += "\n";
  if (explanation.hosts) text += wrap(host_line(*explanation.hosts), width, kHostLabel);
  text += print_summary(summarize(explanation), width) + "\n";
  if (explanation.brief) return text + alternatives(explanation) + "\n" + wrap(explanation.proof, width);
  const sim::Prediction& prediction = explanation.choice->chosen.prediction;
  text += mesh_lines(explanation) + "\n" + tree(explanation) + "\n";
  text += collective_table(prediction, explanation.verbose, width);
  text += wrap(step_notes(explanation), width);
  text += wire_lines(explanation);
  if (explanation.verbose) text += wrap(memory_line(prediction, explanation.memory_bytes), width);
  text += "\n" + alternatives(explanation) + "\n";
  text += wrap(search_line(explanation), width);
  text += wrap(explanation.proof, width);
  text += rules_lines(explanation);
  if (explanation.verbose) text += "\n" + stage_table(explanation.stages, width);
  if (explanation.trail) text += "\n" + trail(*explanation.choice, width);
  if (!explanation.hints.empty())
    text += wrap(fmt::format("hints: {}", fmt::join(explanation.hints, ", ")), width);
  return text;
}

}  // namespace weft::explain
