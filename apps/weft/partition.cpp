#include "partition.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "command.h"
#include "subcommands.h"
#include "weft/app/command/partition.h"

namespace weft {
namespace {

constexpr std::string_view kPartitionUsage = R"(weft partition: where to cut a model into stages

usage:
  weft partition FILE [--devices N] [--memory SIZE] [--micro-batches M]
                 [--topology RATE | N@RATE,N@RATE...] [--straight] [--format text|json]

`weft help partition` explains the files and what a split costs.
)";

}  // namespace

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
      app, [&] { return command::run(partition); }, "partition", kPartitionUsage, argc, argv);
}

}  // namespace weft
