// Commands for pipeline schedules: parsing, cost and synthesis.
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "commands.h"
#include "weft/language/complaint.h"
#include "weft/parallel/pipeline/draw.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/schedule_cost.h"
#include "weft/parallel/pipeline/synthesize.h"

namespace weft::golden {
namespace {

double real(const Case& test, std::string_view name, double otherwise) {
  const std::string text = test.flag(name);
  return text.empty() ? otherwise : std::strtod(text.c_str(), nullptr);
}

pipeline::Times times_of(const Case& test, std::int32_t stages) {
  pipeline::Times times = pipeline::Times::alike(stages, real(test, "F", 1), real(test, "B", 1),
                                                 real(test, "W", 1), real(test, "transfer", 0));
  times.overlap = real(test, "overlap", 0);
  return times;
}

// Every flag that is not the command's own is a parameter of the schedule.
std::map<std::string, double> parameters_of(const Case& test) {
  std::map<std::string, double> parameters;
  for (const auto& [name, value] : test.flags)
    if (name != "F" && name != "B" && name != "W" && name != "transfer" && name != "overlap" &&
        name != "draw")
      parameters[name] = std::strtod(value.c_str(), nullptr);
  return parameters;
}

Result<std::string> schedule_answer(const Case& test) {
  pipeline::ScheduleText text;
  if (test.input.find("BEGIN") == std::string::npos) {
    WEFT_TRY(shipped, pipeline::find_schedule(test.input.substr(0, test.input.find('\n'))));
    text = *shipped;
  } else {
    WEFT_TRY(parsed, pipeline::parse_schedule(test.input));
    text = std::move(parsed);
  }
  WEFT_TRY(schedule, pipeline::unfold(text, parameters_of(test)));
  WEFT_TRY(price, pipeline::price(schedule, times_of(test, schedule.stages)));
  const std::string drawing =
      test.flags.contains("draw") ? pipeline::draw_text(schedule, price, 90) : pipeline::print(schedule);
  return drawing + fmt::format("cost {:g}, bubble {:.4f}, in flight {}\n", price.cost, price.bubble_rate,
                               fmt::join(price.peak_in_flight, " "));
}

Result<std::string> synthesize_answer(const Case& test) {
  pipeline::SynthesisRequest request;
  request.stages = static_cast<std::int32_t>(test.number("stages", 1));
  request.micro_batches = static_cast<std::int32_t>(test.number("micro_batches", 1));
  request.chunks = static_cast<std::int32_t>(test.number("chunks", 1));
  request.times = times_of(test, request.stages);
  if (test.flags.contains("memory")) request.memory = {real(test, "memory", 1)};
  if (test.flag("clock") == "end") request.clock = pipeline::Clock::end;
  request.effort = 0.1;
  WEFT_TRY(made, pipeline::synthesize(request));
  return pipeline::print(made.schedule) + fmt::format("cost {:g}, lower bound {:g}\n{}\n", made.price.cost,
                                                      made.lower_bound, made.why_stopped);
}

std::string answer(const Result<std::string>& answered, const Case& test) {
  if (answered.ok()) return *answered;
  const Error& error = answered.error();
  return language::complain(error, error.text != nullptr ? std::string_view(*error.text) : test.input);
}

}  // namespace

std::string schedule_command(const Case& test) { return answer(schedule_answer(test), test); }
std::string synthesize_command(const Case& test) { return answer(synthesize_answer(test), test); }

}  // namespace weft::golden
