#include "weft/app/explain/bench_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

// Rounds like nccl-tests, so that noise is not printed as digits.
std::string print_figure(double value) {
  if (value <= 0) return "-";
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string_view reduction(const measure::BenchRow& row) {
  return collective::reduces(row.kind) ? "sum" : "none";
}

int root(const measure::BenchRow& row) { return row.kind == collective::Kind::broadcast ? 0 : -1; }

double algorithm_bandwidth(const measure::BenchRow& row) {
  return static_cast<double>(row.bytes) / row.seconds;
}

double bus_bandwidth(const measure::BenchRow& row) {
  return algorithm_bandwidth(row) * collective::bus_factor(row.kind, row.ranks);
}

std::vector<std::string> cells(const measure::BenchRow& row, bool begins) {
  std::vector<std::string> line = {begins ? std::to_string(row.bytes) : "",
                                   begins ? std::to_string(row.count) : "",
                                   begins ? row.type : "",
                                   begins ? std::string(reduction(row)) : "",
                                   begins ? std::to_string(root(row)) : "",
                                   row.side()};
  if (!row.measured()) {
    line.push_back("-");
    return line;
  }
  for (const std::string& cell :
       {print_figure(row.seconds * 1e6), fmt::format("{:.2f}", algorithm_bandwidth(row) / 1e9),
        fmt::format("{:.2f}", bus_bandwidth(row) / 1e9), std::to_string(row.wrong),
        print_figure(row.processor_seconds * 1e6), print_figure(row.ratio_to_best_peer),
        print_figure(row.ratio_to_limit)})
    line.push_back(cell);
  return line;
}

// "mpich shm at 1 KiB and 3 more sizes: MPI has no sums of bf16", one line per reason.
std::string failures(std::span<const measure::BenchRow> rows) {
  std::string out;
  const auto same = [](const measure::BenchRow& one, const measure::BenchRow& other) {
    return one.side() == other.side() && one.failure == other.failure;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto is_same = [&](const measure::BenchRow& other) { return same(rows[i], other); };
    if (rows[i].failure.empty() || std::ranges::any_of(rows.first(i), is_same)) continue;
    const auto more = std::ranges::count_if(rows.subspan(i + 1), is_same);
    out += fmt::format("{} at {}", rows[i].side(), print_bytes(static_cast<double>(rows[i].bytes)));
    if (more > 0) out += fmt::format(" and {} more size{}", more, more == 1 ? "" : "s");
    out += fmt::format(": {}\n", rows[i].failure);
  }
  return out;
}

// Null if unknown, because 0 would be read as a ratio.
Json known(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json to_json(const measure::BenchRow& row) {
  Json json;
  json["collective"] = collective::name(row.kind);
  json["ranks"] = row.ranks;
  json["transport"] = row.transport;
  json["bytes"] = row.bytes;
  json["peer"] = row.peer;
  json["setting"] = row.setting;
  const bool has_times = row.measured();
  json["microseconds"] = has_times ? known(row.seconds * 1e6) : Json(nullptr);
  json["ratio_to_best_peer"] = known(row.ratio_to_best_peer);
  json["best_peer"] = row.best_peer;
  json["ratio_to_limit"] = known(row.ratio_to_limit);
  json["limit_microseconds"] = known(row.limit * 1e6);
  json["cpu_microseconds"] = known(row.processor_seconds * 1e6);
  json["fastest_microseconds"] = known(row.fastest * 1e6);
  json["slowest_microseconds"] = known(row.slowest * 1e6);
  json["algorithm_bandwidth"] = has_times ? known(algorithm_bandwidth(row)) : Json(nullptr);
  json["bus_bandwidth"] = has_times ? known(bus_bandwidth(row)) : Json(nullptr);
  json["wrong"] = row.wrong;
  json["count"] = row.count;
  json["type"] = row.type;
  json["redop"] = reduction(row);
  json["root"] = root(row);
  json["in_place"] = row.in_place;
  json["repeats"] = row.repeats;
  if (!row.failure.empty()) json["failure"] = row.failure;
  return json;
}

Json to_json(const measure::BenchSummary& summary) {
  return {{"collective", collective::name(summary.kind)},
          {"ranks", summary.ranks},
          {"transport", summary.transport},
          {"side", summary.side},
          {"sizes", summary.sizes},
          {"geometric_mean", known(summary.mean)},
          {"least", known(summary.worst)},
          {"least_bytes", summary.worst_bytes},
          {"least_peer", summary.worst_peer},
          {"geometric_mean_to_limit", known(summary.limit_mean)}};
}

}  // namespace

std::string bench_table(std::span<const measure::BenchRow> rows) {
  if (rows.empty()) return {};
  const measure::BenchRow& first = rows.front();
  std::string out = fmt::format("{}, {} ranks, {}{}\n\n", collective::name(first.kind), first.ranks,
                                first.transport, first.in_place ? ", in place" : "");
  constexpr Align kRight = Align::right;
  Table table({{"size", kRight},
               {"count", kRight},
               {"type", kRight},
               {"redop", kRight},
               {"root", kRight},
               {"side"},
               {"time", kRight},
               {"algbw", kRight},
               {"busbw", kRight},
               {"#wrong", kRight},
               {"cpu", kRight},
               {"ratio", kRight},
               {"limit", kRight}});
  table.add({"(B)", "(elements)", "", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "", ""});
  std::int64_t bytes = -1;
  for (const measure::BenchRow& row : rows) {
    table.add(cells(row, row.bytes != bytes));
    bytes = row.bytes;
  }
  out += table.print() + "\n" + failures(rows);
  return out;
}

std::string bench_summary(std::span<const measure::BenchRow> rows) {
  std::string out;
  for (const measure::BenchSummary& one : measure::summarize(rows)) {
    out +=
        fmt::format("{}, {} ranks, {}, {}: ", collective::name(one.kind), one.ranks, one.transport, one.side);
    if (one.mean > 0)
      out += fmt::format(
          "{:.2f} times the best peer in the geometric mean over {} size{}, least {:.2f} at {} ({})",
          one.mean, one.sizes, one.sizes == 1 ? "" : "s", one.worst,
          print_bytes(static_cast<double>(one.worst_bytes)), one.worst_peer);
    else
      out += "no other library to compare with";
    if (one.limit_mean > 0) out += fmt::format("; {:.2f} times the machine's limit", one.limit_mean);
    out += "\n";
  }
  return out;
}

std::string bench_machine(const BenchFacts& facts) {
  std::string out = fmt::format("{} core{}", facts.cores, facts.cores == 1 ? "" : "s");
  if (!facts.copies.empty()) {
    const BenchCopies& largest = facts.copies.back();
    out += fmt::format("; memcpy of {} {} by one thread, {} by all",
                       print_bytes(static_cast<double>(largest.bytes)), print_rate(largest.one),
                       print_rate(largest.all));
  }
  out += fmt::format("; core-to-core latency {}", print_seconds(facts.shm_latency));
  if (facts.tcp_rate > 0)
    out += fmt::format("; TCP latency {}, {} per stream", print_seconds(facts.tcp_latency),
                       print_rate(facts.tcp_rate));
  out += fmt::format("; {:.1f} % steal time", facts.stolen * 100);
  return out + "\n";
}

std::string bench_json(std::span<const measure::BenchRow> rows, const BenchFacts& facts) {
  Json json;
  json["machine"] = {{"cores", facts.cores},
                     {"stolen", facts.stolen},
                     {"shm_latency_microseconds", known(facts.shm_latency * 1e6)},
                     {"tcp_latency_microseconds", known(facts.tcp_latency * 1e6)},
                     {"tcp_bytes_per_second", known(facts.tcp_rate)},
                     {"memcpy", Json::array()}};
  for (const BenchCopies& copies : facts.copies)
    json["machine"]["memcpy"].push_back({{"bytes", copies.bytes},
                                         {"one_thread_bytes_per_second", copies.one},
                                         {"all_cores_bytes_per_second", copies.all}});
  json["versions"] = Json::object();
  for (const auto& [side, version] : facts.versions) json["versions"][side] = version;
  json["left_out"] = facts.left_out;
  json["rows"] = Json::array();
  for (const measure::BenchRow& row : rows) json["rows"].push_back(to_json(row));
  json["summary"] = Json::array();
  for (const measure::BenchSummary& summary : measure::summarize(rows))
    json["summary"].push_back(to_json(summary));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
