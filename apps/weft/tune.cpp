#include "tune.h"

#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "subcommands.h"
#include "weft/app/command/tune.h"

namespace weft {
namespace {

void add_options(CLI::App& app, command::Tune& tune) {
  app.add_option("--ranks", tune.ranks)->delimiter(',')->allow_extra_args(false);
  app.add_option("--transport", tune.transports)->delimiter(',')->allow_extra_args(false);
  app.add_option("--collectives", tune.collectives)->delimiter(',')->allow_extra_args(false);
  app.add_option("--sizes", tune.sizes);
  app.add_option("--seconds", tune.seconds)->check(CLI::Range(1, 86'400));
  app.add_option("--statistics", tune.statistics);
  app.add_flag("--quick", tune.quick);
  app.add_flag("--check", tune.check);
  add_format(&app, tune.format);
}

}  // namespace

Result<session::Reply> run_tune(int argc, char** argv) {
  command::Tune tune;
  tune.on_note = [](std::string_view text) { fmt::print(stderr, "{}\n", text); };
  CLI::App app;
  add_options(app, tune);
  return run_command(
      app, [&] { return command::run(tune); }, "tune", argc, argv);
}

}  // namespace weft
