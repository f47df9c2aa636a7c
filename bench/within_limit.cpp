// A char GPT within a quarter of the memory it takes: how long a step was said to take, and how long it takes.
//
//   build/release/bench_within_limit
//
// One rank with one thread recomputes layers and spills to a file in the folder for temporary files. What is said is
// EXPLAIN's step at best and what lies elsewhere; that is a roofline of a processor's data sheet, so the same without a
// limit stands beside it, and "growth" compares the two ratios: what the limit costs, as said and as measured. Medians
// of rounds in which the sides take turns.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/measure.h"
#include "weft/base/units.h"
#include "weft/session/session.h"

namespace {

using namespace weft;

constexpr int kRounds = 5;
constexpr std::string_view kSizes = "b = 16, s = 128, d = 192, h = 4, layers = 6";

struct Figures {
  double said = 0, measured = 0, bytes = 0;
  bool spills = false;
};

Figures figures_of(const std::string& with) {
  session::Session session;
  session.format = session::Format::json;
  const session::Reply reply = session.execute(
      fmt::format("EXPLAIN ANALYZE TRAIN char_gpt STEPS 3 WITH ({}, threads = 1, rules = false, remember = false, "
                  "prove = false{})",
                  kSizes, with));
  if (reply.exit_code != session::ExitCode::ok) throw std::runtime_error(reply.complaint);
  const nlohmann::json json = nlohmann::json::parse(reply.output);
  Figures found;
  found.said = json.at("seconds_at_best").get<double>() + json.value("seconds_of_spilled", 0.0);
  found.measured = json.at("measured").at("seconds_a_step").get<double>();
  found.bytes = json.at("measured").at("memory_bytes").get<double>();
  found.spills = json.contains("spilled_bytes");
  return found;
}

void row(std::string_view precision) {
  const std::string plain = fmt::format(", precision = {}", precision);
  const double bytes = figures_of(plain).bytes;
  const std::string limited = plain + fmt::format(", memory_limit = '{} KiB'", static_cast<long>(bytes / 4096));
  std::vector<double> whole_times, limited_times;
  Figures whole, within;
  for (int i = 0; i < kRounds; ++i) {
    whole = figures_of(plain);
    within = figures_of(limited);
    whole_times.push_back(whole.measured);
    limited_times.push_back(within.measured);
  }
  whole.measured = median(whole_times);
  within.measured = median(limited_times);
  const double growth = (within.said / whole.said) / (within.measured / whole.measured);
  fmt::print("{:6} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7.2f} {:>7.2f}\n", precision, print_bytes(bytes),
             print_bytes(bytes / 4), within.spills ? "yes" : "no", print_seconds(whole.said),
             print_seconds(whole.measured), print_seconds(within.said), print_seconds(within.measured),
             within.said / within.measured, growth);
  std::fflush(stdout);
}

}  // namespace

int main() {
  fmt::print("char_gpt ({}), one thread\n", kSizes);
  fmt::print("{:6} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}\n", "", "takes", "limit", "spills",
             "said", "measured", "said", "measured", "ratio", "growth");
  for (const std::string_view precision : {"f32", "bf16"}) {
    try {
      row(precision);
    } catch (const std::exception& error) {
      fmt::print("{:6} {}\n", precision, error.what());
      return 1;
    }
  }
  return 0;
}
