#include "weft/app/command/bench.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/app/explain/bench_plot.h"
#include "weft/app/explain/bench_table.h"
#include "weft/app/session/reply.h"
#include "weft/base/background_load.h"
#include "weft/base/file.h"
#include "weft/base/machine.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/predict/sim/collective/collective_cluster.h"
#include "weft/runtime/measure/bench_batch.h"
#include "weft/runtime/measure/bench_gpu.h"
#include "weft/runtime/measure/bench_machine.h"
#include "weft/runtime/measure/bench_peers.h"
#include "weft/runtime/measure/bench_round.h"

namespace weft::command {
namespace {

using collective::Kind;
using measure::BenchRow;

constexpr std::int32_t kMostBenchRanks = 256;

// The validated request.
struct Order {
  std::vector<Kind> kinds;
  std::vector<std::int64_t> sizes;
  device::ElementType type = device::ElementType::f32;
  measure::BenchBuffers buffers = measure::BenchBuffers::private_memory;
};

Result<Kind> measured_kind(std::string_view word) {
  constexpr Kind kMeasured[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                                Kind::broadcast};
  WEFT_TRY(kind, collective::parse_kind(word));
  if (std::ranges::find(kMeasured, kind) == std::end(kMeasured))
    return user_error(fmt::format("weft cannot measure {}", word),
                      "use all-reduce, reduce-scatter, all-gather, all-to-all or broadcast");
  return kind;
}

template <class Value>
Result<Value> choice(std::string_view what, std::string_view word,
                     std::initializer_list<std::pair<std::string_view, Value>> known) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) {
    if (name == word) return value;
    names.push_back(name);
  }
  const std::string hint = did_you_mean(word, names);
  return user_error(fmt::format("unknown {}: {}", what, word),
                    hint.empty() ? fmt::format("{}", fmt::join(names, ", ")) : hint);
}

Result<Order> check_bench(const Bench& request) {
  Order order;
  if (request.collectives.empty())
    return user_error("expected a collective to measure, found none", "weft bench all-reduce");
  for (const std::string& word : request.collectives) {
    WEFT_TRY(kind, measured_kind(word));
    order.kinds.push_back(kind);
  }
  for (const std::int32_t ranks : request.ranks)
    if (ranks < 2 || ranks > kMostBenchRanks)
      return user_error(fmt::format("expected 2 to {} ranks, found {}", kMostBenchRanks, ranks));
  if (auto known = choice<int>("device", request.device, {{"cpu", 0}, {"gpu", 1}}); !known.ok())
    return std::move(known).error();
  if (request.device == "gpu" && !request.against.empty())
    return user_error("no other library runs several ranks on one GPU: there is nothing to compare with",
                      "without --against");
  for (const std::string& transport : request.transports)
    if (auto known = choice<int>("transport", transport, {{"shm", 0}, {"tcp", 1}}); !known.ok())
      return std::move(known).error();
  WEFT_TRY(buffers, choice<measure::BenchBuffers>("buffers", request.buffers,
                                                  {{"private", measure::BenchBuffers::private_memory},
                                                   {"allocated", measure::BenchBuffers::allocated},
                                                   {"both", measure::BenchBuffers::both}}));
  order.buffers = buffers;
  WEFT_TRY_STATUS(measure::check_peers(request.against));
  const auto type = device::find_element_type(request.type);
  if (!type)
    return user_error(fmt::format("unknown type: {}", request.type),
                      "f64 f32 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64");
  order.type = *type;
  if (request.repeats < 1)
    return user_error(fmt::format("expected at least 1 repeat, found {}", request.repeats));
  WEFT_TRY(sizes, measure::bench_sizes(request.sizes, request.step));
  order.sizes = std::move(sizes);
  if (!request.to.empty() && !request.to.ends_with(".svg") && !request.to.ends_with(".json"))
    return user_error(fmt::format("unknown file format: {}", request.to), "use .svg (a plot) or .json");
  return order;
}

class Benching {
 public:
  Benching(const Bench& request, Order order)
      : request_(request), order_(std::move(order)), machine_(available_processors()) {}

  Result<std::string> answer() {
    facts_.cores = machine_.cores();
    for (const std::int32_t ranks : request_.ranks)
      for (const std::string& transport : request_.transports) WEFT_TRY_STATUS(run_round(ranks, transport));
    if (rows_.empty())
      return environment_error("no library could be started",
                               fmt::format("{}", fmt::join(facts_.left_out, "; ")));
    facts_.stolen = others_.stolen_share();
    look_at_machine();
    const std::string json = explain::bench_json(rows_, facts_);
    if (request_.to.ends_with(".json")) WEFT_TRY_STATUS(write_file_atomically(request_.to, json));
    if (request_.format == session::Format::json) return json;
    say(explain::bench_machine(facts_) + explain::bench_summary(rows_));
    return std::move(text_);
  }

