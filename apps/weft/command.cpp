#include "command.h"

#include <string>

#include <fmt/format.h>

#include "output.h"

namespace weft {

Result<session::Reply> run_command(CLI::App& app, const std::function<session::Reply()>& run,
                                   std::string_view name, int argc, char** argv) {
  bool asked = false;
  app.set_help_flag();
  app.add_flag("-h,--help", asked);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (!asked) return user_error(error.what(), fmt::format("run weft {} --help", name));
  }
  if (asked) return session::help(name, output_width());
  return run();
}

}  // namespace weft
