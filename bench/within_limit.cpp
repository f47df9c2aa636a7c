// A char GPT within a quarter of its memory: predicted and measured step times.
//
//   build/release/bench_within_limit
//
// Two ranks of one thread share the batch. The step without a limit is measured first, and its
// times are stored in a private folder. From these, EXPLAIN predicts the step within the limit,
// which recomputes layers and spills to a file in the folder for temporary files. Medians of
// rounds. Other load makes steps longer than predicted.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/measure.h"
#include "weft/app/session/session.h"
#include "weft/base/units.h"
#include "weft/runtime/run/rank_program.h"

namespace {

using namespace weft;

constexpr int kRounds = 3;
constexpr std::string_view kSizes = "b = 16, s = 128, d = 192, h = 4, layers = 6";

nlohmann::json explained(std::string_view how, const std::string& with) {
  session::Session session;
  session.format = session::Format::json;
  const session::Reply reply = session.execute(
      fmt::format("EXPLAIN {} TRAIN char_gpt ON LOCAL 2 WITH ({}, threads = 1, rules = false, prove = false, "
                  "distribution = 'rank=2: slice b'{})",
                  how, kSizes, with));
  if (reply.exit_code != session::ExitCode::ok) throw std::runtime_error(reply.complaint);
  return nlohmann::json::parse(reply.output);
}

double predicted(const nlohmann::json& said) {
  return said.at("step_seconds").get<double>() + said.value("seconds_of_spilled", 0.0);
}

void row(std::string_view precision) {
  const std::string plain = fmt::format(", precision = {}", precision);
  const nlohmann::json whole = explained("ANALYZE", plain);
  const double bytes = whole.at("memory_per_rank_bytes").get<double>();
  const std::string limited =
      plain + fmt::format(", memory_limit = '{} KiB'", static_cast<long>(bytes / 4 / 1024));
  const nlohmann::json said = explained("", limited);
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i)
    times.push_back(explained("ANALYZE", limited + ", keep_measurements = false")
                        .at("measured")
                        .at("step_seconds")
                        .get<double>());
  fmt::print("{:6} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>7.2f}\n", precision, print_bytes(bytes),
             print_bytes(bytes / 4), print_seconds(whole.at("measured").at("step_seconds").get<double>()),
             print_seconds(predicted(said)), print_seconds(said.value("seconds_of_spilled", 0.0)),
             print_seconds(median(times)), predicted(said) / median(times));
  std::fflush(stdout);
}

}  // namespace

int main() {
  if (const auto code = weft::run::rank_main()) return *code;
  // Keeps measurements private to this benchmark.
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "weft-bench-within-limit";
  std::filesystem::create_directories(folder);
  setenv("XDG_DATA_HOME", folder.c_str(), 1);
  fmt::print("char_gpt ({}), two ranks\n", kSizes);
  fmt::print("{:6} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>7}\n", "", "per rank", "limit", "without",
             "predicted", "for a file", "measured", "ratio");
  int failed = 0;
  for (const std::string_view precision : {"f32", "bf16"}) {
    try {
      row(precision);
    } catch (const std::exception& error) {
      fmt::print("{:6} {}\n", precision, error.what());
      failed = 1;
    }
  }
  std::filesystem::remove_all(folder);
  return failed;
}
