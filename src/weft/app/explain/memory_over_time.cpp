#include "weft/app/explain/memory_over_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/table.h"
#include "weft/app/explain/whole.h"
#include "weft/base/units.h"
#include "weft/predict/sim/step/memory_curve.h"

namespace weft::explain {
namespace {

using sim::MemoryByKind;

constexpr std::size_t kDrawnRows = 12;     // rows of the drawing
constexpr std::size_t kMostTensors = 8;    // tensors to name at the peak
constexpr std::size_t kMostMoments = 200;  // points of the curve in JSON

struct Letter {
  char letter;
  double MemoryByKind::*field;
  std::string_view name;
};
// Stacked from the bottom: what lives throughout the step comes first.
constexpr Letter kLetters[] = {
    {'P', &MemoryByKind::parameters, "parameters"}, {'O', &MemoryByKind::optimizer, "optimizer"},
    {'I', &MemoryByKind::inputs, "inputs"},         {'A', &MemoryByKind::activations, "activations"},
    {'G', &MemoryByKind::gradients, "gradients"},   {'B', &MemoryByKind::scratch, "buffers"}};

std::uint32_t fullest(const std::vector<MemoryByKind>& units) {
  const auto most = std::ranges::max_element(units, {}, [](const MemoryByKind& one) { return one.total(); });
  return static_cast<std::uint32_t>(most - units.begin());
}

std::string_view phase_of(const program::Program& program, std::uint32_t unit) {
  for (std::uint32_t u = unit; u < program.units.size(); ++u)
    if (!program.units[u].nodes.empty())
      return plan::name(program.graph->phase(program.units[u].nodes.front()));
  return plan::name(plan::Phase::update);
}

// A buffer's contents as text: "block.3.scores".
std::string buffer_name(const program::Program& program, const program::Buffer& buffer) {
  if (!buffer.name.empty()) return buffer.name;
  if (!buffer.value.valid()) return "copies and partial sums";
  const plan::Node& node = program.graph->node(program.graph->value(buffer.value).producer);
  std::string path = program.graph->path(node.scope, node.label);
  return path.empty() ? std::string(node.op->name()) : fmt::format("{} ({})", path, node.op->name());
}

std::string moment_of(const program::Program& program, std::uint32_t unit) {
  const program::Unit& at = program.units[unit];
  std::string what = describe(program, at);
  for (const plan::NodeId id : at.nodes) {
    const plan::Node& node = program.graph->node(id);
    if (const std::string path = program.graph->path(node.scope, node.label); !path.empty())
      return fmt::format("{} of {}, unit {} of {}, in {}", what, path, unit + 1, program.units.size(),
                         phase_of(program, unit));
  }
  return fmt::format("{}, unit {} of {}, in {}", what, unit + 1, program.units.size(),
                     phase_of(program, unit));
}

// The unit with the most memory in each column.
std::vector<MemoryByKind> fullest_columns(const std::vector<MemoryByKind>& units, std::size_t columns) {
  std::vector<MemoryByKind> made(std::min(columns, units.size()));
  for (std::size_t u = 0; u < units.size(); ++u) {
    MemoryByKind& column = made[u * made.size() / units.size()];
    if (units[u].total() > column.total()) column = units[u];
  }
  return made;
}

std::string drawing(const program::Program& program, const std::vector<MemoryByKind>& units,
                    std::size_t width) {
  constexpr std::size_t kMargin = 12;
  const std::vector<MemoryByKind> columns =
      fullest_columns(units, std::max<std::size_t>(width, 40) - kMargin);
  const double most = units[fullest(units)].total();
  std::vector<std::string> rows(kDrawnRows, std::string(columns.size(), ' '));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    double below = 0;
    for (const Letter& letter : kLetters) {
      const double top = below + columns[c].*letter.field;
      for (std::size_t r = 0; r < kDrawnRows; ++r) {
        const double middle = (static_cast<double>(r) + 0.5) / kDrawnRows * most;
        if (below <= middle && middle < top) rows[r][c] = letter.letter;
      }
      below = top;
    }
  }
  std::string text;
  for (std::size_t r = kDrawnRows; r-- > 0;) {
    const bool marked = r == kDrawnRows - 1 || r == kDrawnRows / 2;
    const double bytes = r == kDrawnRows - 1 ? most : most / 2;
    std::string row = rows[r];
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("{:>{}}|{}\n", marked ? print_bytes(bytes) + " " : "", kMargin - 2, row);
  }
  // Updates run as early as possible; the update phase is drawn after the last backward unit.
  std::uint32_t last_backward = 0;
  for (std::uint32_t u = 0; u < units.size(); ++u)
    if (phase_of(program, u) == plan::name(plan::Phase::backward)) last_backward = u;
  std::string phases(columns.size(), '-');
  std::string_view before;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto unit = static_cast<std::uint32_t>((c * units.size() + columns.size() - 1) / columns.size());
    std::string_view phase = phase_of(program, unit);
    if (phase == plan::name(plan::Phase::update) && unit < last_backward) phase = before;
    if (phase == before) continue;
    before = phase;
    for (std::size_t i = 0; i <= phase.size() && c + i < phases.size(); ++i)
      phases[c + i] = i == 0 ? '+' : phase[i - 1];
  }
  text += fmt::format("{:>{}}{}\n", "", kMargin - 1, phases);
  std::string letters;
  for (const Letter& letter : kLetters) {
    const bool any =
        std::ranges::any_of(columns, [&](const MemoryByKind& one) { return one.*letter.field > 0; });
    if (any) letters += fmt::format("{}{} {}", letters.empty() ? "" : ", ", letter.letter, letter.name);
  }
  return text + wrap(fmt::format("{:>{}}{}", "", kMargin - 1, letters), width, kMargin - 1);
}

