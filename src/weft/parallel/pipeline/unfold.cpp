// Expands a schedule's text and parameters to the order of every stage.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/parallel/pipeline/schedule_text.h"
#include "weft/parallel/pipeline/synthesized.h"

namespace weft::pipeline {
namespace {

constexpr double kMostPasses = 2e7;  // 1,000 stages x 4,096 micro-batches with F, B, W are 12 M

// The order of one stage under construction. Timed passes are sorted at the end.
class StageOrder {
 public:
  explicit StageOrder(std::size_t most) : most_(most) {}

  Status add(const Pass& pass, std::optional<double> at, bool when_idle, Span span) {
    if (timed_.size() + order_.size() + idle_.size() >= most_)
      return user_error("each pass runs once per stage, and this one repeats", {}, span);
    if (when_idle) {
      idle_.push_back(pass);
    } else if (at) {
      timed_.emplace_back(*at, pass);
    } else {
      order_.push_back(pass);
    }
    return {};
  }

  std::vector<Pass> finish() {
    const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(timed_.begin(), timed_.end(), earlier);
    fill_idle();
    std::stable_sort(timed_.begin(), timed_.end(), earlier);
    for (const auto& [at, pass] : timed_) order_.push_back(pass);
    return std::move(order_);
  }

 private:
  // Each gets the first free slot after its B; they are processed in the order of their Bs.
  void fill_idle() {
    if (idle_.empty()) return;
    std::set<double> taken;
    for (const auto& [at, pass] : timed_) taken.insert(std::floor(at));
    std::vector<std::pair<double, Pass>> backwards;
    for (const auto& entry : timed_)
      if (entry.second.kind == Kind::backward) backwards.push_back(entry);
    std::set<std::pair<std::int32_t, std::int32_t>> wanted;
    for (const Pass& pass : idle_) wanted.emplace(pass.micro_batch, pass.chunk);
    double next = backwards.empty() ? 0 : std::floor(backwards.front().first);
    for (const auto& [at, backward] : backwards) {
      if (!wanted.contains({backward.micro_batch, backward.chunk})) continue;
      next = std::max(next, std::floor(at) + 1);
      while (taken.contains(next)) ++next;
      timed_.emplace_back(next++, Pass{Kind::weight, backward.micro_batch, backward.chunk});
    }
  }

  std::size_t most_;
  std::vector<Pass> order_, idle_;
  std::vector<std::pair<double, Pass>> timed_;
};

class Unfolding {
 public:
  Unfolding(std::vector<double>& slots, double budget) : slots_(slots), budget_(budget) {}

  Status run(const std::vector<Statement>& body, StageOrder& order) {
    for (const Statement& statement : body) WEFT_TRY_STATUS(run(statement, order));
    return {};
  }

 private:
  Status run(const Statement& statement, StageOrder& order) {
    if (--budget_ < 0) return user_error("the schedule takes too many steps to expand", {}, statement.span);
    switch (statement.kind) {
      case Statement::Kind::let: slot(statement) = statement.first.value(slots_); return {};
      case Statement::Kind::choice:
        return run(statement.first.value(slots_) != 0 ? statement.body : statement.otherwise, order);
      case Statement::Kind::loop: {
        const double first = statement.first.value(slots_), last = statement.second.value(slots_);
        for (double at = first; at <= last; ++at) {
          if (--budget_ < 0)
            return user_error("the schedule takes too many steps to expand", {}, statement.span);
          slot(statement) = at;
          WEFT_TRY_STATUS(run(statement.body, order));
        }
        return {};
      }
      case Statement::Kind::pass: {
        WEFT_TRY(micro, whole(statement.first, "micro-batch", statement.span));
        WEFT_TRY(chunk, whole(statement.second, "chunk", statement.span));
        std::optional<double> at;
        if (!statement.at.empty()) {
          at = statement.at.value(slots_);
          if (!std::isfinite(*at)) return user_error("AT needs a finite time", {}, statement.span);
        }
        return order.add({statement.pass, micro, chunk}, at, statement.when_idle, statement.span);
      }
    }
    return {};
  }

  double& slot(const Statement& statement) { return slots_[static_cast<std::size_t>(statement.slot)]; }

  Result<std::int32_t> whole(const Expression& expression, std::string_view what, Span span) {
    const double value = expression.value(slots_);
    if (!(value >= 0) || value > 1e7 || value != std::floor(value))
      return user_error(fmt::format("a {} is a whole number from 0: {}", what, value), {}, span);
    return static_cast<std::int32_t>(value);
  }

