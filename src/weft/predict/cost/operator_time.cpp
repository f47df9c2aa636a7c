#include "weft/predict/cost/operator_time.h"

#include <map>
#include <numeric>
#include <variant>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/base/machine.h"
#include "weft/base/median.h"
#include "weft/plan/graph/dtype.h"
#include "weft/predict/cost/unit_seconds.h"

namespace weft::cost {
namespace {

using program::Place;

constexpr std::size_t kLongestKey = 200;  // the database's limit, less room for the concurrency

template <class... Arguments>
void add(std::string& text, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  text += fmt::format(format, std::forward<Arguments>(arguments)...);
}

// Sizes, and the memory order if it is not row-major.
void add_place(std::string& text, const Place& place) {
  add(text, " {}", name(place.dtype));
  for (std::size_t i = 0; i < place.axes.size(); ++i)
    add(text, "{}{}", i == 0 ? "[" : "x", place.axes[i].size);
  if (!place.axes.empty()) text += ']';
  if (is_plain(place)) return;
  for (std::size_t i = 0; i < place.axes.size(); ++i)
    add(text, "{}{}", i == 0 ? "/" : ",", place.axes[i].stride);
}

class KeyOf {
 public:
  KeyOf(const program::Program& program, const program::Unit& unit) : program_(program), unit_(unit) {}

  std::string operator()(const program::MatrixProduct& product) const {
    std::string text = fmt::format(
        "product {} {}x{}x{} {}{}", name(unit_.reads.empty() ? plan::DType::f32 : unit_.reads[0].dtype),
        product.m, product.n, product.k, product.a.transposed ? 't' : 'n', product.b.transposed ? 't' : 'n');
    for (const program::ProductLoop& loop : product.outer) add(text, " outer={}", loop.size);
    for (const program::ProductLoop& loop : product.summed) add(text, " summed={}", loop.size);
    return text;
  }
  std::string operator()(const program::RowLoop& loop) const {
    std::string text = fmt::format("rows {}x{}", loop.rows(), loop.length);
    for (const program::RowOperand& operand : loop.operands)
      add(text, " {}{}", name(operand.place.dtype), operand.along == 0 ? "." : operand.along == 1 ? "" : "/");
    for (const program::RowInstruction& instruction : loop.code)
      add(text, " {}", instruction.op != nullptr ? instruction.op->name() : name(instruction.step));
    return text;
  }
  std::string operator()(const program::OperatorCall& call) const {
    std::string text(program_.graph->node(call.node).op->name());
    for (const Place& place : call.operands) add_place(text, place);
    text += " to";
    for (const Place& place : call.results) add_place(text, place);
    return text;
  }
  // Tensors of any shapes: only the number of elements matters.
  std::string operator()(const program::Updates& updates) const {
    const program::OperatorCall& first = updates.calls.front();
    std::int64_t elements = 0;
    for (const program::OperatorCall& call : updates.calls) elements += call.results.front().elements();
    std::string text = fmt::format("updates {} {} of {}", program_.graph->node(first.node).op->name(),
                                   updates.calls.size(), elements);
    for (const Place& place : first.operands) add(text, " {}", name(place.dtype));
    text += " to";
    for (const Place& place : first.results) add(text, " {}", name(place.dtype));
    return text;
  }
  std::string operator()(const program::Copy& copy) const {
    std::string text = "copy";
    add_place(text, copy.from);
    text += " to";
    add_place(text, copy.to);
    return text;
  }
  std::string operator()(const program::Combine& combine) const {
    return fmt::format("combine {} of {}", combine.chunks, combine.elements);
  }
  std::string operator()(const program::Exchange&) const { return {}; }

 private:
  const program::Program& program_;
  const program::Unit& unit_;
};

}  // namespace

std::string unit_key(const program::Program& program, const program::Unit& unit,
                     const Concurrency& concurrency) {
  std::string key = std::visit(KeyOf(program, unit), unit.kernel);
  if (key.empty()) return key;
  if (key.size() > kLongestKey) {
    const std::string hash = Hasher().text(key).digest().hex();
    key.resize(kLongestKey - hash.size() - 1);
    key += ' ' + hash;
  }
  if (concurrency.ranks > 1) add(key, " ranks={}", concurrency.ranks);
  if (concurrency.workers > 1) add(key, " workers={}", concurrency.workers);
  return key;
}

bool is_oversubscribed(const Concurrency& concurrency) {
  return concurrency.ranks * concurrency.workers > available_processors();
}

double typical_seconds(std::vector<double> runs, const Concurrency& concurrency) {
  if (!is_oversubscribed(concurrency)) return median(std::move(runs));
  return std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
}

std::string_view unit_kind(const program::Unit& unit) {
  constexpr std::string_view kNames[] = {"product", "rows", "call", "copy", "combine", "exchange"};
  return kNames[unit.kernel.index()];
}

Status learn(Statistics& statistics, const program::Program& program,
             std::span<const program::Timeline> timelines, const Concurrency& concurrency,
             const cluster::Device* device) {
  if (timelines.empty()) return {};
  for (const program::Timeline& timeline : timelines)
    WEFT_CHECK(timeline.tasks.size() == program.tasks.size(), "a timeline of another program");
  std::vector<std::vector<double>> seconds(program.units.size(), std::vector<double>(timelines.size()));
  for (std::size_t t = 0; t < program.tasks.size(); ++t)
    for (std::size_t run = 0; run < timelines.size(); ++run)
      seconds[program.tasks[t].unit][run] += timelines[run].tasks[t].end - timelines[run].tasks[t].begin;
  struct Sum {
    double seconds = 0;
    double units = 0;
  };
  std::map<std::string, Sum> found;
  struct Reached {
    double best = 0, took = 0;
  };
  std::map<std::string_view, Reached> kinds;
  for (std::size_t u = 0; u < program.units.size(); ++u) {
    const std::string key = unit_key(program, program.units[u], concurrency);
    const double took = typical_seconds(seconds[u], concurrency);
    if (key.empty() || !(took > 0)) continue;
    Sum& sum = found[key];
    sum.seconds += took;
    sum.units += 1;
    if (device == nullptr) continue;
    Reached& reached = kinds[unit_kind(program.units[u])];
    reached.best += unit_seconds(program, program.units[u], *device);
    reached.took += took;
  }
  std::vector<OperatorTime> rows;
  const std::int64_t now = seconds_since_1970();
  for (const auto& [key, sum] : found) rows.push_back({key, sum.seconds / sum.units, now});
  WEFT_TRY_STATUS(statistics.add(rows));
  std::vector<Rate> rates;
  for (const auto& [kind, reached] : kinds)
    if (reached.best > 0)
      rates.push_back(
          {fmt::format("reached {}", kind), concurrency.ranks, 0, reached.best / reached.took, now});
  return statistics.add(rates);
}

}  // namespace weft::cost
