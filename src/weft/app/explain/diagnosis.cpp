#include "weft/app/explain/diagnosis.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"

namespace weft::explain {
namespace {

using transport::RankReport;

constexpr std::string_view kWaits = "\n  waits for ";  // at a line start: tables have such a column
constexpr double kLongSeconds = 1;                     // longer than a healthy rank waits

// Parses the duration in "... for 4.2 s (group 0, number 7)"; infinite if there is none.
double seconds_of_wait(std::string_view line) {
  constexpr std::string_view kFor = " for ";
  for (std::size_t at = line.rfind(kFor); at != line.npos && at > 0; at = line.rfind(kFor, at - 1)) {
    std::string_view time = line.substr(at + kFor.size());
    time = time.substr(0, std::min(time.find_first_of(",("), time.size()));
    while (time.ends_with(' ')) time.remove_suffix(1);
    if (const auto parsed = parse_quantity(time); parsed.ok() && parsed->dimension == Dimension::seconds)
      return parsed->value;
  }
  return std::numeric_limits<double>::infinity();
}

// The line in which a rank reports a suspiciously long wait; empty if there is none.
std::string_view wait_of(const RankReport& patient) {
  const std::string_view answer = patient.answer;
  for (std::size_t at = answer.find(kWaits); at != answer.npos; at = answer.find(kWaits, at + 1)) {
    const std::size_t begin = at + 3;  // after the newline and the indent
    const std::string_view line = answer.substr(begin, answer.find('\n', begin) - begin);
    if (seconds_of_wait(line) >= kLongSeconds) return line;
  }
  return {};
}

// Whether a line starts like the heading or a row of the table: "    call", "      17", "       -".
bool is_in_table(std::string_view line, bool heading) {
  constexpr std::size_t kNumber = 8;
  if (line.size() <= kNumber || line[kNumber] != ' ') return false;
  std::string_view first = line.substr(0, kNumber);
  first.remove_prefix(std::min(first.find_first_not_of(' '), first.size()));
  if (heading) return first == "call" || first == "step";
  return first == "-" || (!first.empty() && first.find_first_not_of("0123456789") == first.npos);
}

// The answer with only the last `rows` rows of each table.
std::string shortened(std::string_view answer, std::size_t rows) {
  std::string out;
  std::vector<std::string_view> table;  // rows since its heading
  bool in_table = false;
  const auto end_table = [&] {
    const std::size_t left = table.size() > rows ? table.size() - rows : 0;
    if (left > 0) out += fmt::format("{:>8}  {} earlier: weft doctor --all\n", "...", left);
    for (std::size_t i = left; i < table.size(); ++i) out += fmt::format("{}\n", table[i]);
    table.clear();
  };
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    const std::string_view line = answer.substr(0, end);
    answer.remove_prefix(std::min(end + 1, answer.size()));
    if (in_table && is_in_table(line, /*heading=*/false)) {
      table.push_back(line);
      continue;
    }
    end_table();
    in_table = is_in_table(line, /*heading=*/true);
    out += fmt::format("{}\n", line);
  }
  end_table();
  return out;
}

struct Counts {
  std::size_t all = 0, waiting = 0, mute = 0;
};

Counts count(std::span<const RankReport> patients) {
  Counts counts{.all = patients.size()};
  for (const RankReport& patient : patients) {
    counts.mute += patient.answer.empty();
    counts.waiting += !wait_of(patient).empty();
  }
  return counts;
}

std::string summary(std::span<const RankReport> patients) {
  const Counts counts = count(patients);
  std::string out = fmt::format("{} rank{} here: ", counts.all, counts.all == 1 ? "" : "s");
  if (counts.waiting > 0) out += fmt::format("{} wait{}", counts.waiting, counts.waiting == 1 ? "s" : "");
  if (counts.mute > 0)
    out += fmt::format("{}{} do{} not answer", counts.waiting > 0 ? ", " : "", counts.mute,
                       counts.mute == 1 ? "es" : "");
  if (counts.waiting + counts.mute == 0) out += counts.all == 1 ? "it is not waiting" : "none is waiting";
  out += '\n';
  for (const RankReport& patient : patients)
    if (const std::string_view wait = wait_of(patient); !wait.empty())
      out += fmt::format("rank {} {}\n", patient.rank, wait);
  return out;
}

}  // namespace

std::string print_text(std::span<const RankReport> patients, std::size_t rows) {
  std::string out = summary(patients);
  for (const RankReport& patient : patients) {
    out += '\n';
    if (patient.answer.empty()) {
      out += fmt::format("process {} does not answer: it is {}\n", patient.process, patient.state);
      continue;
    }
    out += shortened(patient.answer, rows);
  }
  return out;
}

std::string print_json(std::span<const RankReport> patients) {
  const Counts counts = count(patients);
  nlohmann::ordered_json processes = nlohmann::ordered_json::array();
  for (const RankReport& patient : patients) {
    nlohmann::ordered_json row = {{"process", patient.process}};
    if (patient.rank >= 0) row.update({{"rank", patient.rank}, {"ranks", patient.ranks}});
    if (patient.answer.empty()) {
      row["state"] = patient.state;
    } else {
      row["answer"] = patient.answer;
    }
    processes.push_back(std::move(row));
  }
  return nlohmann::ordered_json{{"ranks", counts.all},
                                {"waiting", counts.waiting},
                                {"not_answering", counts.mute},
                                {"processes", processes}}
             .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace weft::explain
