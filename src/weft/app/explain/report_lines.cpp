// The lines at the start of every report: one function for a line's text, one for its JSON keys.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/codecs.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/report.h"
#include "weft/app/explain/whole.h"
#include "weft/base/units.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/uncertainty.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBetween = " · ";

void append(std::string& text, std::string_view more, std::string_view between = kBetween) {
  if (!text.empty() && !more.empty()) text += between;
  text += more;
}

// "+12 %", "3.4x as long": the measured time relative to the predicted one.
std::string off_by(double predicted, double measured) {
  const double ratio = measured / predicted;
  return ratio < 2 ? fmt::format("{:+.0f} %", 100 * (ratio - 1)) : fmt::format("{:.3g}x as long", ratio);
}

double lower_bound_of(const Report& report) {
  if (report.pipeline) return report.pipeline->lower_bound_seconds;
  return report.choice != nullptr ? report.choice->lower_bound_seconds : 0;
}

// Plan

LineText plan_text(const Report& report, const StepFacts&) {
  if (const auto* distribution = report.distribution(); distribution != nullptr) {
    std::string terms = terms_of(report, *distribution);
    return {terms.empty() ? "one device" : std::move(terms)};
  }
  if (!report.alone) return {report.terms};
  const std::string one = fmt::format("one {}", report.cluster.device.name);
  const auto& rewriting = report.alone->rewriting;
  if (!rewriting) return {one, "the model as written"};
  if (report.rules.empty()) return {one, "the model as written: no rule makes it cheaper"};
  return {one, fmt::format("{} rewrite{} by rules: {} instead of {} at best", report.rules.size(),
                           report.rules.size() == 1 ? "" : "s", print_seconds(rewriting->seconds_after),
                           print_seconds(rewriting->seconds_before))};
}

void plan_json(const Report& report, const StepFacts& facts, Json& json) {
  json["parallelism"] = plan_text(report, facts).value;
  const auto* distribution = report.distribution();
  json["plan"] = distribution != nullptr ? print(*distribution) : std::string();
}

// Step

LineText step_text(const Report& report, const StepFacts& facts) {
  LineText text;
  double seconds = facts.seconds;
  const std::string predicted =
      fmt::format("{} {}", print_seconds(seconds), facts.at_best ? "at best, by the roofline" : "predicted");
  if (report.measured) {
    seconds = report.measured->times.step_seconds;
    text.value = fmt::format("{} measured", print_seconds(seconds));
    if (facts.seconds > 0) text.note = predicted;
    if (!facts.at_best && facts.seconds > 0)
      text.note += fmt::format(" ({})", off_by(facts.seconds, seconds));
  } else {
    text.value = predicted;
  }
  if (!(seconds > 0)) return text;
  if (report.examples > 0) {
    const double rate = report.examples / seconds;
    append(text.note, fmt::format("{} {}/s", print_count(rate), report.example));
    if (const auto devices = report.devices(); devices > 1)
      append(text.note, fmt::format("{} {}/s per {}", print_count(rate / static_cast<double>(devices)),
                                    report.example, report.per()));
  }
  if (const double part = report.utilization(seconds); part > 0 && (!facts.at_best || report.measured))
    append(text.note, fmt::format("{} of peak", rounded_percent(part)));
  return text;
}

void step_json(const Report& report, const StepFacts& facts, Json& json) {
  json["step_seconds"] = facts.seconds - report.spilled_seconds;
  json["mfu"] = report.utilization(facts.seconds);
  if (!(report.examples > 0 && facts.seconds > 0)) return;
  const double rate = report.examples / facts.seconds;
  json["examples"] = report.example;
  json["examples_per_step"] = report.examples;
  json["examples_per_second"] = rate;
  json["examples_per_second_per_device"] = rate / static_cast<double>(report.devices());
}

// Memory

// "activations 9.1 GiB, optimizer 1.4 GiB": at most three, largest first, each at least 1 %.
std::string largest_items(std::vector<MemoryItem> items, double whole) {
  constexpr std::size_t kMost = 3;
  std::ranges::stable_sort(items, std::ranges::greater{}, &MemoryItem::bytes);
  std::vector<std::string> shown;
  for (const auto& [what, bytes] : items)
    if (shown.size() < kMost && bytes > 0 && bytes >= whole / 100)
      shown.push_back(fmt::format("{} {}", what, print_bytes(bytes)));
  return fmt::format("{}", fmt::join(shown, ", "));
}

