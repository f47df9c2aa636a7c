#include "partition.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "command.h"
#include "subcommands.h"
#include "weft/app/command/partition.h"

namespace weft {
namespace {}  // namespace

Result<session::Reply> run_partition(int argc, char** argv) {
  command::Partition partition;
  CLI::App app;
  app.add_option("FILE", partition.file)->required();
  app.add_option("--devices", partition.devices);
  app.add_option("--memory", partition.memory);
  app.add_option("--micro-batches", partition.micro_batches);
  app.add_option("--topology", partition.topology);
  app.add_flag("--straight", partition.straight);
  add_format(&app, partition.format);
  return run_command(
      app, [&] { return command::run(partition); }, "partition", argc, argv);
}

}  // namespace weft
