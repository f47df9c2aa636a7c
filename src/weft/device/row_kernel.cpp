#include "weft/device/row_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "weft/device/lanes.h"
#include "weft/ops/operators.h"

namespace weft::device {
namespace {

using plan::DType;
using plan::Monoid;
using program::RowInstruction;
using program::RowLoop;
using program::RowOperand;
using program::RowStep;

constexpr std::uint16_t kNone = RowInstruction::kNone;

Lane lane_of(const plan::Operator& op) {
  // In the order of the enumeration.
  static const std::array<const plan::Operator*, kLaneCount> kOperators = {&ops::add(),
                                                                           &ops::sub(),
                                                                           &ops::mul(),
                                                                           &ops::div(),
                                                                           &ops::mod(),
                                                                           &ops::pow(),
                                                                           &ops::maximum(),
                                                                           &ops::minimum(),
                                                                           &ops::neg(),
                                                                           &ops::abs(),
                                                                           &ops::equal(),
                                                                           &ops::not_equal(),
                                                                           &ops::less(),
                                                                           &ops::less_equal(),
                                                                           &ops::greater(),
                                                                           &ops::greater_equal(),
                                                                           &ops::logical_and(),
                                                                           &ops::logical_or(),
                                                                           &ops::logical_not(),
                                                                           &ops::select(),
                                                                           &ops::exp(),
                                                                           &ops::log(),
                                                                           &ops::sqrt(),
                                                                           &ops::rsqrt(),
                                                                           &ops::sin(),
                                                                           &ops::cos(),
                                                                           &ops::tanh(),
                                                                           &ops::erf(),
                                                                           &ops::sigmoid(),
                                                                           &ops::relu(),
                                                                           &ops::gelu(),
                                                                           &ops::gelu_tanh(),
                                                                           &ops::silu(),
                                                                           &ops::gelu_gradient(),
                                                                           &ops::gelu_tanh_gradient(),
                                                                           &ops::silu_gradient()};
  const auto found = std::ranges::find(kOperators, &op);
  WEFT_CHECK(found != kOperators.end(), "no lane for this operator");
  return static_cast<Lane>(found - kOperators.begin());
}

float identity(Monoid monoid) {
  if (monoid == Monoid::max) return -std::numeric_limits<float>::infinity();
  if (monoid == Monoid::min) return std::numeric_limits<float>::infinity();
  return 0;
}

Lane lane_of(Monoid monoid) {
  return monoid == Monoid::max ? Lane::maximum : monoid == Monoid::min ? Lane::minimum : Lane::add;
}

class RowKernel final : public Kernel {
 public:
  RowKernel(const program::Program& program, const RowLoop& loop, std::byte* memory) : loop_(loop) {
    for (const RowOperand& operand : loop.operands) bases_.push_back(address(program, operand.place, memory));
    for (const program::Accumulator& accumulator : loop.accumulators)
      accumulators_.push_back({accumulator.memory, accumulator.elements, accumulator.partials.valid(),
                               identity(accumulator.monoid)});
    prepare_steps();
    place_registers();
  }

  std::int64_t scratch_bytes() const override {
    const std::int64_t registers = static_cast<std::int64_t>(loop_.is_run.size());
    const std::int64_t operands = static_cast<std::int64_t>(bases_.size());
    return (registers + operands) * static_cast<std::int64_t>(sizeof(float*)) +
           static_cast<std::int64_t>(loop_.outer.size() * sizeof(std::int64_t)) +
           (registers + slots_ * slot_length()) * static_cast<std::int64_t>(sizeof(float)) + 64;
  }

  void run(const program::Task& task, std::byte* scratch) const override {
    Frame frame = lay_out(scratch);
    for (const Sum& sum : accumulators_) {
      float* first = reinterpret_cast<float*>(bases_[sum.memory]);
      if (sum.partial) first += static_cast<std::int64_t>(task.chunk) * sum.elements;
      std::fill_n(first, sum.elements, sum.identity);
    }
    const std::int64_t blocks = loop_.blocks();
    for (std::int64_t item = task.begin; item < task.end; ++item) {
      if (item == task.begin || blocks == 1 || item % blocks == 0)
        go_to_row(frame, item / blocks, item == task.begin, task.chunk);
      if (loop_.end) {
        run_to_end(frame);
        continue;
      }
      const std::int64_t start = blocks == 1 ? 0 : item % blocks * loop_.block;
      run_block(frame, start, std::min(loop_.block, loop_.length - start));
    }
  }

 private:
  struct Sum {
    std::uint16_t memory;
    std::int64_t elements;
    bool partial;
    float identity;
  };

  // Where a register lives: in memory as an operand lies there, in a table, in a slot, or as a single.
  enum class Home : std::uint8_t { single, slot, memory, table };

