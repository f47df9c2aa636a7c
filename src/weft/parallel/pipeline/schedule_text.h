// weft/parallel/pipeline/schedule_text.h -- schedules as text: for any number of stages and micro-batches, or for one.
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
// The body is run once for each `stage`. F(i), B(i), W(i), BW(i), or F(i, chunk), put a pass at the end of the
// stage's order. With AT t they are put by that time instead, in slots one unit long; passes WHEN IDLE take the
// first slot that is free after their B. BUBBLE is what a step takes longer than its work when transfers take
// nothing and all stages are alike (F, B, W: a whole stage's times); PEAK what a stage holds at most; FROM says
// for which sizes and times both are so. Tests hold the shipped schedules to them. OVERLAP says for which sizes an F
// and a B right after it may run beside each other.
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
  std::int32_t slot = 0;     // of LET and FOR
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
  std::string comment;  // that the text begins with
  Route route = Route::line;
  Clock clock = Clock::span;
  struct Parameter {
    std::string name;
    std::optional<double> value;  // if none is given
  };
  std::vector<Parameter> parameters;  // stages, micro_batches, chunks, and its own
  Expression where, overlap, bubble, peak, from;
  std::string bubble_text, peak_text, from_text;  // as written
  std::vector<Statement> body;
  std::vector<std::pair<std::int32_t, std::vector<Pass>>> orders;  // of STAGE lines
  std::int32_t slots = 0;
  std::shared_ptr<const SynthesisRequest> synthesis = nullptr;  // in place of a body: it is made for this
};

Result<ScheduleText> parse_schedule(std::string_view text);

// The schedule for these parameters ("stages" and so on); one that the text does not give must be given. It is
// not verified. Fails when a parameter is missing, unknown or out of range, or WHERE refuses them.
Result<Schedule> unfold(const ScheduleText& text, const std::map<std::string, double>& parameters);

// What the text claims for these parameters: see above. F, B, W are those of a whole stage.
struct Claims {
  bool hold = true;  // FROM
  std::optional<double> bubble;
  std::vector<double> peak;
};
Result<Claims> claims(const ScheduleText& text, const std::map<std::string, double>& parameters,
                      double forward, double backward, double weight);

// The text with one line a stage: parse_schedule and unfold give the same schedule again.
std::string print(const Schedule& schedule);

}  // namespace weft::pipeline
