#include "weft/device/cuda/row_lines.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/moves.h"

namespace weft::device::cuda {
namespace {

using plan::Monoid;
using program::RowInstruction;
using program::RowLoop;
using program::RowOperand;
using program::RowStep;
using Kind = RowLine::Kind;

class LineMaker {
 public:
  explicit LineMaker(const RowLoop& loop) : loop_(loop) {
    made_.is_run.assign(loop.is_run.begin(), loop.is_run.end());
  }

  RowLines make() {
    for (const RowInstruction& instruction : loop_.code) lower(instruction);
    find_phases();
    return std::move(made_);
  }

 private:
  int fresh(bool run) {
    made_.is_run.push_back(run);
    return static_cast<int>(made_.is_run.size()) - 1;
  }
  int define(std::vector<int> reads, std::string text, int result = -1) {
    if (result < 0) result = fresh(std::ranges::any_of(reads, [&](int r) { return made_.run(r); }));
    made_.lines.push_back(
        {.kind = Kind::define, .result = result, .reads = std::move(reads), .text = std::move(text)});
    return result;
  }
  int reduce(Monoid monoid, int of, double divisor = 1, int result = -1) {
    if (result < 0) result = fresh(false);
    made_.lines.push_back(
        {.kind = Kind::reduce, .result = result, .reads = {of}, .monoid = monoid, .divisor = divisor});
    return result;
  }

  void lower(const RowInstruction& it) {
    const auto reg = [](std::uint16_t r) { return static_cast<int>(r); };
    std::vector<int> reads;
    for (const std::uint16_t r : it.operands)
      if (r != RowInstruction::kNone) reads.push_back(reg(r));
    const auto n = static_cast<double>(loop_.length);
    switch (it.step) {
      case RowStep::load:
        made_.lines.push_back({.kind = Kind::load, .result = reg(it.result), .memory = it.memory});
        break;
      case RowStep::store:
        made_.lines.push_back({.kind = Kind::store, .reads = reads, .memory = it.memory});
        break;
      case RowStep::number: define({}, number(it.number), reg(it.result)); break;
      case RowStep::position:
        define({},
               it.loop >= 0 ? fmt::format("float({} + at{})", it.first, it.loop)
                            : fmt::format("float({} + j / {} % {})", it.first, it.repeat,
                                          std::max<std::int64_t>(it.size, 1)),
               reg(it.result));
        break;
      case RowStep::spread: define(reads, "{0}", reg(it.result)); break;
      case RowStep::compute:
        if (it.op == &ops::cast()) {
          define(reads, "({0} != 0.0f ? 1.0f : 0.0f)", reg(it.result));  // to bool
        } else {
          const std::vector<std::string> holes = {"{0}", "{1}", "{2}"};
          const auto text = expression(*it.op, std::span(holes).first(reads.size()));
          WEFT_CHECK(text.has_value(), "a row step that is no pointwise operator");
          define(reads, *text, reg(it.result));
        }
        break;
      case RowStep::round:
        define(reads, fmt::format("float({}({{0}}))", type_name(it.dtype)), reg(it.result));
        break;
      case RowStep::reduce: reduce(it.monoid, reads[0], it.number, reg(it.result)); break;
      case RowStep::dot: reduce(Monoid::sum, define(reads, "({0} * {1})"), 1, reg(it.result)); break;
      case RowStep::softmax: {
        const int largest = reduce(Monoid::max, reads[0]);
        const int power = define({reads[0], largest}, "({1} == -WEFT_INFINITY ? 0.0f : expf({0} - {1}))");
        const int total = reduce(Monoid::sum, power);
        const int share = define({total}, "({0} == 0.0f ? 0.0f : 1.0f / {0})");
        define({power, share}, "({0} * {1})", reg(it.result));
        break;
      }
      case RowStep::layer_norm: {
        const int mean = reduce(Monoid::sum, reads[0], n);
        const int away = define({reads[0], mean}, "({0} - {1})");
        const int variance = reduce(Monoid::sum, define({away}, "({0} * {0})"), n);
        define({variance}, fmt::format("(1.0f / sqrtf({{0}} + {}))", number(it.number)), reg(it.second));
        define({away, reg(it.second)}, "({0} * {1})", reg(it.result));
        break;
      }
      case RowStep::rms_norm: {
        const int square = reduce(Monoid::sum, define({reads[0]}, "({0} * {0})"), n);
        define({square}, fmt::format("(1.0f / sqrtf({{0}} + {}))", number(it.number)), reg(it.second));
        define({reads[0], reg(it.second)}, "({0} * {1})", reg(it.result));
        break;
      }
      case RowStep::accumulate:
        if (reads.size() > 1) reads = {define(reads, "({0} * {1})")};
        made_.lines.push_back(
            {.kind = Kind::accumulate, .reads = reads, .monoid = it.monoid, .memory = it.memory});
        break;
    }
  }

  // Assumes that each register is written once, as the row compiler guarantees.
  void find_phases() {
    const std::size_t registers = made_.is_run.size();
    std::vector<int> known(registers, 0), first(registers, -1);
    made_.born.assign(registers, 0);
    made_.lasts.assign(registers, 0);
    for (RowLine& line : made_.lines) {
      for (const int r : line.reads) line.phase = std::max(line.phase, known[static_cast<std::size_t>(r)]);
      for (const int r : line.reads) {
        const auto i = static_cast<std::size_t>(r);
        made_.lasts[i] = std::max(made_.lasts[i], line.phase);
        first[i] = first[i] < 0 ? line.phase : std::min(first[i], line.phase);
      }
      if (line.result < 0) continue;
      made_.born[static_cast<std::size_t>(line.result)] = line.phase;
      known[static_cast<std::size_t>(line.result)] = line.phase + (line.kind == Kind::reduce ? 1 : 0);
    }
    for (RowLine& line : made_.lines) {
      // Loads are delayed to their first use, unless the loop may have written there by then.
      const bool loads = line.kind == Kind::load && !may_be_written(line.memory);
      if (loads || (line.kind == Kind::define && line.reads.empty())) {
        const auto i = static_cast<std::size_t>(line.result);
        line.phase = made_.born[i] = std::max(first[i], 0);
      }
      made_.phases = std::max(made_.phases, line.phase + 1);
      if (line.kind == Kind::reduce) made_.phases = std::max(made_.phases, line.phase + 2);
    }
  }

  bool may_be_written(std::uint16_t memory) const {
    const program::BufferId buffer = loop_.operands[memory].place.buffer;
    return std::ranges::any_of(made_.lines, [&](const RowLine& line) {
      return (line.kind == Kind::store || line.kind == Kind::accumulate) &&
             loop_.operands[line.memory].place.buffer == buffer;
    });
  }

  const RowLoop& loop_;
  RowLines made_;
};

}  // namespace

RowLines row_lines(const RowLoop& loop) { return LineMaker(loop).make(); }

}  // namespace weft::device::cuda
