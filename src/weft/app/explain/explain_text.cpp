#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/app/explain/explanation.h"
#include "weft/app/explain/operator_list.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/summary.h"
#include "weft/app/explain/table.h"
#include "weft/base/units.h"
#include "weft/plan/graph/text.h"

namespace weft::explain {
namespace {

using plan::NodeId;

std::string optional_count(double count) { return count > 0 ? print_count(count) : std::string(); }

std::string optional_bytes(double bytes) { return bytes > 0 ? print_bytes(bytes) : std::string(); }

std::string optional_seconds(double seconds) { return seconds > 0 ? print_seconds(seconds) : std::string(); }

// "1.8x". A clock is not worth more digits.
std::string print_ratio(double part, double whole) {
  if (!(part > 0 && whole > 0)) return {};
  const double ratio = part / whole;
  if (ratio >= 9.95) return print_exact(std::llround(ratio)) + "x";
  return fmt::format("{:.{}f}x", ratio, ratio >= 0.995 ? 1 : 2);
}

class ExplanationRows {
 public:
  ExplanationRows(const Explanation& explanation, Table& table) : explanation_(explanation), table_(table) {}

  // A phase, at the root, has no branch and no one result.
  void add(const Entry& entry, const std::string& branch, const std::string& below) {
    const plan::Graph& graph = *explanation_.graph;
    std::string name = entry.name;
    if (entry.repeated) name += fmt::format(" × {}", entry.times);
    table_.add({branch + name, operator_list(graph, entry.nodes),
                branch.empty() ? std::string() : result_of(entry), optional_count(entry.work.multiply_adds),
                print_bytes(entry.work.bytes()), optional_bytes(entry.kept), print_seconds(entry.seconds),
                optional_seconds(entry.measured), print_ratio(entry.measured, entry.seconds),
                std::string(cost::name(entry.limit()))});
    if (explanation_.verbose) {
      for (std::size_t i = 0; i < entry.nodes.size(); ++i) {
        const bool last = i + 1 == entry.nodes.size() && entry.children.empty();
        add_node(entry.nodes[i], entry.node_measured[i], below + (last ? "└─ " : "├─ "));
      }
    }
    for (std::size_t i = 0; i < entry.children.size(); ++i) {
      const bool last = i + 1 == entry.children.size();
      add(entry.children[i], below + (last ? "└─ " : "├─ "), below + (last ? "   " : "│  "));
    }
  }

 private:
  std::string result_of(const Entry& entry) const {
    if (entry.nodes.empty()) return {};
    const plan::Graph& graph = *explanation_.graph;
    return print(graph.type(graph.result(entry.nodes.back())), graph.symbols());
  }

  double kept_of(const plan::NodeView& node) const {
    double bytes = 0;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (std::ranges::binary_search(explanation_.kept, node.result(k)))
        bytes += static_cast<double>(node.result_type(k).bytes());
    return bytes;
  }

  void add_node(NodeId id, double measured, const std::string& branch) {
    const plan::NodeView node = explanation_.graph->view(id);
    const plan::Work work = node.op().work(node);
    const cost::Estimate estimate = cost::roofline(node, explanation_.cluster.device);
    std::string operands;
    for (const plan::ValueId input : node.node().inputs)
      operands += fmt::format("{}%{}", operands.empty() ? " " : ", ", input.value);
    table_.add({fmt::format("{}%{}", branch, node.result(0).value),
                fmt::format("{}{}", node.op().name(), operands),
                print(node.result_type(0), node.graph().symbols()), optional_count(work.multiply_adds),
                print_bytes(work.bytes()), optional_bytes(kept_of(node)), print_seconds(estimate.seconds),
                optional_seconds(measured), print_ratio(measured, estimate.seconds),
                std::string(cost::name(estimate.limit))});
  }

