#include "top.h"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <CLI/CLI.hpp>

#include "interrupt.h"
#include "subcommands.h"
#include "weft/app/explain/rank_activity.h"
#include "weft/communication/transport/doctor.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kTopPatience{500};
constexpr std::chrono::seconds kTopPeriod{1};
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

}  // namespace

Result<session::Reply> run_top(int argc, char** argv, Output& output) {
  session::Format format = session::Format::text;
  bool help = false, once = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_flag("--once", once);
  add_format(&app, format);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return user_error(error.what(), "run weft top --help");
  }
  if (help) return session::help("top", output_width());
  interrupt::install();
  std::optional<explain::ActivitySnapshot> before;
  for (bool first = true;; first = false) {
    const auto taken = std::chrono::steady_clock::now();
    WEFT_TRY(patients, transport::query_ranks({}, kTopPatience));
    explain::ActivitySnapshot now = explain::snapshot_of(patients, taken);
    const bool json = format == session::Format::json;
    const std::string text =
        json ? explain::print_json(now, before) : explain::print_text(now, before, output_width());
    if (once) return session::Reply{session::ExitCode::ok, text, {}};
    if (!json && ::isatty(STDOUT_FILENO) != 0)
      output.write(kClearScreen);
    else if (!json && !first)
      output.write("\n");
    output.write(text);
    before = std::move(now);
    while (std::chrono::steady_clock::now() < taken + kTopPeriod && !interrupt::requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (interrupt::requested() || output.broken()) return session::Reply{session::ExitCode::ok, {}, {}};
  }
}

}  // namespace weft