LineText memory_text(const Report& report, const StepFacts& facts) {
  LineText text;
  const std::string per = report.devices() > 1 ? fmt::format(" per {}", report.per()) : std::string();
  const std::string bytes = print_bytes(facts.memory_bytes), limit = print_bytes(report.memory_limit);
  if (!(report.memory_limit > 0))
    text.value = fmt::format("{}{}", bytes, per);
  else if (facts.memory_bytes <= report.memory_limit && report.memory_reserve > 0)
    text.value = fmt::format("{} of {} usable{} ({}, reserve {})", bytes, limit, per,
                             print_bytes(report.device_memory), rounded_percent(report.memory_reserve));
  else if (facts.memory_bytes <= report.memory_limit)
    text.value = fmt::format("{} of {}{} ({})", bytes, limit, per,
                             rounded_percent(facts.memory_bytes / report.memory_limit));
  else if (report.memory_reserve > 0)
    text.value = fmt::format("does not fit: needs {}{}, {} usable ({}, reserve {})", bytes, per, limit,
                             print_bytes(report.device_memory), rounded_percent(report.memory_reserve));
  else
    text.value = fmt::format("does not fit: needs {}{}, {} available", bytes, per, limit);
  if (!facts.fullest.empty()) text.value += fmt::format("; fullest: {}", facts.fullest);
  if (report.measured && report.measured->memory_bytes > 0)
    append(text.note, fmt::format("{} measured", print_bytes(report.measured->memory_bytes)));
  if (report.spilled_bytes > 0)
    append(text.note, fmt::format("{} spilled", print_bytes(report.spilled_bytes)));
  append(text.note, largest_items(facts.memory, facts.memory_bytes));
  return text;
}

void memory_json(const Report& report, const StepFacts& facts, Json& json) {
  json["memory_per_rank_bytes"] = whole(facts.memory_bytes);
  if (report.memory_limit > 0) json["memory_limit_bytes"] = whole(report.memory_limit);
  if (report.memory_reserve > 0) json["memory_reserve"] = report.memory_reserve;
  json["fits"] = facts.fits;
  json["memory"] = Json::object();
  for (const MemoryItem& item : facts.memory) json["memory"][item.what] = whole(item.bytes);
  if (report.spilled_bytes > 0) json["spilled_bytes"] = whole(report.spilled_bytes);
  if (report.spilled_seconds > 0) json["seconds_of_spilled"] = report.spilled_seconds;
}

// Time

// Rounds to whole percents that add up to 100, by the largest remainder method.
std::vector<int> percents_of(const std::vector<TimeShare>& shares, double all) {
  std::vector<int> percents;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double exact = 100 * std::clamp(shares[i].seconds / all, 0.0, 1.0);
    percents.push_back(static_cast<int>(exact));
    remainders.emplace_back(exact - percents.back(), i);
  }
  std::ranges::sort(remainders, std::ranges::greater{});
  const int left = 100 - std::accumulate(percents.begin(), percents.end(), 0);
  for (int i = 0; i < left && i < static_cast<int>(remainders.size()); ++i)
    ++percents[remainders[static_cast<std::size_t>(i)].second];
  return percents;
}

LineText time_text(const Report& report, const StepFacts& facts) {
  if (facts.shares.empty() || !(facts.seconds > 0)) return {};
  constexpr std::array<std::string_view, 4> kFills = {"█", "▒", "░", "·"};
  constexpr int kWidth = 20;
  const std::vector<int> percents = percents_of(facts.shares, facts.seconds);
  LineText text;
  int drawn = 0, counted = 0;
  std::size_t fill = 0;
  for (std::size_t i = 0; i < percents.size(); ++i) {
    if (percents[i] == 0) continue;
    counted += percents[i];
    const std::string_view with = kFills[std::min(fill++, kFills.size() - 1)];
    for (const int until = counted * kWidth / 100; drawn < until; ++drawn) text.value += with;
    append(text.note, fmt::format("{} {} {} %", with, facts.shares[i].what, percents[i]), "  ");
  }
  if (!report.measured) return text;
  const auto add_measured = [&](std::string_view what, double seconds) {
    text.note += fmt::format("; measured: {} {}", what,
                             rounded_percent(seconds / report.measured->times.step_seconds));
  };
  if (!report.measured->stages.empty()) add_measured("bubble", report.measured->bubble);
  if (const auto& exposed = report.measured->exposed_communication_seconds)
    add_measured("exposed communication", *exposed);
  return text;
}

