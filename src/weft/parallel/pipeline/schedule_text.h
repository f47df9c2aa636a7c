// weft/parallel/pipeline/schedule_text.h -- schedules as text, general or for fixed sizes.
//
//   SCHEDULE one_f_one_b (stages, micro_batches)     SCHEDULE mine (stages = 2, micro_batches = 2)
//     ROUTE line                                     BEGIN
//     CLOCK end                                        STAGE 0: F0 F1 BW0 BW1
//     BUBBLE (stages - 1) * (F + B + W)                STAGE 1: F0 BW0 F1 B1 W1
//     PEAK min(micro_batches, stages - stage)        END
//   BEGIN
//     LET warm = min(micro_batches, stages - stage)
//     FOR i IN 0 TO warm - 1 F(i) END
//     ...
//   END
//
// The body runs once per `stage`. F(i), B(i), W(i), BW(i), or F(i, chunk), appends a pass to the
// stage's order. AT t instead places it by time, in slots one unit long; passes WHEN IDLE use the
// first free slot after their B. BUBBLE is the step time minus the work if transfers take no time
// and all stages are equal (F, B, W: the times of a whole stage). PEAK is the most that a stage
// holds. FROM states the sizes and times for which both hold; tests check them for the shipped
// schedules. OVERLAP states the sizes for which an F directly followed by a B may run concurrently
// with it.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/expression.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

struct Statement {
  enum class Kind : std::uint8_t { let, loop, choice, pass };
  Kind kind = Kind::pass;
  std::int32_t slot = 0;     // variable of LET and FOR
  Expression first, second;  // LET's value; FOR's bounds; IF's condition; micro-batch and chunk
  std::vector<Statement> body, otherwise;
  pipeline::Kind pass = pipeline::Kind::forward;
  Expression at;
  bool when_idle = false;
  Span span;
};

struct SynthesisRequest;

struct ScheduleText {
  std::string name;
  std::string comment;  // at the beginning of the text
  Route route = Route::line;
  Clock clock = Clock::span;
  struct Parameter {
    std::string name;
    std::optional<double> value;  // default value
  };
  std::vector<Parameter> parameters;  // stages, micro_batches, chunks, and its own
  Expression where, overlap, bubble, peak, from;
  std::string bubble_text, peak_text, from_text;  // as written
  std::vector<Statement> body;
  std::vector<std::pair<std::int32_t, std::vector<Pass>>> orders;  // from STAGE lines
  std::int32_t slots = 0;
  std::shared_ptr<const SynthesisRequest> synthesis = nullptr;  // instead of a body: synthesized for this
};

Result<ScheduleText> parse_schedule(std::string_view text);

// The schedule for these parameters ("stages" and so on); those without a default are required. Not
// verified. Fails on a missing, unknown or out-of-range parameter, and if WHERE rejects them.
Result<Schedule> unfold(const ScheduleText& text, const std::map<std::string, double>& parameters);

// The text's claims for these parameters, as described above. F, B, W: times of a whole stage.
struct Claims {
  bool hold = true;  // FROM
  std::optional<double> bubble;
  std::vector<double> peak;
};
Result<Claims> claims(const ScheduleText& text, const std::map<std::string, double>& parameters,
                      double forward, double backward, double weight);

// The text with one line per stage; parse_schedule and unfold restore the same schedule.
std::string print(const Schedule& schedule);

}  // namespace weft::pipeline
