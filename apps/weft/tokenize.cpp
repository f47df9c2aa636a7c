#include "tokenize.h"

#include <CLI/CLI.hpp>

#include "command.h"
#include "interrupt.h"
#include "subcommands.h"
#include "weft/app/command/tokenize.h"

namespace weft {

Result<session::Reply> run_tokenize(int argc, char** argv) {
  command::Tokenize tokenize;
  CLI::App app;
  app.add_option("FILE", tokenize.files)->required();
  app.add_option("--tokenizer", tokenize.tokenizer)->required();
  app.add_option("-o", tokenize.to)->required();
  app.add_option("--end", tokenize.end);
  app.add_option("--key", tokenize.key);
  add_format(&app, tokenize.format);
  tokenize.interrupted = interrupt::requested;
  return run_command(
      app, [&] { return command::run(tokenize); }, "tokenize", argc, argv);
}

}  // namespace weft