std::string_view people_word(std::string_view kind) { return kind == "scratch" ? "buffers" : kind; }

}  // namespace

std::string print_text(const MemoryExplanation& explanation) {
  const program::Program& program = *explanation.program;
  const std::vector<MemoryByKind> units = sim::memory_by_unit(program);
  std::string text = wrap(explanation.headline, explanation.width);
  if (!explanation.plan.empty()) text += wrap(explanation.plan, explanation.width);
  if (units.empty()) return text + "the plan computes nothing\n";
  const std::uint32_t peak = fullest(units);
  const std::string of =
      explanation.plan.empty() ? "" : fmt::format(" of rank {}, the fullest", explanation.rank);
  text += wrap(fmt::format("memory{}: {} packed{}, {} alive at once", of, print_bytes(explanation.bytes),
                           explanation.limit > 0 ? fmt::format(" of {}", print_bytes(explanation.limit)) : "",
                           print_bytes(units[peak].total())),
               explanation.width);
  text += "\n" + drawing(program, units, explanation.width);
  text += "\n" + wrap(fmt::format("the peak: {}", moment_of(program, peak)), explanation.width);
  Table table({{"alive then"}, {"kind"}, {"bytes", Align::right}, {"share", Align::right}});
  const std::vector<sim::LiveBuffer> alive = sim::live_buffers(program, peak);
  for (std::size_t i = 0; i < std::min(alive.size(), kMostTensors); ++i) {
    const auto bytes = static_cast<double>(alive[i].buffer->bytes);
    table.add({buffer_name(program, *alive[i].buffer), std::string(people_word(alive[i].kind)),
               print_bytes(bytes), fmt::format("{:.0f} %", 100 * bytes / units[peak].total())});
  }
  text += table.print(explanation.width);
  if (alive.size() > kMostTensors) text += fmt::format("and {} more\n", alive.size() - kMostTensors);
  if (explanation.tried.empty()) return text;
  Table tried({{"tried"}, {"memory", Align::right}, {"of it", Align::right}, {""}});
  for (const TriedForMemory& one : explanation.tried)
    tried.add({one.what, one.why_not.empty() ? print_bytes(one.bytes) : "-",
               one.why_not.empty() ? fmt::format("{:.0f} %", 100 * one.bytes / explanation.bytes) : "",
               one.why_not.empty() && one.bytes >= explanation.bytes ? "lowers nothing" : one.why_not});
  return text + "\n" + tried.print(explanation.width);
}

std::string print_json(const MemoryExplanation& explanation) {
  const program::Program& program = *explanation.program;
  const std::vector<MemoryByKind> units = sim::memory_by_unit(program);
  nlohmann::ordered_json json = {{"explained", explanation.headline},
                                 {"plan", explanation.plan},
                                 {"rank", explanation.rank},
                                 {"bytes", whole(explanation.bytes)},
                                 {"limit_bytes", whole(explanation.limit)}};
  if (units.empty()) return json.dump() + "\n";
  const std::uint32_t peak = fullest(units);
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  const std::size_t step = (units.size() + kMostMoments - 1) / kMostMoments;
  for (std::size_t u = 0; u < units.size(); u += step) {
    nlohmann::ordered_json moment = {{"unit", u},
                                     {"phase", phase_of(program, static_cast<std::uint32_t>(u))}};
    for (const Letter& letter : kLetters) moment[std::string(letter.name)] = whole(units[u].*letter.field);
    curve.push_back(std::move(moment));
  }
  json["units"] = units.size();
  json["curve"] = std::move(curve);
  nlohmann::ordered_json& at = json["peak"] = {{"unit", peak},
                                               {"phase", phase_of(program, peak)},
                                               {"moment", moment_of(program, peak)},
                                               {"alive_bytes", whole(units[peak].total())}};
  at["tensors"] = nlohmann::ordered_json::array();
  const std::vector<sim::LiveBuffer> alive = sim::live_buffers(program, peak);
  for (std::size_t i = 0; i < std::min(alive.size(), kMostTensors); ++i)
    at["tensors"].push_back({{"name", buffer_name(program, *alive[i].buffer)},
                             {"kind", people_word(alive[i].kind)},
                             {"bytes", alive[i].buffer->bytes}});
  json["tried"] = nlohmann::ordered_json::array();
  for (const TriedForMemory& one : explanation.tried) {
    json["tried"].push_back({{"what", one.what}});
    if (one.why_not.empty())
      json["tried"].back()["bytes"] = whole(one.bytes);
    else
      json["tried"].back()["why_not"] = one.why_not;
  }
  return json.dump() + "\n";
}

}  // namespace weft::explain
