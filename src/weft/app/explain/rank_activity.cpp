#include "weft/app/explain/rank_activity.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using comm::Tally;

Tally total(const comm::Tallies& tallies) {
  Tally sum;
  for (const Tally& each : tallies) sum += each;
  return sum;
}

std::string_view kind_name(std::size_t kind) { return collective::name(static_cast<collective::Kind>(kind)); }

struct Rates {
  double calls = 0, bytes = 0, busy = 0;  // per second; busy: a fraction
};

// Empty if the rank was not in `before`, or is now a different process with the same number.
std::optional<Rates> rates_of(const RankActivity& rank, const ActivitySnapshot& now,
                              const std::optional<ActivitySnapshot>& before) {
  if (!before) return {};
  const auto was = std::ranges::find_if(before->ranks, [&](const RankActivity& other) {
    return other.process == rank.process && other.rank == rank.rank && other.state.empty();
  });
  const std::chrono::duration<double> passed = now.taken - before->taken;
  if (was == before->ranks.end() || !rank.state.empty() || passed.count() <= 0) return {};
  const Tally is = total(rank.tallies), had = total(was->tallies);
  if (is.calls < had.calls || is.bytes < had.bytes) return {};
  return Rates{static_cast<double>(is.calls - had.calls) / passed.count(),
               static_cast<double>(is.bytes - had.bytes) / passed.count(),
               std::clamp((is.seconds - had.seconds) / passed.count(), 0.0, 1.0)};
}

std::vector<std::string> cells(const Tally& tally) {
  return {fmt::to_string(tally.calls), print_bytes(static_cast<double>(tally.bytes)),
          tally.seconds > 0 ? print_seconds(tally.seconds) : "", fmt::to_string(tally.waits),
          fmt::to_string(tally.faults)};
}

std::vector<Column> tally_columns() {
  return {{"calls", Align::right},
          {"bytes", Align::right},
          {"in calls", Align::right},
          {"waits", Align::right},
          {"faults", Align::right}};
}

nlohmann::ordered_json json_of(const Tally& tally) {
  return {{"calls", tally.calls},
          {"bytes", tally.bytes},
          {"seconds", tally.seconds},
          {"waits", tally.waits},
          {"faults", tally.faults}};
}

}  // namespace

ActivitySnapshot snapshot_of(const std::vector<transport::RankReport>& patients,
                             std::chrono::steady_clock::time_point taken) {
  ActivitySnapshot picture{taken, {}};
  for (const transport::RankReport& patient : patients) {
    RankActivity rank{
        .process = patient.process, .rank = patient.rank, .ranks = patient.ranks, .state = patient.state};
    if (auto tallies = comm::parse_tallies(patient.figures); tallies.ok())
      rank.tallies = *tallies;
    else if (rank.state.empty())
      rank.state = "without a communicator";
    picture.ranks.push_back(std::move(rank));
  }
  return picture;
}

std::string print_text(const ActivitySnapshot& now, const std::optional<ActivitySnapshot>& before,
                       std::size_t width) {
  if (now.ranks.empty()) return "no rank of a job runs on this machine\n";
  std::vector<Column> columns = {{"rank", Align::right}, {"process", Align::right}};
  for (Column& column : tally_columns()) columns.push_back(std::move(column));
  for (const char* title : {"calls/s", "rate", "busy"}) columns.push_back({title, Align::right});
  columns.push_back({"state", Align::left, Fit::cut});
  Table ranks(columns);
  comm::Tallies all = {};
  for (const RankActivity& rank : now.ranks) {
    std::vector<std::string> row = {rank.rank < 0 ? "" : fmt::to_string(rank.rank),
                                    fmt::to_string(rank.process)};
    if (rank.state.empty()) {
      for (std::string& cell : cells(total(rank.tallies))) row.push_back(std::move(cell));
      all += rank.tallies;
    }
    if (const auto rates = rates_of(rank, now, before)) {
      row.push_back(fmt::format("{:.0f}", rates->calls));
      row.push_back(print_rate(rates->bytes));
      row.push_back(fmt::format("{:.0f}%", 100 * rates->busy));
    }
    row.resize(columns.size());
    row.back() = rank.state;
    ranks.add(std::move(row));
  }
  columns = tally_columns();
  columns.insert(columns.begin(), {"collective"});
  Table kinds(columns);
  for (std::size_t kind = 0; kind < comm::kKinds; ++kind) {
    if (all[kind].calls + all[kind].faults == 0) continue;
    std::vector<std::string> row = cells(all[kind]);
    row.insert(row.begin(), std::string(kind_name(kind)));
    kinds.add(std::move(row));
  }
  return ranks.print(width) + (kinds.empty() ? "" : "\n" + kinds.print(width));
}

std::string print_json(const ActivitySnapshot& now, const std::optional<ActivitySnapshot>& before) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankActivity& rank : now.ranks) {
    nlohmann::ordered_json row = {{"process", rank.process}};
    if (rank.rank >= 0) row.update({{"rank", rank.rank}, {"ranks", rank.ranks}});
    if (!rank.state.empty()) {
      row["state"] = rank.state;
      ranks.push_back(std::move(row));
      continue;
    }
    row.update(json_of(total(rank.tallies)));
    if (const auto rates = rates_of(rank, now, before))
      row.update(
          {{"calls_per_second", rates->calls}, {"bytes_per_second", rates->bytes}, {"busy", rates->busy}});
    nlohmann::ordered_json collectives = nlohmann::ordered_json::object();
    for (std::size_t kind = 0; kind < comm::kKinds; ++kind)
      if (rank.tallies[kind].calls + rank.tallies[kind].faults != 0)
        collectives[std::string(kind_name(kind))] = json_of(rank.tallies[kind]);
    row["collectives"] = std::move(collectives);
    ranks.push_back(std::move(row));
  }
  return nlohmann::ordered_json{{"ranks", std::move(ranks)}}.dump() + "\n";
}

}  // namespace weft::explain
