#include "bench.h"

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "subcommands.h"
#include "weft/app/command/bench.h"
#include "weft/runtime/measure/bench_rank.h"

namespace weft {
namespace {

using command::Bench;
using session::Reply;

void add_options(CLI::App& app, Bench& bench) {
  app.add_option("COLLECTIVE", bench.collectives);
  app.add_option("--ranks", bench.ranks)->delimiter(',')->allow_extra_args(false);
  app.add_option("--sizes", bench.sizes);
  app.add_option("--step", bench.step);
  app.add_option("--transport", bench.transports)->delimiter(',')->allow_extra_args(false);
  app.add_option("--device", bench.device);
  app.add_option("--against", bench.against)->delimiter(',')->allow_extra_args(false);
  app.add_option("--buffers", bench.buffers);
  app.add_option("--type", bench.type);
  app.add_flag("--in-place", bench.in_place);
  app.add_option("--repeats", bench.repeats)->check(CLI::Range(1, 10'000));
  app.add_option("--limit", bench.limit)->check(CLI::Range(1, 3600));
  app.add_option("--peers", bench.programs);
  app.add_option("-o,--output", bench.to);
  add_format(&app, bench.format);
}

}  // namespace

Result<Reply> run_bench(int argc, char** argv, Output& output) {
  Bench bench;
  bench.on_output = [&](std::string_view text) { output.write(text); };
  bool asked = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", asked);
  add_options(app, bench);
  const auto usage = [] { return session::help("bench", output_width()); };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (asked) return usage();
    return user_error(error.what(), "run weft bench --help");
  }
  if (asked || argc == 1) return usage();
  return command::run(bench);
}

Result<Reply> run_bench_rank(int argc, char** argv) {
  const Status served = measure::run_bench_rank(argc > 1 ? argv[1] : "");
  if (!served.ok()) return served.error();
  return Reply{};
}

}  // namespace weft
