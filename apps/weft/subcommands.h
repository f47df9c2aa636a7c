// subcommands.h -- `weft NAME WORD ...`: parses and runs the subcommand WORD.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

struct Subcommand {
  CLI::App* app;
  std::function<session::Reply()> run;
};

// --format text|json
void add_format(CLI::App* app, session::Format& format);

// `argv[0]` is NAME. Without a subcommand, or with --help, the reply is the help page NAME.
Result<session::Reply> run_subcommand(CLI::App& app, std::vector<Subcommand> commands, std::string_view name,
                                      int argc, char** argv);

}  // namespace weft
