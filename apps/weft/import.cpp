#include "import.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "command.h"
#include "subcommands.h"
#include "weft/app/command/import.h"

namespace weft {
namespace {}  // namespace

Result<session::Reply> run_import(int argc, char** argv) {
  command::Import import_model;
  CLI::App app;
  app.add_option("FILE", import_model.file)->required();
  app.add_option("--name", import_model.name);
  app.add_option("-o", import_model.to);
  app.add_option("--weights", import_model.weights);
  app.add_flag("--plain-rotary", import_model.plain_rotary);
  add_format(&app, import_model.format);
  return run_command(
      app, [&] { return command::run(import_model); }, "import", argc, argv);
}

}  // namespace weft