void time_json(const Report&, const StepFacts& facts, Json& json) {
  json["time_seconds"] = Json::object();
  for (const TimeShare& share : facts.shares) {
    if (!(share.seconds > 0)) continue;
    std::string key = share.what;
    std::ranges::replace_if(
        key, [](char c) { return c == ' ' || c == '-'; }, '_');
    json["time_seconds"][key] = share.seconds;
  }
}

// Limit

LineText limit_text(const Report& report, const StepFacts& facts) {
  LineText text{facts.limit};
  // The critical path of the simulation, whose shares differ from those of total compute and
  // communication.
  if (!facts.limit.empty() && report.prediction != nullptr && !report.alone && !report.pipeline) {
    if (const std::size_t at = facts.limit.rfind(": "); at != std::string::npos)
      text.value =
          fmt::format("critical path: {}, {}", facts.limit.substr(0, at), facts.limit.substr(at + 2));
  }
  if (const double least = lower_bound_of(report); least > 0)
    text.note = fmt::format("no plan can take less than {}", print_seconds(least));
  return text;
}

void limit_json(const Report& report, const StepFacts& facts, Json& json) {
  json["bound_by"] = facts.limit;
  if (!report.pipeline && report.choice == nullptr) return;
  json["lower_bound_seconds"] = lower_bound_of(report);
  json["lower_bound_by"] = report.pipeline ? report.pipeline->lower_bound_by : report.choice->lower_bound_why;
}

// Next: only suggestions supported by the report's figures.

std::string search_next(const search::Ended ended) {
  switch (ended) {
    case search::Ended::settled: return {};
    case search::Ended::estimate_limit:
      return fmt::format("a larger search_limit: the search stopped for {}", search::name(ended));
    case search::Ended::time_limit: return "more planning_seconds: the search ran out of time";
    case search::Ended::interrupted: return "run it again: the search was interrupted";
  }
  return {};
}

// The best plan that does not fit, if it would be faster.
std::string faster_with_memory(const Report& report, const StepFacts& facts) {
  const Candidate* best = nullptr;
  const std::vector<Candidate> others = alternatives_of(report);
  for (const Candidate& other : others)
    if (!other.fits && (best == nullptr || other.seconds < best->seconds)) best = &other;
  if (best == nullptr || best->seconds > 0.95 * facts.seconds) return {};
  return fmt::format("with {} per {} instead of {}, {} would take {}", print_bytes(best->bytes), report.per(),
                     print_bytes(report.memory_limit), best->name, print_seconds(best->seconds));
}

// A narrower type that the device computes faster.
std::string faster_precision(const Report& report) {
  if (report.precision != plan::DType::f32) return {};
  const cluster::Device& device = report.cluster.device;
  const double gain = cost::peak_rate(device, plan::DType::bf16) / cost::peak_rate(device, plan::DType::f32);
  if (!(gain > 1.5) || !std::isfinite(gain)) return {};
  return fmt::format("precision = bf16: {:.0f} times the peak rate on {}", gain, device.name);
}

LineText next_text(const Report& report, const StepFacts& facts) {
  if (report.task.empty()) return {};
  if (!facts.fits && report.pipeline)
    return {"more stages, smaller micro-batches, or 'shard optimizer' on an axis of the batch"};
  if (!facts.fits && report.alone) return {"ON pod: 32 devices, over which the model is spread"};
  if (report.measured && report.measured->predicted_after > 0) {
    const double ratio = report.measured->times.step_seconds / facts.seconds;
    if (ratio > 1.25 || ratio < 0.8)
      return {"run it again: this run's times are kept, and the next prediction uses them"};
  }
  if (report.choice != nullptr)
    if (std::string text = search_next(report.choice->outcome.ended); !text.empty()) return {std::move(text)};
  if (std::string text = faster_precision(report); !text.empty()) return {std::move(text)};
  if (std::string text = faster_with_memory(report, facts); !text.empty()) return {std::move(text)};
  if (report.is_local() && !report.measured)
    return {"EXPLAIN ANALYZE runs it here and prints measured beside predicted"};
  if (report.alone && report.measured && report.is_local())
    return {"ON LOCAL 2: the same step on two ranks of this machine"};
  return {"EXPLAIN (PAGE 'step.html') draws the step; VERBOSE prints all sections"};
}

void next_json(const Report& report, const StepFacts& facts, Json& json) {
  json["next"] = next_text(report, facts).value;
}

// Measures to stay within the memory limit, and communication settings: one line each if present.

