#include "validate.h"

#include <string>

#include <CLI/CLI.hpp>

#include "command.h"
#include "interrupt.h"
#include "output.h"
#include "subcommands.h"
#include "weft/app/command/validate.h"

namespace weft {
Result<session::Reply> run_validate(int argc, char** argv) {
  command::Validate validate;
  std::string half = "unseen";
  CLI::App app;
  app.add_option("FILES", validate.files)->required();
  app.add_option("--stack", validate.stack);
  app.add_option("--half", half)->check(CLI::IsMember({"unseen", "fitted", "both"}));
  app.add_option("--only", validate.only);
  app.add_option("--most-rows", validate.most_rows);
  app.add_flag("--rows", validate.rows);
  app.add_flag("--anchor", validate.anchor);
  add_format(&app, validate.format);
  validate.width = output_width();
  validate.interrupted = interrupt::requested;
  return run_command(
      app,
      [&] {
        validate.half = half == "both"     ? command::Half::both
                        : half == "fitted" ? command::Half::fitted
                                           : command::Half::unseen;
        return command::run(validate);
      },
      "validate", argc, argv);
}

}  // namespace weft
