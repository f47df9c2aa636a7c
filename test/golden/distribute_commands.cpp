// The command that distributes a plan over a mesh.

#include <algorithm>

#include <fmt/format.h>

#include "commands.h"
#include "weft/language/bind.h"
#include "weft/language/complaint.h"
#include "weft/language/parser.h"
#include "weft/language/shipped.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::golden {
namespace {

// The training plan of the script's last model.
Result<plan::Graph> training_plan_of(std::string_view script) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  WEFT_TRY(parsed, language::parse_and_keep(script));
  language::ModelDefinition model{parsed, nullptr};
  for (const language::syntax::Statement* statement : parsed->script.statements) {
    if (statement->kind == language::syntax::StatementKind::create_model)
      model.statement = &statement->as<language::syntax::CreateModel>();
  }
  if (model.statement == nullptr) return user_error("the script creates no model");
  language::BindOptions options;
  options.mode = language::Mode::train;
  WEFT_TRY(bound, language::bind(catalog, model, options));
  WEFT_TRY(made,
           train::make_training_plan(std::move(bound.graph), {.optimizer = train::Optimizer::momentum}));
  return std::move(made.graph);
}

Result<plan::Graph> read_input(std::string_view text) {
  return text.starts_with("plan") ? plan::read(text, ops::all()) : training_plan_of(text);
}

// One line per node with its layout; `*` marks communication. `moves` lists only communication and
// sources that are not replicated.
std::string listing(const distribute::DistributedPlan& plan, bool moves) {
  std::string text;
  plan::Phase phase = plan::Phase::forward;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    if (node.phase() != phase) text += fmt::format("{}\n", name(node.phase()));
    phase = node.phase();
    const bool communicates = ops::find_communication(node.op()) != nullptr;
    const plan::Layout& layout = plan.layouts[node.result(0).value];
    const bool source = ops::is_source(node.op());
    if (moves && !communicates && !(source && layout != plan::Layout::replicated(plan.mesh))) continue;
    std::string values;
    for (std::size_t k = 0; k < node.result_count(); ++k)
      values += fmt::format("{}%{}", k == 0 ? "" : ", ", node.result(k).value);
    values += fmt::format(" = {}", node.op().name());
    if (source) values += fmt::format(" {}", node.word(0));
    for (std::size_t i = 0; i < node.input_count(); ++i)
      values += fmt::format("{}%{}", i == 0 ? " " : ", ", node.input(i).value);
    const std::string left = fmt::format("{} {} {}", communicates ? "*" : " ", values,
                                         plan::print_indices(node.result_type(0).dims, plan.graph.symbols()));
    const std::string at =
        node.node().label.valid() ? fmt::format("  @{}", node.text(node.node().label)) : "";
    text += fmt::format("{:<48} {}{}\n", left, print(layout, plan.mesh, plan.graph.symbols()),
                        moves && !source ? at : "");
  }
  return text;
}

}  // namespace

std::string distribute_command(const Case& test) {
  const std::size_t end = std::min(test.input.find('\n'), test.input.size());
  const std::string line = test.input.substr(0, end);
  const std::string text = test.input.substr(std::min(end + 1, test.input.size()));
  const auto distribution = distribute::read_distribution(line);
  if (!distribution.ok()) return language::complain(distribution.error(), line);
  const auto input = read_input(text);
  if (!input.ok()) return language::complain(input.error(), text);
  const auto plan =
      distribute::distribute(*input, *distribution, {.smallest_share = test.number("smallest", 1)});
  if (!plan.ok()) return language::complain(plan.error(), line);
  const auto inferred = spmd::infer_layouts(plan->graph, plan->mesh);
  if (!inferred.ok()) return language::complain(inferred.error(), line);
  if (*inferred != plan->layouts) return "error: the layouts are not those that inference finds\n";
  return listing(*plan, test.flags.contains("moves"));
}

}  // namespace weft::golden
