#include "weft/app/explain/validation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/median.h"

namespace weft::explain {
namespace {

using ValidationJson = nlohmann::json;

struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0, median = 0, bias = 0, within10 = 0;
};

std::optional<ErrorSummary> summarize(std::vector<double> errors) {
  if (errors.empty()) return std::nullopt;
  ErrorSummary made;
  made.count = errors.size();
  for (double& error : errors) {
    made.bias += error;
    error = std::abs(error);
    made.mean += error;
    made.within10 += error <= 0.1 ? 1 : 0;
  }
  const auto n = static_cast<double>(errors.size());
  made.mean /= n;
  made.bias /= n;
  made.within10 /= n;
  made.median = median(std::move(errors));
  return made;
}

// What it costs to run the plan that is predicted to be the fastest, relative to the fastest measured one, over all
// sets of plans for one model, batch and number of devices.
struct ChoiceSummary {
  std::size_t choices = 0, plans = 0, within_interval = 0, timed = 0;
  double mean_loss = 0, worst_loss = 0;
};

ChoiceSummary summarize_choices(const std::vector<const ValidatedFile*>& files) {
  constexpr std::size_t kFewestPlans = 6;
  ChoiceSummary made;
  std::map<std::string, std::vector<const ValidatedRun*>> choices;
  for (const ValidatedFile* const file : files)
    for (const ValidatedRun& run : file->runs) {
      if (!run.ran || run.measured_seconds <= 0 || run.predicted_seconds <= 0) continue;
      ++made.timed;
      made.within_interval += run.is_inside() ? 1 : 0;
      choices[file->path + run.choice].push_back(&run);
    }
  const auto predicted = [](const ValidatedRun* run) {
    return std::pair(!run->fits, run->predicted_seconds);
  };
  const auto measured = [](const ValidatedRun* run) { return run->measured_seconds; };
  for (const auto& [name, plans] : choices) {
    if (plans.size() < kFewestPlans) continue;
    const double loss = (*std::ranges::min_element(plans, {}, predicted))->measured_seconds /
                            (*std::ranges::min_element(plans, {}, measured))->measured_seconds -
                        1;
    ++made.choices;
    made.plans += plans.size();
    made.mean_loss += loss;
    made.worst_loss = std::max(made.worst_loss, loss);
  }
  if (made.choices > 0) made.mean_loss /= static_cast<double>(made.choices);
  return made;
}

struct RunSummary {
  std::optional<ErrorSummary> time, memory;
  std::size_t left_out = 0;
  // Of rows that ran, those that are said not to fit; of rows that ran out of memory, those that are said to fit.
  std::size_t ran = 0, refused = 0, died = 0, died_certain = 0, accepted = 0, accepted_certain = 0;
  double tau = 0;  // Kendall's, within series
  bool has_tau = false;
};

// Pairs of one series whose measured steps differ by more than what runs repeat to.
void add_pairs(const std::vector<const ValidatedRun*>& runs, double& agree, double& pairs) {
  constexpr double kRepeats = 0.02;
  for (std::size_t a = 0; a < runs.size(); ++a)
    for (std::size_t b = a + 1; b < runs.size(); ++b) {
      const double measured = std::log(runs[a]->measured_seconds / runs[b]->measured_seconds);
      if (std::abs(measured) < kRepeats) continue;
      const double predicted = std::log(runs[a]->predicted_seconds / runs[b]->predicted_seconds);
      pairs += 1;
      agree += measured * predicted > 0 ? 1 : -1;
    }
}

// One error per run, or per stage where ranks were measured.
void add_memory_errors(const ValidatedRun& run, std::vector<double>& errors) {
  if (!run.ran) return;
  bool by_stage = false;
  for (const auto& [measured, predicted] : run.stages)
    if (measured > 0) errors.push_back(predicted / measured - 1), by_stage = true;
  if (!by_stage && run.measured_bytes > 0) errors.push_back(run.predicted_bytes / run.measured_bytes - 1);
}

RunSummary summarize(const std::vector<const ValidatedFile*>& files) {
  RunSummary made;
  std::vector<double> time, memory;
  double agree = 0, pairs = 0;
  for (const ValidatedFile* const file : files) {
    made.left_out += file->left_out.size();
    std::map<std::string, std::vector<const ValidatedRun*>> series;
    for (const ValidatedRun& run : file->runs) {
      if (run.ran) {
        ++made.ran;
        made.refused += !run.fits;
      } else {
        ++made.died;
        made.died_certain += run.certain;
        made.accepted += run.fits;
        made.accepted_certain += run.fits && run.certain;
      }
      if (run.measured_seconds > 0 && run.predicted_seconds > 0) {
        time.push_back(run.error());
        series[run.series].push_back(&run);
      }
      add_memory_errors(run, memory);
    }
    for (const auto& [name, of] : series) add_pairs(of, agree, pairs);
  }
  made.time = summarize(std::move(time));
  made.memory = summarize(std::move(memory));
  made.has_tau = pairs > 0;
  made.tau = pairs > 0 ? agree / pairs : 0;
  return made;
}

std::string percent(double share, bool sign = false) {
  return sign ? fmt::format("{:+.1f} %", 100 * share) : fmt::format("{:.1f} %", 100 * share);
}

std::vector<std::string> cells_of(const std::string& name, const RunSummary& of) {
  std::vector<std::string> cells = {name};
  cells.push_back(of.time ? fmt::format("{}", of.time->count) : "");
  cells.push_back(of.time ? percent(of.time->mean) : "");
  cells.push_back(of.time ? percent(of.time->median) : "");
  cells.push_back(of.time ? percent(of.time->bias, true) : "");
  cells.push_back(of.has_tau ? fmt::format("{:.2f}", of.tau) : "");
  cells.push_back(of.memory ? percent(of.memory->mean) : "");
  cells.push_back(of.memory ? percent(of.memory->bias, true) : "");
  cells.push_back(of.ran > 0 ? fmt::format("{} of {}", of.refused, of.ran) : "");
  cells.push_back(of.died > 0 ? fmt::format("{} of {}", of.accepted, of.died) : "");
  cells.push_back(of.left_out > 0 ? fmt::format("{}", of.left_out) : "");
  return cells;
}

void add_choices(Table& table, const std::string& name, const std::vector<const ValidatedFile*>& files) {
  const ChoiceSummary of = summarize_choices(files);
  if (of.timed == 0) return;
  const bool chooses = of.choices > 0;
  table.add({name, percent(static_cast<double>(of.within_interval) / static_cast<double>(of.timed)),
             chooses ? fmt::format("{}", of.choices) : "", chooses ? fmt::format("{}", of.plans) : "",
             chooses ? percent(of.mean_loss) : "", chooses ? percent(of.worst_loss) : ""});
}

std::string largest_terms(const ValidatedRun& run) {
  std::vector<std::pair<std::string, double>> terms = run.terms;
  std::ranges::stable_sort(terms, std::ranges::greater(), [](const auto& term) { return term.second; });
  std::string text;
  for (std::size_t t = 0; t < std::min<std::size_t>(terms.size(), 2); ++t)
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", terms[t].first,
                        100 * terms[t].second / run.predicted_seconds);
  return text;
}