 private:
  void look_at_machine() {
    for (const std::int64_t size : order_.sizes) {
      const auto bytes = static_cast<double>(size), all = bytes * machine_.cores();
      facts_.copies.push_back({size, bytes / machine_.copy_seconds(bytes, 1),
                               all / machine_.copy_seconds(all, machine_.cores())});
    }
    facts_.shm_latency = machine_.shm_latency();
    if (std::ranges::find(request_.transports, "tcp") == request_.transports.end()) return;
    facts_.tcp_latency = machine_.tcp_latency();
    facts_.tcp_rate = machine_.tcp_rate();
  }

  void say(std::string_view text) {
    if (request_.format == session::Format::json) return;
    if (request_.on_output)
      request_.on_output(text);
    else
      text_ += text;
  }

  void leave_out(const std::vector<std::string>& reasons) {
    for (const std::string& reason : reasons) {
      if (std::ranges::find(facts_.left_out, reason) != facts_.left_out.end()) continue;
      facts_.left_out.push_back(reason);
      say(fmt::format("left out: {}\n", reason));
    }
  }

  Status run_round(std::int32_t ranks, const std::string& transport) {
    measure::BenchRound round(
        measure::select_contenders({transport, request_.against, order_.buffers, request_.programs}, ranks),
        ranks);
    leave_out(round.left_out());
    if (round.empty()) return {};
    for (const auto& version : round.versions())
      if (std::ranges::find(facts_.versions, version) == facts_.versions.end())
        facts_.versions.push_back(version);
    for (const Kind kind : order_.kinds) {
      std::vector<BenchRow> block;
      for (const std::int64_t bytes : order_.sizes) {
        std::vector<BenchRow> rows = measure(round, kind, ranks, transport, bytes);
        measure::compare(rows);
        block.insert(block.end(), rows.begin(), rows.end());
      }
      say(explain::bench_table(block) + "\n");
      WEFT_TRY_STATUS(draw(block));
      rows_.insert(rows_.end(), block.begin(), block.end());
    }
    return {};
  }

  std::vector<BenchRow> measure(measure::BenchRound& round, Kind kind, std::int32_t ranks,
                                const std::string& transport, std::int64_t bytes) {
    measure::BenchTurn turn;
    turn.kind = kind;
    turn.bytes = bytes;
    turn.type = order_.type;
    turn.in_place = request_.in_place;
    turn.limit = request_.limit;
    std::vector<BenchRow> rows = round.measure(turn, request_.repeats);
    const double limit = machine_.limit(
        transport, kind, ranks, static_cast<double>(measure::message_bytes(turn, ranks)), request_.in_place);
    for (BenchRow& row : rows) {
      row.transport = transport;
      row.limit = limit;
    }
    return rows;
  }

  // Writes plot.svg, or one file per block such as plot.all_reduce.4.shm.svg.
  Status draw(const std::vector<BenchRow>& block) {
    if (!request_.to.ends_with(".svg")) return {};
    const auto drawing = explain::bench_plot(block);
    if (!drawing.ok()) return {};  // nothing was measured; the table gives the reason
    std::string path = request_.to;
    if (order_.kinds.size() * request_.ranks.size() * request_.transports.size() > 1)
      path.insert(path.size() - 4, fmt::format(".{}.{}.{}", collective::name(block.front().kind),
                                               block.front().ranks, block.front().transport));
    return write_file_atomically(path, *drawing);
  }

  const Bench& request_;
  Order order_;
  measure::BenchMachine machine_;
  BackgroundLoad others_;
  std::vector<BenchRow> rows_;
  explain::BenchFacts facts_;
  std::string text_;
};

Result<std::string> answer_for_gpu(const Bench& request, const Order& order) {
  if (request.to.ends_with(".svg")) return user_error("there is no plot for a GPU", "-o FILE.json");
  std::vector<BenchRow> all;
  std::string text;
  const auto say = [&](const std::string& more) {
    if (request.format == session::Format::json) return;
    request.on_output ? request.on_output(more) : void(text += more);
  };
  for (const std::int32_t ranks : request.ranks)
    for (const Kind kind : order.kinds) {
      std::vector<BenchRow> block;
      for (const std::int64_t bytes : order.sizes) {
        WEFT_TRY(rows,
                 measure::bench_on_gpu({kind, ranks, bytes, order.type, request.in_place, request.repeats}));
        block.insert(block.end(), rows.begin(), rows.end());
      }
      say(explain::bench_table(block) + "\n");
      all.insert(all.end(), block.begin(), block.end());
    }
  const std::string json = explain::bench_json(all, {});
  if (request.to.ends_with(".json")) WEFT_TRY_STATUS(write_file_atomically(request.to, json));
  return request.format == session::Format::json ? json : text;
}

Result<std::string> answer(const Bench& request) {
  WEFT_TRY(order, check_bench(request));
  if (request.device == "gpu") return answer_for_gpu(request, order);
  return Benching(request, std::move(order)).answer();
}

}  // namespace

session::Reply run(const Bench& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
