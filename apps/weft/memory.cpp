#include "memory.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/app/command/memory.h"

namespace weft {
namespace {

CLI::App* add_recompute(CLI::App& app, command::MemoryRecompute& request) {
  CLI::App* command = app.add_subcommand("recompute");
  command->add_option("FILE", request.file)->required();
  command->add_option("--graph", request.graph);
  command->add_option("--budget", request.budget)->required();
  add_format(command, request.format);
  return command;
}

CLI::App* add_pack(CLI::App& app, command::MemoryPack& request) {
  CLI::App* command = app.add_subcommand("pack");
  command->add_option("FILE", request.file)->required();
  command->add_option("--capacity", request.capacity);
  command->add_option("--alignment", request.alignment);
  command->add_option("--effort", request.effort);
  add_format(command, request.format);
  return command;
}

CLI::App* add_tile(CLI::App& app, command::MemoryTile& request) {
  CLI::App* command = app.add_subcommand("tile");
  command->add_option("FILE", request.file)->required();
  command->add_option("--schedule", request.schedule);
  add_format(command, request.format);
  return command;
}

}  // namespace

Result<session::Reply> run_memory(int argc, char** argv) {
  command::MemoryRecompute recompute;
  command::MemoryPack pack;
  command::MemoryTile tile;
  CLI::App app;
  return run_subcommand(app,
                        {{add_recompute(app, recompute), [&] { return command::run(recompute); }},
                         {add_pack(app, pack), [&] { return command::run(pack); }},
                         {add_tile(app, tile), [&] { return command::run(tile); }}},
                        "memory", argc, argv);
}

}  // namespace weft