  struct Register {
    Home home = Home::single;
    std::uint16_t operand = 0;  // memory
    std::uint16_t slot = 0;
    std::vector<float> table = {};  // positions along the row
  };

  struct Step {
    RowInstruction instruction;
    Lane lane = Lane::add;
    bool skip = false;  // a load or store of what is memory already
  };

  // A worker's view while it runs: where each register and operand is at this row.
  struct Frame {
    float** registers;
    std::byte** operands;  // at the start of the row
    std::int64_t* at;      // the outer loops
    float* singles;
    float* slots;
  };

  std::int64_t slot_length() const { return (loop_.block + 15) / 16 * 16; }

  Frame lay_out(std::byte* scratch) const {
    Frame frame;
    frame.registers = reinterpret_cast<float**>(scratch);
    frame.operands = reinterpret_cast<std::byte**>(frame.registers + loop_.is_run.size());
    frame.at = reinterpret_cast<std::int64_t*>(frame.operands + bases_.size());
    frame.singles = reinterpret_cast<float*>(frame.at + loop_.outer.size());
    const auto slots = reinterpret_cast<std::uintptr_t>(frame.singles + loop_.is_run.size());
    frame.slots = reinterpret_cast<float*>((slots + 63) / 64 * 64);
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      frame.registers[r] = registers_[r].home == Home::slot ? frame.slots + registers_[r].slot * slot_length()
                                                            : frame.singles + r;
    }
    for (const Step& step : steps_)
      if (step.instruction.step == RowStep::number)
        frame.singles[step.instruction.result] = static_cast<float>(step.instruction.number);
    return frame;
  }

  void prepare_steps() {
    registers_.resize(loop_.is_run.size());
    std::vector<const RowInstruction*> made(loop_.is_run.size());
    for (const RowInstruction& instruction : loop_.code) {
      Step step{instruction};
      if (instruction.result != kNone) made[instruction.result] = &instruction;
      if (instruction.step == RowStep::compute && instruction.op != &ops::cast()) {
        step.lane = lane_of(*instruction.op);
        // Dividing by a power of two is multiplying by another, bit for bit, and faster.
        if (step.lane == Lane::div) {
          const RowInstruction* divisor = made[instruction.operands[1]];
          int exponent = 0;
          if (divisor != nullptr && divisor->step == RowStep::number && divisor->number != 0 &&
              std::abs(std::frexp(divisor->number, &exponent)) == 0.5 && std::abs(exponent) < 100) {
            RowInstruction reciprocal{.step = RowStep::number};
            reciprocal.number = 1 / divisor->number;
            reciprocal.result = static_cast<std::uint16_t>(registers_.size());
            registers_.emplace_back();
            loop_.is_run.push_back(false);
            steps_.push_back({reciprocal});
            step.instruction.operands[1] = reciprocal.result;
            step.lane = Lane::mul;
          }
        }
      }
      steps_.push_back(std::move(step));
    }
  }

  // Memory for what is loaded or stored as it is, tables for positions, and for the rest as few
  // slots as their lives allow.
  void place_registers() {
    std::vector<std::size_t> last(registers_.size(), 0);
    for (std::size_t i = 0; i < steps_.size(); ++i)
      for (const std::uint16_t operand : steps_[i].instruction.operands)
        if (operand != kNone) last[operand] = i;
    std::vector<bool> placed(registers_.size());
    for (Step& step : steps_) {
      const RowInstruction& instruction = step.instruction;
      if (instruction.step == RowStep::load) {
        const RowOperand& operand = loop_.operands[instruction.memory];
        if (operand.place.dtype != DType::f32 || operand.along > 1) continue;
        registers_[instruction.result].home = Home::memory;
        registers_[instruction.result].operand = instruction.memory;
        placed[instruction.result] = step.skip = true;
      } else if (instruction.step == RowStep::position && instruction.loop < 0) {
        Register& target = registers_[instruction.result];
        target.home = Home::table;
        target.table.resize(static_cast<std::size_t>(loop_.length));
        for (std::int64_t i = 0; i < loop_.length; ++i)
          target.table[static_cast<std::size_t>(i)] =
              static_cast<float>(instruction.first + i / instruction.repeat % instruction.size);
        placed[instruction.result] = step.skip = true;
      }
    }
    for (Step& step : steps_) {
      const RowInstruction& instruction = step.instruction;
      if (instruction.step != RowStep::store) continue;
      const std::uint16_t stored = instruction.operands[0];
      const RowOperand& operand = loop_.operands[instruction.memory];
      if (!loop_.is_run[stored] || placed[stored] || operand.place.dtype != DType::f32 || operand.along != 1)
        continue;
      registers_[stored].home = Home::memory;
      registers_[stored].operand = instruction.memory;
      placed[stored] = step.skip = true;
    }
    std::vector<std::size_t> busy_until;  // of each slot: the last step that reads it
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const std::uint16_t result = steps_[i].instruction.result;
      if (result == kNone || placed[result] || !loop_.is_run[result]) continue;
      // A slot whose last reader is this very step may be overwritten: lanes allow it.
      std::size_t slot = 0;
      while (slot < busy_until.size() && busy_until[slot] > i) ++slot;
      if (slot == busy_until.size()) busy_until.push_back(0);
      busy_until[slot] = std::max(last[result], i + 1);
      registers_[result].home = Home::slot;
      registers_[result].slot = static_cast<std::uint16_t>(slot);
      placed[result] = true;
    }
    // One more for products that are accumulated.
    spare_ = static_cast<std::int64_t>(busy_until.size());
    slots_ = spare_ + 1;
  }

