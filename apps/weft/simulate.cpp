#include "simulate.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "command.h"
#include "subcommands.h"
#include "weft/app/command/simulate.h"

namespace weft {
namespace {}  // namespace

Result<session::Reply> run_simulate(int argc, char** argv) {
  command::Simulate simulate;
  CLI::App app;
  app.add_option("TRACES", simulate.traces)->required();
  app.add_option("--network", simulate.network)->required();
  app.add_option("--system", simulate.system);
  app.add_option("--timeline", simulate.timeline);
  app.add_option("--wires", simulate.wires);
  app.add_flag("--exact", simulate.exact);
  add_format(&app, simulate.format);
  return run_command(
      app, [&] { return command::run(simulate); }, "simulate", argc, argv);
}

}  // namespace weft