void add_run(Table& table, const ValidatedRun& run) {
  const auto seconds = [](double value) { return value > 0 ? fmt::format("{:.3g}", value) : std::string(); };
  const auto gib = [](double value) {
    return value > 0 ? fmt::format("{:.1f}", value / (1 << 30)) : std::string();
  };
  const bool timed = run.measured_seconds > 0;
  table.add({run.id, seconds(run.measured_seconds), seconds(run.predicted_seconds),
             timed ? percent(run.error(), true) : "", gib(run.measured_bytes), gib(run.predicted_bytes),
             run.ran == run.fits ? ""
             : run.ran           ? "refused"
                                 : "accepted",
             largest_terms(run), run.stack});
}

Table table_of_runs() {
  return Table({{"row"},
                {"measured s", Align::right},
                {"predicted", Align::right},
                {"error", Align::right},
                {"GiB", Align::right},
                {"predicted", Align::right},
                {"verdict"},
                {"largest terms", Align::left, Fit::cut, 1},
                {"stack", Align::left, Fit::whole, 2}});
}

}  // namespace

std::string print_text(const ValidationText& text) {
  Table table({{"file", Align::left, Fit::cut},
               {"runs", Align::right},
               {"time:\nmean", Align::right},
               {"\nmedian", Align::right},
               {"\nbias", Align::right},
               {"\ntau", Align::right},
               {"memory:\nmean", Align::right},
               {"\nbias", Align::right},
               {"ran,\nrefused", Align::right},
               {"died,\naccepted", Align::right},
               {"left\nout", Align::right}});
  std::vector<const ValidatedFile*> all;
  std::vector<const ValidatedRun*> worst;
  for (const ValidatedFile& file : text.files) {
    all.push_back(&file);
    table.add(cells_of(std::filesystem::path(file.path).filename().string(), summarize({&file})));
    for (const ValidatedRun& run : file.runs)
      if (run.measured_seconds > 0) worst.push_back(&run);
  }
  if (all.size() > 1) table.add(cells_of("all", summarize(all)));
  std::string out = table.print(text.width);
  Table choices({{"file", Align::left, Fit::cut},
                 {"inside the\n80 % interval", Align::right},
                 {"\nchoices", Align::right},
                 {"among\nplans", Align::right},
                 {"fastest predicted,\nmean loss", Align::right},
                 {"\nworst", Align::right}});
  for (const ValidatedFile* const file : all)
    add_choices(choices, std::filesystem::path(file->path).filename().string(), {file});
  if (all.size() > 1) add_choices(choices, "all", all);
  out += "\n" + choices.print(text.width);
  if (text.rows) {
    Table rows = table_of_runs();
    for (const ValidatedFile& file : text.files)
      for (const ValidatedRun& run : file.runs) add_run(rows, run);
    out += "\n" + rows.print(text.width);
  } else if (!worst.empty()) {
    std::ranges::stable_sort(worst, std::ranges::greater(),
                             [](const ValidatedRun* run) { return std::abs(run->error()); });
    Table rows = table_of_runs();
    for (std::size_t w = 0; w < std::min<std::size_t>(worst.size(), 10); ++w) add_run(rows, *worst[w]);
    out += "\nworst\n" + rows.print(text.width);
  }
  std::map<std::string, std::size_t> why;
  for (const ValidatedFile& file : text.files)
    for (const auto& [id, reason] : file.left_out) ++why[reason];
  if (!why.empty()) {
    out += "\nleft out\n";
    for (const auto& [reason, count] : why) out += fmt::format("  {:>4}  {}\n", count, reason);
  }
  if (!text.anchored.empty()) out += print_text(text.anchored, text.rows, text.width);
  out += fmt::format("\nrows: {} half; {:.1f} s\n", text.half, text.seconds);
  return out;
}