LineText kept_text(const Report& report, const StepFacts&) { return {report.within_limit}; }
void kept_json(const Report& report, const StepFacts&, Json& json) {
  if (!report.within_limit.empty()) json["within_limit"] = report.within_limit;
}

LineText wire_text(const Report& report, const StepFacts&) {
  std::string text;
  for (const auto& [key, what] : report.notes) append(text, fmt::format("{}: {}", key, what), "; ");
  for (const search::CodedExchanges& kind : report.coded)
    append(text, fmt::format("codecs: {}", search::print(kind)), "; ");
  return {text};
}
void wire_json(const Report& report, const StepFacts&, Json& json) {
  // Also writes the former names of these settings, which programs may still read.
  constexpr std::pair<std::string_view, std::string_view> kFormer[] = {{"all_reduce_window", "credit"},
                                                                       {"parameter_servers", "servers"},
                                                                       {"gradient_delay", "delay"},
                                                                       {"sync_every", "sync"},
                                                                       {"scatter_gather_sends", "slices"}};
  for (const auto& [key, what] : report.notes) {
    json[key] = what;
    for (const auto& [now, before] : kFormer)
      if (now == key) json[before] = what;
  }
  if (!report.coded.empty()) json["codecs"] = codecs_json(report.coded);
}

// "2: ranks 0 2, ranks 1 3 · network 1.2 GB/s per rank, 30 us, measured"
LineText hosts_text(const Report& report, const StepFacts&) {
  if (!report.hosts) return {};
  constexpr std::size_t kMostShown = 8;
  const planner::JobHosts& hosts = *report.hosts;
  LineText text{fmt::format("{}: ", hosts.ranks.size())};
  for (std::size_t h = 0; h < std::min(hosts.ranks.size(), kMostShown); ++h)
    text.value += fmt::format("{}{} {}", h > 0 ? ", " : "", hosts.ranks[h].size() == 1 ? "rank" : "ranks",
                              fmt::join(hosts.ranks[h], " "));
  if (hosts.ranks.size() > kMostShown) text.value += ", ...";
  if (hosts.ranks.size() > 1)
    text.note = fmt::format("network {} per rank, {}, {}", print_rate(hosts.bytes_per_second),
                            print_seconds(hosts.latency_seconds), hosts.measured ? "measured" : "as given");
  return text;
}
void hosts_json(const Report& report, const StepFacts&, Json& json) {
  if (!report.hosts) return;
  json["hosts"] = report.hosts->ranks;
  if (report.hosts->ranks.size() > 1)
    json["network"] = {{"bytes_per_second", report.hosts->bytes_per_second},
                       {"latency_seconds", report.hosts->latency_seconds},
                       {"measured", report.hosts->measured}};
}

LineText slow_text(const Report& report, const StepFacts&) {
  if (!report.alone || report.alone->by_definition.empty()) return {};
  return {fmt::format("without a kernel here: {}", program::print(report.alone->by_definition))};
}
void slow_json(const Report& report, const StepFacts&, Json& json) {
  if (!report.alone) return;
  for (const program::ReferenceOps& one : report.alone->by_definition)
    json["by_definition"].push_back({{"operator", one.op}, {"why", one.why}, {"count", one.count}});
}

// Sure

std::string_view origin(cost::Source source) {
  return source == cost::Source::datasheet ? "from data sheets" : name(source);
}

