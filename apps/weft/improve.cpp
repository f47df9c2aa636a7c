#include "improve.h"

#include <CLI/CLI.hpp>

#include "command.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"
#include "subcommands.h"
#include "weft/app/command/improve.h"

namespace weft {
Result<session::Reply> run_improve(int argc, char** argv) {
  command::Improve improve;
  CLI::App app;
  app.add_option("--megatron", improve.megatron);
  app.add_option("--deepspeed", improve.deepspeed);
  app.add_option("--torchtitan", improve.torchtitan);
  app.add_option("--nemo", improve.nemo);
  app.add_option("--bridge", improve.bridge);
  app.add_option("--accelerate", improve.accelerate);
  app.add_option("--maxtext", improve.maxtext);
  app.add_option("--model", improve.model);
  app.add_option("--on", improve.on);
  app.add_option("--stack", improve.stack);
  app.add_option("--measured", improve.measured);
  app.add_option("--save-stack", improve.save_stack);
  app.add_option("--batch", improve.batch);
  app.add_option("--sequence", improve.sequence);
  app.add_option("--seconds", improve.seconds)->check(CLI::NonNegativeNumber);
  app.add_flag("--memory-only", improve.memory_only);
  app.add_option("-o", improve.to);
  add_format(&app, improve.format);
  improve.width = output_width();
  improve.interrupted = interrupt::requested;
  return run_command(
      app,
      [&] {
        ProgressDisplay progress;
        improve.on_progress = [&](const explain::Progress& now) { progress.show(now); };
        session::Reply reply = command::run(improve);
        progress.clear();
        return reply;
      },
      "improve", argc, argv);
}

}  // namespace weft
