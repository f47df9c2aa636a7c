// command.h -- `weft NAME --option ...`: parses and runs a command without subcommands.
#pragma once
#include <functional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "weft/app/session/session.h"
#include "weft/base/result.h"

namespace weft {

// `argv[0]` is NAME. With --help the reply is the help page NAME.
Result<session::Reply> run_command(CLI::App& app, const std::function<session::Reply()>& run,
                                   std::string_view name, int argc, char** argv);

}  // namespace weft