LineText sure_text(const Report& report, const StepFacts& facts) {
  if (const auto& measured = report.measured) {
    LineText text{fmt::format("measured: median of {} step{}, {}", measured->times.steps,
                              measured->times.steps == 1 ? "" : "s", measured->ranks)};
    if (measured->error_after > 0)
      text.note = fmt::format(
          "median unit error {}, now {}; with this run's measurements the predicted step time is {}",
          rounded_percent(measured->error_before), rounded_percent(measured->error_after),
          print_seconds(measured->predicted_after));
    return text;
  }
  if (facts.at_best) return {"a lower bound from the device's peak rates, not a prediction"};
  if (report.is_local() && report.prediction == nullptr)
    return {"predicted from this machine's statistics, not measured"};
  LineText text{"simulated, not measured"};
  if (!report.is_local()) {
    const cost::Uncertainty step = cost::step_uncertainty(report.cluster, !report.roles.expert.empty());
    text.value = fmt::format("within {} for 8 of 10 runs like this", rounded_percent(step.share));
    text.note = fmt::format("least known: {}; {} would tell more", step.least_known, step.measure);
  }
  if (report.prediction == nullptr) return text;
  double all_computing = 0;
  for (const double seconds : report.prediction->seconds_by_source) all_computing += seconds;
  std::string computing;
  for (std::size_t s = 0; s < cost::kSources; ++s)
    if (const double seconds = report.prediction->seconds_by_source[s]; seconds > 0)
      append(computing,
             fmt::format("{} {}", rounded_percent(seconds / all_computing),
                         origin(static_cast<cost::Source>(s))),
             ", ");
  if (!computing.empty()) append(text.note, fmt::format("compute times {}", computing));
  std::array<double, cost::kSources> by_source{};
  double all = 0;
  for (const sim::EstimatedCollective& one : report.prediction->collectives) {
    const double seconds = static_cast<double>(one.times) * one.price.seconds();
    by_source[static_cast<std::size_t>(one.price.source)] += seconds;
    all += seconds;
  }
  std::string collectives;
  for (std::size_t s = 0; s < by_source.size(); ++s)
    if (by_source[s] > 0)
      append(collectives,
             fmt::format("{} {}", rounded_percent(by_source[s] / all), origin(static_cast<cost::Source>(s))),
             ", ");
  if (!collectives.empty()) append(text.note, fmt::format("collectives {}", collectives));
  return text;
}

void sure_json(const Report& report, const StepFacts& facts, Json& json) {
  json["source"] = facts.at_best ? "roofline of data-sheet figures" : sure_text(report, facts).value;
  if (!report.is_local() && !facts.at_best && !report.measured) {
    const cost::Uncertainty step = cost::step_uncertainty(report.cluster, !report.roles.expert.empty()),
                            memory = cost::memory_uncertainty(report.cluster);
    json["interval"] = {{"share", step.share},
                        {"step_seconds_low", facts.seconds * (1 - step.share)},
                        {"step_seconds_high", facts.seconds * (1 + step.share)},
                        {"memory_bytes_low", facts.memory_bytes * (1 - memory.share)},
                        {"memory_bytes_high", facts.memory_bytes * (1 + memory.share)},
                        {"least_known", step.least_known},
                        {"measure", step.measure}};
  }
  if (report.prediction == nullptr) return;
  Json sources = Json::object();
  for (std::size_t s = 0; s < cost::kSources; ++s)
    if (const double seconds = report.prediction->seconds_by_source[s]; seconds > 0)
      sources[std::string(name(static_cast<cost::Source>(s)))] = seconds;
  json["compute_seconds_by_source"] = std::move(sources);
}

// Checked, Use, Hints

LineText checked_text(const Report& report, const StepFacts&) {
  std::string text;
  for (const char c : report.proof) text += c == '\n' ? "; " : std::string(1, c);
  return {text};
}
void checked_json(const Report& report, const StepFacts&, Json& json) {
  json["proven"] = report.proven;
  json["proof"] = report.proof;
}

LineText use_text(const Report& report, const StepFacts&) {
  const auto* distribution = report.distribution();
  if (distribution == nullptr || report.task.empty()) return {};
  return {fmt::format("distribution = '{}'", print(*distribution))};
}

LineText hints_text(const Report& report, const StepFacts&) {
  return {fmt::format("{}", fmt::join(report.hints, ", "))};
}
void hints_json(const Report& report, const StepFacts&, Json& json) { json["hints"] = report.hints; }

// First answer and urgency: one device under ANALYZE.

LineText first_answer_text(const Report& report, const StepFacts&) {
  if (!report.measured || !report.measured->first_answer) return {};
  const FirstAnswer& answer = *report.measured->first_answer;
  return {fmt::format("{} while {} of weights are loaded in {} groups", print_seconds(answer.seconds),
                      print_bytes(answer.bytes), answer.groups),
          fmt::format("{} if all weights are loaded first: copying alone {}, computing alone {}",
                      print_seconds(answer.one_after_the_other), print_seconds(answer.copying),
                      print_seconds(answer.computing))};
}

LineText urgency_text(const Report& report, const StepFacts&) {
  if (!report.measured || !report.measured->urgency) return {};
  const PriorityLatency& urgency = *report.measured->urgency;
  const auto print = [](const Latency& latency) {
    return fmt::format("{} (p99 {})", print_seconds(latency.median), print_seconds(latency.p99));
  };
  return {
      fmt::format("a small unit takes {} alone", print(urgency.alone)),
      fmt::format("during this step {} at normal priority, {} at high priority, {} while this step is "
                  "low-priority; this step takes {}, at low priority {}",
                  print(urgency.in_turn), print(urgency.at_high_priority), print(urgency.beside_low_priority),
                  print_seconds(urgency.step), print_seconds(urgency.step_at_low_priority))};
}

