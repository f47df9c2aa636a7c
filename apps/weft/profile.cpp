#include "profile.h"

#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.h"
#include "output.h"
#include "subcommands.h"
#include "weft/app/command/profile.h"
#include "weft/app/command/profile_fit.h"

namespace weft {
namespace {

void add_options(CLI::App& app, command::Profile& profile) {
  app.add_option("--ranks", profile.ranks)->check(CLI::Range(1, 1024));
  app.add_option("--transport", profile.transports)->delimiter(',')->allow_extra_args(false);
  app.add_option("--name", profile.name);
  app.add_option("-o,--output", profile.to);
  app.add_option("--statistics", profile.statistics);
  app.add_flag("--quick", profile.quick);
  app.add_option("--model", profile.model);
  app.add_option("--with", profile.with);
  app.add_option("--device", profile.device);
  add_format(&app, profile.format);
}

}  // namespace

static Result<session::Reply> run_profile_fit(int argc, char** argv) {
  command::ProfileFit fit;
  CLI::App app;
  app.add_option("FILES", fit.files);
  app.add_option("--device", fit.device);
  app.add_option("-o,--output", fit.to);
  app.add_option("--comment", fit.comment);
  app.add_flag("--check", fit.check);
  add_format(&app, fit.format);
  fit.width = output_width();
  fit.on_note = [](std::string_view text) { fmt::print(stderr, "{}\n", text); };
  return run_command(
      app, [&] { return command::run(fit); }, "profile", argc, argv);
}

Result<session::Reply> run_profile(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "fit") return run_profile_fit(argc - 1, argv + 1);
  command::Profile profile;
  profile.on_note = [](std::string_view text) { fmt::print(stderr, "{}\n", text); };
  CLI::App app;
  add_options(app, profile);
  return run_command(
      app, [&] { return command::run(profile); }, "profile", argc, argv);
}

}  // namespace weft