  // The next row moves the fastest loop; the first is found by division.
  void go_to_row(Frame& frame, std::int64_t row, bool first, std::uint32_t chunk) const {
    if (first) {
      for (std::size_t i = loop_.outer.size(); i-- > 0;) {
        frame.at[i] = row % loop_.outer[i];
        row /= loop_.outer[i];
      }
    } else {
      for (std::size_t i = loop_.outer.size(); i-- > 0;) {
        if (++frame.at[i] < loop_.outer[i]) break;
        frame.at[i] = 0;
      }
    }
    for (std::size_t k = 0; k < bases_.size(); ++k) {
      const RowOperand& operand = loop_.operands[k];
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < loop_.outer.size(); ++i) offset += frame.at[i] * operand.outer[i];
      if (operand.partial) offset += static_cast<std::int64_t>(chunk) * partial_elements(k);
      frame.operands[k] = bases_[k] + offset * plan::size_in_bytes(operand.place.dtype);
    }
  }

  std::int64_t partial_elements(std::size_t operand) const {
    for (const Sum& sum : accumulators_)
      if (sum.memory == operand) return sum.elements;
    return 0;
  }

  // A row that ends early; zeros, whose bytes are zero in every dtype, fill up what it stores.
  void run_to_end(const Frame& frame) const {
    const std::int64_t wanted = frame.at[loop_.end->loop] + loop_.end->offset + 1;
    // Whole vectors of any width: what is left of one may round otherwise.
    constexpr std::int64_t kStripe = 32;
    const std::int64_t n =
        std::clamp<std::int64_t>((wanted + kStripe - 1) / kStripe * kStripe, 0, loop_.length);
    run_block(frame, 0, n);
    for (const Step& step : steps_) {
      if (step.instruction.step != RowStep::store) continue;
      const RowOperand& operand = loop_.operands[step.instruction.memory];
      const auto size = static_cast<std::size_t>(plan::size_in_bytes(operand.place.dtype));
      std::byte* const row = frame.operands[step.instruction.memory];
      if (operand.along == 1)
        std::memset(row + n * static_cast<std::int64_t>(size), 0,
                    static_cast<std::size_t>(loop_.length - n) * size);
      else if (operand.along != 0)
        for (std::int64_t i = n; i < loop_.length; ++i)
          std::memset(row + i * operand.along * static_cast<std::int64_t>(size), 0, size);
    }
  }

  void run_block(const Frame& frame, std::int64_t start, std::int64_t n) const {
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      const Register& reg = registers_[r];
      if (reg.home == Home::memory)
        frame.registers[r] =
            reinterpret_cast<float*>(frame.operands[reg.operand]) + start * loop_.operands[reg.operand].along;
      else if (reg.home == Home::table)
        frame.registers[r] = const_cast<float*>(reg.table.data()) + start;
    }
    for (const Step& step : steps_)
      if (!step.skip) run_step(step, frame, start, n);
  }

  void run_step(const Step& step, const Frame& frame, std::int64_t start, std::int64_t n) const {
    const RowInstruction& it = step.instruction;
    float* result = it.result != kNone ? frame.registers[it.result] : nullptr;
    const auto operand = [&](std::size_t i) { return frame.registers[it.operands[i]]; };
    const auto is_run = [&](std::size_t i) { return static_cast<bool>(loop_.is_run[it.operands[i]]); };
    switch (it.step) {
      case RowStep::load: load(it, frame, start, n, result); break;
      case RowStep::store: store(it, frame, start, n); break;
      case RowStep::number: break;
      case RowStep::position: *result = static_cast<float>(it.first + frame.at[it.loop]); break;
      case RowStep::spread: std::fill_n(result, n, *operand(0)); break;
      case RowStep::compute: {
        const bool run = loop_.is_run[it.result];
        if (it.op == &ops::cast()) {
          cast(it, operand(0), result, run ? n : 1, run && !is_run(0));
          break;
        }
        std::array<LaneOperand, 3> operands = {};
        for (std::size_t i = 0; i < operands.size() && it.operands[i] != kNone; ++i)
          operands[i] = {operand(i), !is_run(i)};
        run_lane(step.lane, run ? n : 1, operands.data(), result);
        break;
      }
      case RowStep::reduce: {
        const float total = it.monoid == Monoid::max   ? max_lanes(operand(0), n)
                            : it.monoid == Monoid::min ? min_lanes(operand(0), n)
                                                       : sum_lanes(operand(0), n);
        *result = it.number == 1 ? total : total / static_cast<float>(it.number);
        break;
      }
      case RowStep::dot: *result = dot_lanes(operand(0), operand(1), n); break;
      case RowStep::softmax: softmax_row(operand(0), result, n); break;
      case RowStep::layer_norm:
        layer_norm_row(operand(0), result, n, static_cast<float>(it.number), *frame.registers[it.second]);
        break;
      case RowStep::rms_norm:
        rms_norm_row(operand(0), result, n, static_cast<float>(it.number), *frame.registers[it.second]);
        break;
      case RowStep::accumulate: accumulate(it, frame, start, n); break;
    }
  }

  void load(const RowInstruction& it, const Frame& frame, std::int64_t start, std::int64_t n,
            float* result) const {
    const RowOperand& from = loop_.operands[it.memory];
    const std::int64_t count = loop_.is_run[it.result] ? n : 1;
    const auto move = [&](const auto* memory) {
      memory += start * from.along;
      for (std::int64_t i = 0; i < count; ++i) result[i] = static_cast<float>(memory[i * from.along]);
    };
    if (from.place.dtype == DType::boolean)
      move(reinterpret_cast<const std::uint8_t*>(frame.operands[it.memory]));
    else
      move(reinterpret_cast<const float*>(frame.operands[it.memory]));
  }

  void store(const RowInstruction& it, const Frame& frame, std::int64_t start, std::int64_t n) const {
    const RowOperand& to = loop_.operands[it.memory];
    const float* from = frame.registers[it.operands[0]];
    const std::int64_t step = loop_.is_run[it.operands[0]] ? 1 : 0;
    const std::int64_t count = to.along != 0 ? n : 1;
    const auto move = [&](auto* memory) {
      using Element = std::remove_pointer_t<decltype(memory)>;
      memory += start * to.along;
      for (std::int64_t i = 0; i < count; ++i) memory[i * to.along] = static_cast<Element>(from[i * step]);
    };
    if (to.place.dtype == DType::boolean)
      move(reinterpret_cast<std::uint8_t*>(frame.operands[it.memory]));
    else
      move(reinterpret_cast<float*>(frame.operands[it.memory]));
  }

  static void cast(const RowInstruction& it, const float* from, float* to, std::int64_t n, bool spread) {
    // Lanes are f32 or truth; only to truth is anything lost.
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = from[spread ? 0 : i];
      to[i] = it.to_truth ? static_cast<float>(x != 0) : x;
    }
  }

  void accumulate(const RowInstruction& it, const Frame& frame, std::int64_t start, std::int64_t n) const {
    float* y = reinterpret_cast<float*>(frame.operands[it.memory]);
    const bool run = loop_.operands[it.memory].along != 0;
    if (run) y += start;
    const std::int64_t count = run ? n : 1;
    const float* x = frame.registers[it.operands[0]];
    bool x_run = loop_.is_run[it.operands[0]];
    if (it.operands[1] != kNone) {
      const float* z = frame.registers[it.operands[1]];
      const bool z_run = loop_.is_run[it.operands[1]];
      if (run && x_run && z_run) return accumulate_product_lanes(x, z, y, n);
      float* product = frame.slots + spare_ * slot_length();
      const std::array<LaneOperand, 2> factors = {{{x, !x_run}, {z, !z_run}}};
      x_run = x_run || z_run;
      run_lane(Lane::mul, x_run ? n : 1, factors.data(), product);
      x = product;
    }
    if (run && x_run && it.monoid == Monoid::sum) return accumulate_lanes(x, y, n);
    const std::array<LaneOperand, 2> both = {{{y, false}, {x, !x_run}}};
    run_lane(lane_of(it.monoid), count, both.data(), y);
  }

  RowLoop loop_;
  std::vector<std::byte*> bases_;
  std::vector<Sum> accumulators_;
  std::vector<Register> registers_;
  std::vector<Step> steps_;
  std::int64_t slots_ = 0, spare_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_row_kernel(const program::Program& program, const program::Unit& unit,
                                        std::byte* memory) {
  return std::make_unique<RowKernel>(program, std::get<RowLoop>(unit.kernel), memory);
}

}  // namespace weft::device
