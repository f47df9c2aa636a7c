#include "plan.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/app/command/plans.h"

namespace weft {
namespace {

constexpr std::string_view kPlanUsage = R"(weft plan: plans for several ranks

usage:
  weft plan prove FILE|STATEMENT [...] [--model STATEMENT|FILE] [--mesh MESH] [--format text|json]
  weft plan price FILE [--cluster CLUSTER|FILE|'LOCAL n'] [--mesh MESH] [--format text|json]
  weft plan show FILE [--mesh MESH] [--format text|json]
  weft plan reshard CASES [--case NAME] [--bandwidth RATE] [--format text|json]

FILE is a script, or a plan's text as EXPLAIN (FORMAT plan) prints it; CASES is JSON. `weft help plan` explains
each.
)";

CLI::App* add_prove(CLI::App& app, command::PlanProve& prove) {
  CLI::App* command = app.add_subcommand("prove");
  command->add_option("FILE", prove.what)->required();
  command->add_option("--model", prove.model);
  command->add_option("--mesh", prove.mesh);
  add_format(command, prove.format);
  return command;
}

CLI::App* add_price(CLI::App& app, command::PlanEstimate& price) {
  CLI::App* command = app.add_subcommand("price");
  command->add_option("FILE", price.file)->required();
  command->add_option("--cluster", price.cluster);
  command->add_option("--mesh", price.mesh);
  add_format(command, price.format);
  return command;
}

CLI::App* add_show(CLI::App& app, command::PlanShow& show) {
  CLI::App* command = app.add_subcommand("show");
  command->add_option("FILE", show.file)->required();
  command->add_option("--mesh", show.mesh);
  add_format(command, show.format);
  return command;
}

CLI::App* add_reshard(CLI::App& app, command::PlanReshard& reshard) {
  CLI::App* command = app.add_subcommand("reshard");
  command->add_option("CASES", reshard.file)->required();
  command->add_option("--case", reshard.name);
  command->add_option("--bandwidth", reshard.bandwidth);
  add_format(command, reshard.format);
  return command;
}

}  // namespace

Result<session::Reply> run_plan(int argc, char** argv) {
  command::PlanProve prove;
  command::PlanEstimate price;
  command::PlanShow show;
  command::PlanReshard reshard;
  CLI::App app;
  return run_subcommand(app,
                        {{add_prove(app, prove), [&] { return command::run(prove); }},
                         {add_price(app, price), [&] { return command::run(price); }},
                         {add_show(app, show), [&] { return command::run(show); }},
                         {add_reshard(app, reshard), [&] { return command::run(reshard); }}},
                        "plan", kPlanUsage, argc, argv);
}

}  // namespace weft
