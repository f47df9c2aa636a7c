#include "weft/explain/diagnosis.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::explain {
namespace {

using transport::Patient;

constexpr std::string_view kWaits = "waits for ";

// The line in which a rank says whom it waits for; empty: it waits for nobody.
std::string_view wait_of(const Patient& patient) {
  const std::string_view answer = patient.answer;
  const std::size_t at = answer.find(kWaits);
  if (at == std::string_view::npos) return {};
  return answer.substr(at, answer.find('\n', at) - at);
}

struct Counts {
  std::size_t all = 0, waiting = 0, mute = 0;
};

Counts count(std::span<const Patient> patients) {
  Counts counts{.all = patients.size()};
  for (const Patient& patient : patients) {
    counts.mute += patient.answer.empty();
    counts.waiting += !wait_of(patient).empty();
  }
  return counts;
}

std::string summary(std::span<const Patient> patients) {
  const Counts counts = count(patients);
  std::string out = fmt::format("{} rank{} here: ", counts.all, counts.all == 1 ? "" : "s");
  if (counts.waiting > 0) out += fmt::format("{} wait{}", counts.waiting, counts.waiting == 1 ? "s" : "");
  if (counts.mute > 0)
    out += fmt::format("{}{} do{} not answer", counts.waiting > 0 ? ", " : "", counts.mute,
                       counts.mute == 1 ? "es" : "");
  if (counts.waiting + counts.mute == 0)
    out += counts.all == 1 ? "it waits for nobody" : "none waits for another";
  out += '\n';
  for (const Patient& patient : patients)
    if (const std::string_view wait = wait_of(patient); !wait.empty())
      out += fmt::format("rank {} {}\n", patient.rank, wait);
  return out;
}

}  // namespace

std::string print_text(std::span<const Patient> patients) {
  std::string out = summary(patients);
  for (const Patient& patient : patients) {
    out += '\n';
    if (patient.answer.empty()) {
      out += fmt::format("process {} does not answer: it is {}\n", patient.process, patient.state);
      continue;
    }
    out += patient.answer;
    if (!out.ends_with('\n')) out += '\n';
  }
  return out;
}

std::string print_json(std::span<const Patient> patients) {
  const Counts counts = count(patients);
  nlohmann::ordered_json processes = nlohmann::ordered_json::array();
  for (const Patient& patient : patients) {
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
