#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/command/memory.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/formats/tiling_json.h"
#include "weft/program/memory/tiling_plan.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostTilingBytes = std::int64_t{64} << 20;

template <class Read>
auto read_tiling(const std::string& path, Read read) -> decltype(read(std::string_view())) {
  WEFT_TRY(text, read_file(path, kMostTilingBytes));
  auto found = read(text);
  if (found.ok()) return found;
  Error error = found.error();
  error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

Result<memory::TilingPlan> plan_or_price(const MemoryTile& request, const memory::TilingProblem& problem) {
  if (request.schedule.empty()) return memory::plan_tiling(problem);
  memory::TilingPlan plan;
  WEFT_TRY(steps, read_tiling(request.schedule, formats::read_tiling_schedule));
  plan.steps = std::move(steps);
  auto price = memory::price(problem, plan.steps);
  if (!price.ok()) {
    Error error = price.error();
    error.message = fmt::format("{}: {}", request.schedule, error.message);
    return error;
  }
  plan.price = std::move(*price);
  return plan;
}

Result<std::string> answer(const MemoryTile& request) {
  WEFT_TRY(problem, read_tiling(request.file, formats::read_tiling_problem));
  const auto begin = std::chrono::steady_clock::now();
  WEFT_TRY(plan, plan_or_price(request, problem));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (request.format == session::Format::json) {
    formats::Json json = formats::tiling_schedule_json(plan.steps, plan.price);
    json["seconds"] = seconds;
    return json.dump() + "\n";
  }
  std::string shown = fmt::format("{} steps, latency {:.6g}\n", plan.steps.size(), plan.price.total);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const memory::TilingStep& step = plan.steps[s];
    shown +=
        fmt::format("{:>14.1f}  operators {} in tiles [{}, {}, {}]{}{}, {} elements held\n",
                    plan.price.latencies[s], fmt::join(step.operators, " "), step.width, step.height,
                    step.depth, step.order ? ", back and forth" : "",
                    step.retained.empty() ? "" : fmt::format(", retains {}", fmt::join(step.retained, " ")),
                    print_exact(plan.price.elements[s]));
  }
  return shown;
}

}  // namespace

session::Reply run(const MemoryTile& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