  std::vector<double>& slots_;
  double budget_;
};

struct Bound {
  std::vector<double> slots;
  std::int32_t stages = 1, micro_batches = 1, chunks = 1;
};

Result<Bound> bind(const ScheduleText& text, const std::map<std::string, double>& given) {
  Bound bound;
  bound.slots.assign(static_cast<std::size_t>(text.slots), 0);
  std::vector<std::string_view> names;
  for (const auto& parameter : text.parameters) names.push_back(parameter.name);
  for (const auto& [name, value] : given)
    if (std::find(names.begin(), names.end(), name) == names.end() && !(name == "chunks" && value == 1))
      return user_error(fmt::format("{} has no parameter {}", text.name, name), did_you_mean(name, names));
  std::map<std::string, double> values;
  for (std::size_t index = 0; index < text.parameters.size(); ++index) {
    const auto& parameter = text.parameters[index];
    const auto found = given.find(parameter.name);
    if (found == given.end() && !parameter.value)
      return user_error(fmt::format("{} needs a number of {}", text.name, parameter.name));
    const double value = found != given.end() ? found->second : *parameter.value;
    bound.slots[4 + index] = values[parameter.name] = value;
    if (!(value >= 0) || value > 1e6 || value != std::floor(value))
      return user_error(fmt::format("{} must be a whole number up to a million: {}", parameter.name, value));
  }
  const auto count = [&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? 1 : static_cast<std::int32_t>(found->second);
  };
  bound.stages = count("stages");
  bound.micro_batches = count("micro_batches");
  bound.chunks = count("chunks");
  for (const auto& [name, number] :
       {std::pair("stages", bound.stages), std::pair("micro_batches", bound.micro_batches),
        std::pair("chunks", bound.chunks)})
    if (number < 1) return user_error(fmt::format("{} must be at least 1: {}", name, number));
  if (3.0 * bound.stages * bound.micro_batches * bound.chunks > kMostPasses)
    return user_error(fmt::format("a schedule has at most {} passes: {} stages, {} micro-batches, {} chunks",
                                  kMostPasses, bound.stages, bound.micro_batches, bound.chunks));
  return bound;
}

}  // namespace

Result<Schedule> unfold(const ScheduleText& text, const std::map<std::string, double>& parameters) {
  WEFT_TRY(bound, bind(text, parameters));
  if (text.synthesis) return synthesized_schedule(text, bound.stages, bound.micro_batches, bound.chunks);
  if (!text.where.empty() && text.where.value(bound.slots) == 0)
    return user_error(fmt::format("{} is not for {} stages, {} micro-batches and {} chunks", text.name,
                                  bound.stages, bound.micro_batches, bound.chunks),
                      "see WHERE in its text");
  Schedule made{text.name, bound.stages, bound.micro_batches, bound.chunks, text.route, text.clock, {}};
  made.overlaps = !text.overlap.empty() && text.overlap.value(bound.slots) != 0;
  made.orders.resize(static_cast<std::size_t>(bound.stages));
  std::vector<bool> written(made.orders.size(), false);
  for (const auto& [stage, order] : text.orders) {
    if (stage >= bound.stages || written[static_cast<std::size_t>(stage)])
      return user_error(fmt::format("each of {} stages has one line: STAGE {}", bound.stages, stage));
    written[static_cast<std::size_t>(stage)] = true;
    made.orders[static_cast<std::size_t>(stage)] = order;
  }
  if (!text.orders.empty()) return made;
  const std::size_t most =
      3 * static_cast<std::size_t>(bound.micro_batches) * static_cast<std::size_t>(bound.chunks);
  for (std::int32_t stage = 0; stage < bound.stages; ++stage) {
    std::vector<double> slots = bound.slots;
    slots[0] = stage;
    StageOrder order(most);
    // A text that names each pass once needs a few statements per pass.
    WEFT_TRY_STATUS(Unfolding(slots, 100.0 * static_cast<double>(most) + 1000).run(text.body, order));
    made.orders[static_cast<std::size_t>(stage)] = order.finish();
  }
  return made;
}

Result<Claims> claims(const ScheduleText& text, const std::map<std::string, double>& parameters,
                      double forward, double backward, double weight) {
  WEFT_TRY(bound, bind(text, parameters));
  std::vector<double> slots = bound.slots;
  slots[1] = forward;
  slots[2] = backward;
  slots[3] = weight;
  Claims made;
  made.hold = text.from.empty() || text.from.value(slots) != 0;
  if (!text.bubble.empty()) made.bubble = text.bubble.value(slots);
  for (std::int32_t stage = 0; stage < bound.stages && !text.peak.empty(); ++stage) {
    slots[0] = stage;
    made.peak.push_back(text.peak.value(slots));
  }
  return made;
}

}  // namespace weft::pipeline
