#include "weft/app/command/plan_with_layouts.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::command {
namespace {

constexpr std::int64_t kLargestPlansFile = std::int64_t{256} << 20;

}  // namespace

Result<std::string> given_text(const std::string& what) {
  std::error_code unused;
  if (std::filesystem::exists(what, unused)) return read_file(what, kLargestPlansFile);
  if (what.find(' ') != std::string::npos) return what;
  return user_error(fmt::format("not a file and not a statement: {}", what),
                    "give a plan file, a script, or a statement: \"TRAIN char_gpt ON LOCAL 4\"");
}

Result<plan::Mesh> mesh_of(const std::string& given, const planner::PlanHead& head) {
  const std::string& text = given.empty() ? head.mesh : given;
  if (text.empty())
    return user_error("the plan does not state its mesh",
                      "add --mesh 'node=2, gpu=4', or a first line # mesh: node=2, gpu=4");
  return plan::read_mesh(text);
}

Result<PlanWithLayouts> read_plan_with_layouts(const std::string& file, const std::string& given_mesh) {
  WEFT_TRY(text, read_file(file, kLargestPlansFile));
  if (!planner::is_plan_text(text))
    return user_error(fmt::format("not a plan: {}", file),
                      "weft -c \"EXPLAIN (FORMAT plan) TRAIN ..\" prints one");
  const planner::PlanHead head = planner::read_head(text);
  WEFT_TRY(mesh, mesh_of(given_mesh, head));
  auto graph = plan::read(text, ops::all());
  if (!graph.ok()) return session::in_text(text, std::move(graph).error());
  WEFT_TRY(layouts, spmd::infer_layouts(*graph, mesh));
  return PlanWithLayouts{std::move(*graph), std::move(mesh), std::move(layouts),
                         planner::is_cut_in_time(head)};
}

}  // namespace weft::command
