// `weft plan reshard`: the transfers that move tensors from one mesh to another.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/plans.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/collectives/reshard/reshard.h"
#include "weft/collectives/reshard/timing.h"
#include "weft/formats/reshard_cases.h"

namespace weft::command {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostCaseBytes = std::int64_t{64} << 20;
constexpr std::size_t kShownMoves = 40;

struct PlannedReshard {
  formats::ReshardCase of;
  reshard::MovePlan plan;
  reshard::Timing timing;

  // Time over its lower bound; 1 if nothing has to move.
  double ratio() const {
    return plan.lower_bound_seconds > 0 ? timing.seconds / plan.lower_bound_seconds : 1;
  }
};

Result<reshard::Links> reshard_links(const std::string& bandwidth) {
  reshard::Links links;
  if (bandwidth.empty()) return links;
  WEFT_TRY(rate, parse_quantity(bandwidth));
  if (rate.dimension != Dimension::bytes_per_second || !(rate.value > 0))
    return user_error(fmt::format("--bandwidth: expected a rate above 0, found {}", bandwidth),
                      "--bandwidth '1.25 GB/s'");
  links.bytes_per_second = rate.value;
  return links;
}

Result<PlannedReshard> plan_reshard(const formats::ReshardCase& one, const reshard::Links& links) {
  const auto plan = [&]() -> Result<PlannedReshard> {
    WEFT_TRY(problem, formats::reshard_of(one));
    WEFT_TRY(moves, reshard::plan_moves(problem, links));
    reshard::Timing timing = reshard::time_moves(problem, moves.moves, links);
    return PlannedReshard{one, std::move(moves), std::move(timing)};
  };
  auto planned = plan();
  if (planned.ok()) return planned;
  Error error = std::move(planned).error();
  error.message = fmt::format("{}: {}", one.name, error.message);
  return error;
}

Result<formats::ReshardCase> find_case(const std::vector<formats::ReshardCase>& cases,
                                       const PlanReshard& request) {
  std::vector<std::string_view> names;
  for (const formats::ReshardCase& one : cases) {
    if (one.name == request.name) return one;
    names.push_back(one.name);
  }
  return user_error(fmt::format("{} has no case {}", request.file, request.name),
                    did_you_mean(request.name, names));
}

// Device numbers span both meshes; the output counts the ranks of each mesh from 0.
std::string rank_name(const formats::ReshardCase& of, std::int32_t device) {
  const std::int32_t sources = of.source.ranks();
  return device < sources ? fmt::format("src {}", device) : fmt::format("dst {}", device - sources);
}

std::string box_text(const reshard::Box& box) {
  std::vector<std::string> shares;
  for (const plan::Share& share : box) shares.push_back(fmt::format("{}:{}", share.begin, share.end()));
  return fmt::format("[{}]", fmt::join(shares, ", "));
}

Json move_json(const PlannedReshard& planned, std::size_t m) {
  const reshard::Move& move = planned.plan.moves[m];
  const std::int32_t sources = planned.of.source.ranks();
  Json begin = Json::array(), end = Json::array();
  for (const plan::Share& share : move.box) begin.push_back(share.begin), end.push_back(share.end());
  return {{"from_mesh", move.from < sources ? "src" : "dst"},
          {"from", move.from < sources ? move.from : move.from - sources},
          {"to", move.to - sources},
          {"begin", std::move(begin)},
          {"end", std::move(end)},
          {"bytes", reshard::elements_of(move.box) * planned.of.element_bytes},
          {"start_seconds", planned.timing.moves[m].start},
          {"end_seconds", planned.timing.moves[m].end}};
}

std::string describe_case(const PlannedReshard& planned, session::Format format) {
  const std::size_t count = planned.plan.moves.size();
  if (format == session::Format::json) {
    Json moves = Json::array();
    for (std::size_t m = 0; m < count; ++m) moves.push_back(move_json(planned, m));
    const Json json = {{"case", planned.of.name},
                       {"seconds", planned.timing.seconds},
                       {"lower_bound_seconds", planned.plan.lower_bound_seconds},
                       {"moves", std::move(moves)}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  using enum explain::Align;
  explain::Table table({{"start", right}, {"end", right}, {"from"}, {"to"}, {"bytes", right}, {"elements"}});
  for (std::size_t m = 0; m < std::min(count, kShownMoves); ++m) {
    const reshard::Move& move = planned.plan.moves[m];
    const reshard::MoveTime& time = planned.timing.moves[m];
    const std::int64_t bytes = reshard::elements_of(move.box) * planned.of.element_bytes;
    table.add({print_seconds(time.start), print_seconds(time.end), rank_name(planned.of, move.from),
               rank_name(planned.of, move.to), print_bytes(static_cast<double>(bytes)), box_text(move.box)});
  }
  std::string said = table.print();
  if (count > kShownMoves) said += fmt::format("... and {} more moves\n", count - kShownMoves);
  return said + fmt::format("{}: {}, {:.3f} of the lower bound {}\n", planned.of.name,
                            print_seconds(planned.timing.seconds), planned.ratio(),
                            print_seconds(planned.plan.lower_bound_seconds));
}

Result<std::string> describe_all(const std::vector<formats::ReshardCase>& cases, const reshard::Links& links,
                                 session::Format format) {
  using enum explain::Align;
  explain::Table table(
      {{"case"}, {"time", right}, {"lower bound", right}, {"ratio", right}, {"moves", right}});
  Json rows = Json::array();
  for (const formats::ReshardCase& one : cases) {
    WEFT_TRY(planned, plan_reshard(one, links));
    table.add({one.name, print_seconds(planned.timing.seconds),
               print_seconds(planned.plan.lower_bound_seconds), fmt::format("{:.3f}", planned.ratio()),
               print_exact(std::ssize(planned.plan.moves))});
    rows.push_back({{"case", one.name},
                    {"seconds", planned.timing.seconds},
                    {"lower_bound_seconds", planned.plan.lower_bound_seconds},
                    {"ratio", planned.ratio()},
                    {"moves", planned.plan.moves.size()}});
  }
  if (format == session::Format::text) return table.print();
  return Json{{"cases", std::move(rows)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> resharded(const PlanReshard& request) {
  WEFT_TRY(links, reshard_links(request.bandwidth));
  WEFT_TRY(text, read_file(request.file, kMostCaseBytes));
  WEFT_TRY(cases, formats::read_reshard_cases(text, request.file));
  if (request.name.empty()) return describe_all(cases, links, request.format);
  WEFT_TRY(one, find_case(cases, request));
  WEFT_TRY(planned, plan_reshard(one, links));
  return describe_case(planned, request.format);
}

}  // namespace

session::Reply run(const PlanReshard& request) { return session::to_reply(resharded(request)); }

}  // namespace weft::command