// The faster plan that was left because predictions cannot tell it from the chosen one.
LineText simpler_text(const Report& report, const StepFacts&) { return {report.simpler}; }
void simpler_json(const Report& report, const StepFacts&, Json& json) {
  if (!report.simpler.empty()) json["left"] = report.simpler;
}

// The keys of these lines are inside "measured".
void no_json(const Report&, const StepFacts&, Json&) {}

constexpr ReportLine kReportLines[] = {
    {"Hosts", false, hosts_text, hosts_json},      {"Plan", false, plan_text, plan_json},
    {"Step", false, step_text, step_json},         {"Memory", false, memory_text, memory_json},
    {"Kept", false, kept_text, kept_json},         {"Time", false, time_text, time_json},
    {"Limit", false, limit_text, limit_json},      {"Wires", false, wire_text, wire_json},
    {"Slow", false, slow_text, slow_json},         {"Loading", false, first_answer_text, no_json},
    {"Urgent", false, urgency_text, no_json},      {"Next", false, next_text, next_json},
    {"Left", true, simpler_text, simpler_json},    {"Sure", true, sure_text, sure_json},
    {"Checked", true, checked_text, checked_json}, {"Use", true, use_text, no_json},
    {"Hints", true, hints_text, hints_json},
};

}  // namespace

std::span<const ReportLine> report_lines() { return kReportLines; }

std::string headline(const Report& report) {
  std::string text = fmt::format("{} {} on {}", report.task, report.model, report.cluster.name);
  if (report.cluster.is_mixed()) {
    std::vector<std::string> kinds;
    for (const cluster::DeviceKind& kind : report.cluster.kinds)
      kinds.push_back(
          fmt::format("{} {}", print_exact(kind.nodes * report.cluster.axes.back().size), kind.device.name));
    text += fmt::format(" ({})", fmt::join(kinds, " and "));
  } else if (report.cluster.name != report.cluster.device.name) {
    text += fmt::format(" ({} {})", print_exact(report.devices()), report.cluster.device.name);
  }
  std::string_view between = ": ";
  for (const auto& [name, size] : report.sizes)
    text += fmt::format("{}{} = {}", std::exchange(between, ", "), name, size);
  for (const auto& [name, value] : report.settings)
    text += fmt::format("{}{} {}", std::exchange(between, ", "), name, value);
  return text;
}

std::string whole_text(const ReportLine& line, const LineText& text) {
  std::string whole = text.value;
  append(whole, text.note, line.text == time_text ? "  " : kBetween);
  return whole;
}

namespace {

// Breaks between parts; a part that is too long is broken itself.
std::string wrap_parts(std::string_view label, std::string_view text, std::size_t width, std::size_t indent) {
  std::string out, line(label);
  line.resize(std::max(indent, line.size()), ' ');
  bool empty = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetween), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + kBetween.size(), text.size()));
    if (!empty && columns(line) + columns(kBetween) + columns(part) > width) {
      out += line + '\n';
      line.assign(indent, ' ');
      empty = true;
    }
    if (!empty) line += kBetween;
    line += part;
    empty = false;
    if (columns(line) <= width) continue;
    const std::vector<std::string> pieces =
        broken(std::string_view(line).substr(indent), width - indent, width - indent);
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      out += line.substr(0, indent) + pieces[i] + '\n';
      line.assign(indent, ' ');
    }
    line = line.substr(0, indent) + pieces.back();
  }
  return out + line + '\n';
}

std::string print(const ReportLine& line, const Report& report, const StepFacts& facts) {
  constexpr std::size_t kLabel = 10;
  const LineText text = line.text(report, facts);
  if (text.value.empty()) return {};
  return wrap_parts(line.label, whole_text(line, text), report.width, kLabel);
}

}  // namespace

std::string print_lines(const Report& report, bool after) {
  const StepFacts facts = step_of(report);
  std::string out;
  for (const ReportLine& line : kReportLines)
    if (line.after_others == after) out += print(line, report, facts);
  return out;
}

std::string print_line(const Report& report, std::string_view label) {
  const auto* line = std::ranges::find(kReportLines, label, &ReportLine::label);
  return line == std::end(kReportLines) ? std::string() : print(*line, report, step_of(report));
}

}  // namespace weft::explain