std::string print_json(const ValidationText& text) {
  ValidationJson top = {{"schema", 1}, {"half", text.half}, {"files", ValidationJson::array()}};
  for (std::size_t f = 0; f < text.files.size(); ++f) {
    const ValidatedFile& file = text.files[f];
    const RunSummary of = summarize({&file});
    ValidationJson one = {
        {"file", file.path}, {"runs", ValidationJson::array()}, {"left_out", ValidationJson::array()}};
    if (of.time)
      one["time"] = {{"runs", of.time->count},
                     {"mean_error", of.time->mean},
                     {"median_error", of.time->median},
                     {"bias", of.time->bias}};
    if (of.memory) one["memory"] = {{"mean_error", of.memory->mean}, {"bias", of.memory->bias}};
    if (of.has_tau) one["kendall_tau"] = of.tau;
    const ChoiceSummary chosen = summarize_choices({&file});
    if (chosen.timed > 0)
      one["inside_interval"] =
          static_cast<double>(chosen.within_interval) / static_cast<double>(chosen.timed);
    if (chosen.choices > 0)
      one["choices"] = {{"choices", chosen.choices},
                        {"plans", chosen.plans},
                        {"mean_loss", chosen.mean_loss},
                        {"worst_loss", chosen.worst_loss}};
    one["verdicts"] = {{"ran", of.ran},
                       {"refused", of.refused},
                       {"out_of_memory", of.died},
                       {"accepted", of.accepted},
                       {"out_of_memory_certain", of.died_certain},
                       {"accepted_certain", of.accepted_certain}};
    for (const ValidatedRun& run : file.runs) {
      ValidationJson terms = ValidationJson::object();
      for (const auto& [name, seconds] : run.terms) terms[name] = seconds;
      ValidationJson memory = ValidationJson::object();
      for (const auto& [name, bytes] : run.memory) memory[name] = bytes;
      ValidationJson stages = ValidationJson::array();
      for (const auto& [measured, predicted] : run.stages)
        stages.push_back({{"measured_bytes", measured}, {"predicted_bytes", predicted}});
      one["runs"].push_back({{"id", run.id},
                             {"stack", run.stack},
                             {"distribution", run.plan},
                             {"unseen", run.unseen},
                             {"measured_seconds", run.measured_seconds},
                             {"predicted_seconds", run.predicted_seconds},
                             {"step_interval", run.step_interval},
                             {"measured_bytes", run.measured_bytes},
                             {"predicted_bytes", run.predicted_bytes},
                             {"ran", run.ran},
                             {"fits", run.fits},
                             {"terms_seconds", terms},
                             {"memory_bytes", memory},
                             {"stages", stages}});
    }
    for (const auto& [id, reason] : file.left_out) one["left_out"].push_back({{"id", id}, {"why", reason}});
    if (!text.anchored.empty()) one["anchored"] = ValidationJson::parse(print_json(text.anchored[f]));
    top["files"].push_back(std::move(one));
  }
  return top.dump() + "\n";
}

}  // namespace weft::explain