  const Explanation& explanation_;
  Table& table_;
};

// The figures the times rest on: the rate of the precision at hand, memory, launch.
std::string device_line(const Explanation& explanation, double seconds) {
  const cluster::Device& device = explanation.cluster.device;
  return fmt::format(
      "at best {} on one {}: the roofline of {} {}, memory {}, {} a launch", print_seconds(seconds),
      device.name, plan::name(explanation.precision),
      print(Quantity{cost::peak_rate(device, explanation.precision), Dimension::flops_per_second}),
      print_rate(device.memory_bytes_per_second), print_seconds(device.launch_seconds));
}

std::string share(double part, double whole) {
  const double percent = 100 * part / whole;
  return percent < 1 ? std::string("less than 1 %") : fmt::format("{:.0f} %", percent);
}

std::string memory_line(const Explanation& explanation) {
  double bytes = 0;
  std::string parts;
  for (const MemoryItem& item : explanation.memory) {
    if (item.bytes == 0) continue;
    bytes += item.bytes;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", item.what, print_bytes(item.bytes));
  }
  const bool own = explanation.memory_limit == 0;
  const double limit = own ? explanation.cluster.device.memory_bytes : explanation.memory_limit;
  const std::string of =
      own ? fmt::format("the {} of one {}", print_bytes(limit), explanation.cluster.device.name)
          : fmt::format("memory_limit {}", print_bytes(limit));
  if (explanation.spilled_bytes > 0)
    parts += fmt::format("; {} of it elsewhere", print_bytes(explanation.spilled_bytes));
  const std::string all = print_bytes(bytes);
  bytes -= explanation.spilled_bytes;
  return fmt::format("memory {}: {}; {}", all, parts,
                     bytes <= limit ? fmt::format("{} of {}", share(bytes, limit), of)
                                    : fmt::format("{:.1f} times {}", bytes / limit, of));
}

std::string taken_line(const Measurement& measurement) {
  const double bytes = measurement.memory_bytes, least = measurement.memory_lower_bound;
  return fmt::format("memory taken {}{}", print_bytes(bytes),
                     bytes <= least ? std::string(", the least that any packing takes")
                                    : fmt::format("; no packing takes less than {}", print_bytes(least)));
}

std::string first_answer_line(const FirstAnswer& answer) {
  return fmt::format(
      "first answer {} with its {} of weights on their way in {} groups; {} with all of them there first; "
      "copying alone {}, "
      "computing alone {}",
      print_seconds(answer.seconds), print_bytes(answer.bytes), answer.groups,
      print_seconds(answer.one_after_the_other), print_seconds(answer.copying),
      print_seconds(answer.computing));
}

std::string urgency_line(const Urgency& urgency) {
  const auto print = [](const Latency& latency) {
    return fmt::format("{} (p99 {})", print_seconds(latency.median), print_seconds(latency.p99));
  };
  return fmt::format(
      "urgent: a small unit of others takes {} alone; beside this one {} in turn, {} going first, {} where "
      "this one "
      "gives way; this one takes {}, giving way {}",
      print(urgency.alone), print(urgency.in_turn), print(urgency.going_first), print(urgency.given_way),
      print_seconds(urgency.step), print_seconds(urgency.step_giving_way));
}

std::string measured_line(const Explanation& explanation, double seconds) {
  const program::Attribution& times = explanation.measurement->times;
  const std::string steps =
      times.steps == 1
          ? "one step"
          : fmt::format("median of {} steps", print_exact(static_cast<std::int64_t>(times.steps)));
  const std::string threads = times.workers == 1 ? "1 thread" : fmt::format("{} threads", times.workers);
  std::string text =
      fmt::format("measured {} a step ({}, {})", print_seconds(times.step_seconds), steps, threads);
  if (const std::string ratio = print_ratio(times.step_seconds * times.workers, seconds); !ratio.empty()) {
    text += fmt::format(", {} the roofline", ratio);
    if (times.workers > 1) text += fmt::format(" of {} × {}", times.workers, explanation.cluster.device.name);
  }
  return text + fmt::format("; busy {}", share(times.busy(), 1));
}

// Nothing where it is the same: such a step makes way for another.
std::string print_change(double seconds) {
  if (std::abs(seconds) < 1e-12) return {};
  return (seconds < 0 ? "-" : "+") + print_seconds(std::abs(seconds));
}

std::string rewriting_lines(const Explanation& explanation) {
  const Rewriting& rewriting = *explanation.rewriting;
  if (rewriting.trail.empty()) return "rules: none makes it cheaper\n";
  const std::string text =
      wrap(fmt::format("rules: {} step{}, {} instead of {}; stopped: {}", rewriting.trail.size(),
                       rewriting.trail.size() == 1 ? "" : "s", print_seconds(rewriting.seconds_after),
                       print_seconds(rewriting.seconds_before), search::name(rewriting.stopped)),
           explanation.width);
  return explanation.verbose ? text + print_trail(rewriting.trail, explanation.width) : text;
}

}  // namespace

std::string print_trail(std::span<const search::Step> trail, std::size_t width) {
  Table table({{"rule"}, {"change", Align::right}, {"replaced", Align::left, Fit::wrap}});
  for (const search::Step& step : trail)
    table.add({step.rule, print_change(step.change), fmt::format("{}", fmt::join(step.replaced, ", "))});
  return table.print(width);
}

std::string print_text(const Explanation& explanation) {
  const std::size_t width = explanation.width;
  std::string out =
      wrap(headline(explanation.task, explanation.model, {}, explanation.sizes, explanation.settings), width);
  out += "\n" + print_summary(summarize(explanation), width);
  if (explanation.brief) return out + wrap(explanation.proof, width);
  const Fit fit = explanation.verbose ? Fit::wrap : Fit::cut;
  const auto spare = [&](int rank) { return explanation.verbose ? 0 : rank; };
  Table table({{"step", Align::left, Fit::cut},
               {"operators", Align::left, fit, spare(5)},
               {"result", Align::left, fit, spare(6)},
               {"multiply-\nadds", Align::right, Fit::whole, spare(3)},
               {"moved", Align::right, Fit::whole, spare(2)},
               {"kept", Align::right, Fit::whole, spare(4)},
               {"at best", Align::right},
               {"measured", Align::right},
               {"ratio", Align::right},
               {"bound by", Align::left, Fit::whole, spare(1)}});
  double seconds = 0;
  plan::Work work;
  ExplanationRows rows(explanation, table);
  for (const plan::Phase phase : explanation.phases) {
    const Entry entry = outline(explanation, phase);
    seconds += entry.seconds;
    work += entry.work;
    rows.add(entry, "", "");
  }
  const auto& measurement = explanation.measurement;
  if (measurement) {
    const double other = other_seconds(*explanation.graph, measurement->times);
    if (other > 0) table.add({"other", "copies, constants", "", "", "", "", "", print_seconds(other)});
  }
  out += "\n" + table.print(width) + "\n";
  std::string notes = fmt::format("parameters {}, multiply-adds {}, {} in all\n",
                                  print_exact(count_parameters(*explanation.graph)),
                                  print_count(work.multiply_adds), print_flops(work.flops));
  notes += memory_line(explanation) + "\n";
  if (!explanation.within_limit.empty()) notes += explanation.within_limit + "\n";
  if (measurement) notes += taken_line(*measurement) + "\n";
  notes += device_line(explanation, seconds) + "\n";
  if (explanation.spilled_seconds > 0)
    notes +=
        fmt::format("what lies elsewhere adds {}: {} in all\n", print_seconds(explanation.spilled_seconds),
                    print_seconds(seconds + explanation.spilled_seconds));
  if (!explanation.by_definition.empty())
    notes += fmt::format("runs by definition here, slowly: {}\n", program::print(explanation.by_definition));
  if (measurement) {
    notes += measured_line(explanation, seconds) + "\n";
    if (measurement->urgency) notes += urgency_line(*measurement->urgency) + "\n";
    if (measurement->first_answer) notes += first_answer_line(*measurement->first_answer) + "\n";
    if (measurement->times.workers > 1) notes += "the table adds up what all threads did; ";
    notes += "nodes that ran as one share the time by their estimates\n";
  }
  out += wrap(notes, width);
  if (explanation.rewriting) out += rewriting_lines(explanation);
  if (!explanation.proof.empty()) out += wrap(explanation.proof, width);
  if (explanation.verbose && !explanation.stages.empty())
    out += "\n" + stage_table(explanation.stages, width);
  if (!explanation.hints.empty())
    out += wrap(fmt::format("hints kept for the planner: {}", fmt::join(explanation.hints, ", ")), width);
  return out;
}

}  // namespace weft::explain
