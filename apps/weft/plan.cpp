#include "plan.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "output.h"
#include "subcommands.h"
#include "weft/app/command/plans.h"

namespace weft {
namespace {

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
  prove.width = screen_width();
  CLI::App app;
  return run_subcommand(app,
                        {{add_prove(app, prove), [&] { return command::run(prove); }},
                         {add_price(app, price), [&] { return command::run(price); }},
                         {add_show(app, show), [&] { return command::run(show); }},
                         {add_reshard(app, reshard), [&] { return command::run(reshard); }}},
                        "plan", argc, argv);
}

}  // namespace weft
