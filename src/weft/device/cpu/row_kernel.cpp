#include "weft/device/cpu/row_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/narrow.h"
#include "weft/device/cpu/row_registers.h"
#include "weft/plan/ops/moves.h"

namespace weft::device::cpu {
namespace {

using plan::DType;
using plan::Monoid;
using program::RowInstruction;
using program::RowLoop;
using program::RowOperand;
using program::RowStep;

constexpr std::uint16_t kNone = RowInstruction::kNone;

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
    for (const program::Accumulator& accumulator : loop.accumulators) {
      Sum& sum = accumulators_.emplace_back(Sum{accumulator.memory, accumulator.elements,
                                                accumulator.partials.valid(), identity(accumulator.monoid)});
      if (accumulator.monoid != Monoid::sum || sum.elements > kMostTotals) continue;
      sum.total = totals_;
      totals_ += sum.elements;
      sum.interval = std::max(kAddends, kAddends * sum.elements / std::max<std::int64_t>(loop.block, 1));
    }
    RowRegisters placed = allocate_registers(loop_);
    registers_ = std::move(placed.registers);
    steps_ = std::move(placed.steps);
    slots_ = placed.slots;
  }

  std::int64_t scratch_bytes() const override {
    const std::int64_t registers = static_cast<std::int64_t>(loop_.is_run.size());
    const std::int64_t operands = static_cast<std::int64_t>(bases_.size());
    return (registers + operands) * static_cast<std::int64_t>(sizeof(float*)) +
           static_cast<std::int64_t>(loop_.outer.size() * sizeof(std::int64_t)) +
           (registers + (slots_ + 1) * slot_length()) * static_cast<std::int64_t>(sizeof(float)) + 64 +
           totals_ * static_cast<std::int64_t>(sizeof(double));
  }

  void run(const program::Task& task, std::byte* scratch) const override {
    Frame frame = lay_out(scratch);
    for (const Sum& sum : accumulators_) {
      float* first = reinterpret_cast<float*>(bases_[sum.memory]);
      if (sum.partial) first += static_cast<std::int64_t>(task.chunk) * sum.elements;
      std::fill_n(first, sum.elements, sum.identity);
      if (sum.interval > 0) std::fill_n(frame.totals + sum.total, sum.elements, 0.0);
    }
    const std::int64_t blocks = loop_.blocks();
    for (std::int64_t item = task.begin; item < task.end; ++item) {
      if (item == task.begin || blocks == 1 || item % blocks == 0)
        go_to_row(frame, item / blocks, item == task.begin, task.chunk);
      if (loop_.end) {
        run_to_end(frame);
      } else {
        const std::int64_t start = blocks == 1 ? 0 : item % blocks * loop_.block;
        run_block(frame, start, std::min(loop_.block, loop_.length - start));
      }
      for (const Sum& sum : accumulators_)
        if (sum.interval > 0 && (item + 1 == task.end || (item + 1 - task.begin) % sum.interval == 0))
          add_to_totals(sum, frame, task.chunk, item + 1 == task.end);
    }
  }

 private:
  struct Sum {
    std::uint16_t memory;
    std::int64_t elements;
    bool partial;
    float identity;
    std::int64_t total = 0;     // offset in the totals
    std::int64_t interval = 0;  // items between flushes to the totals; 0: never
  };

  // A worker's state: the current address of each register and operand.
  struct Frame {
    float** registers;
    std::byte** operands;  // at the start of the row
    std::int64_t* at;      // indices of the outer loops
    float* singles;
    float* slots;
    double* totals;
  };

  // Elements accumulate kAddends addends in f32 before they are flushed to a double: a long f32 sum
  // loses the low bits of its addends. Not for large accumulators, where few rows add to the same
  // element.
  static constexpr std::int64_t kAddends = 64, kMostTotals = 8192;

  void add_to_totals(const Sum& sum, const Frame& frame, std::uint32_t chunk, bool last) const {
    float* const memory = reinterpret_cast<float*>(bases_[sum.memory]) +
                          (sum.partial ? static_cast<std::int64_t>(chunk) * sum.elements : 0);
    double* const total = frame.totals + sum.total;
    for (std::int64_t i = 0; i < sum.elements; ++i) {
      total[i] += static_cast<double>(memory[i]);
      memory[i] = last ? static_cast<float>(total[i]) : 0;
    }
  }

  std::int64_t slot_length() const { return (loop_.block + 15) / 16 * 16; }

  Frame lay_out(std::byte* scratch) const {
    Frame frame;
    frame.registers = reinterpret_cast<float**>(scratch);
    frame.operands = reinterpret_cast<std::byte**>(frame.registers + loop_.is_run.size());
    frame.at = reinterpret_cast<std::int64_t*>(frame.operands + bases_.size());
    frame.singles = reinterpret_cast<float*>(frame.at + loop_.outer.size());
    const auto slots = reinterpret_cast<std::uintptr_t>(frame.singles + loop_.is_run.size());
    frame.slots = reinterpret_cast<float*>((slots + 63) / 64 * 64);
    frame.totals = reinterpret_cast<double*>(frame.slots + (slots_ + 1) * slot_length());
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      frame.registers[r] = registers_[r].home == RowRegister::Home::slot
                               ? frame.slots + registers_[r].slot * slot_length()
                               : frame.singles + r;
    }
    for (const PlacedStep& step : steps_)
      if (step.instruction.step == RowStep::number)
        frame.singles[step.instruction.result] = static_cast<float>(step.instruction.number);
    return frame;
  }

  // Advances to the next row by incrementing the loops; the first row is found by division.
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

  // A row that ends early. The rest of what it stores is filled with zeros, which are zero bytes in
  // every dtype.
  void run_to_end(const Frame& frame) const {
    const std::int64_t wanted = frame.at[loop_.end->loop] + loop_.end->offset + 1;
    // A multiple of every vector width, since a partial vector may round differently.
    constexpr std::int64_t kStripe = 32;
    const std::int64_t n =
        std::clamp<std::int64_t>((wanted + kStripe - 1) / kStripe * kStripe, 0, loop_.length);
    run_block(frame, 0, n);
    for (const PlacedStep& step : steps_) {
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
      const RowRegister& reg = registers_[r];
      if (reg.home == RowRegister::Home::memory)
        frame.registers[r] =
            reinterpret_cast<float*>(frame.operands[reg.operand]) + start * loop_.operands[reg.operand].along;
      else if (reg.home == RowRegister::Home::table)
        frame.registers[r] = const_cast<float*>(reg.table.data()) + start;
    }
    for (const PlacedStep& step : steps_)
      if (!step.skip) run_step(step, frame, start, n);
  }

  void run_step(const PlacedStep& step, const Frame& frame, std::int64_t start, std::int64_t n) const {
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
        if (it.op == &ops::cast()) {  // to bool
          std::transform(operand(0), operand(0) + (run ? n : 1), result, [](float x) { return x != 0; });
          break;
        }
        std::array<LaneOperand, 3> operands = {};
        for (std::size_t i = 0; i < operands.size() && it.operands[i] != kNone; ++i)
          operands[i] = {operand(i), !is_run(i)};
        run_lane(step.lane, run ? n : 1, operands.data(), result);
        break;
      }
      case RowStep::round: round(it.dtype, operand(0), result, loop_.is_run[it.result] ? n : 1); break;
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
    if (is_narrow(from.place.dtype))
      return load_narrow(from, frame.operands[it.memory], start, count, result);
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
    if (is_narrow(to.place.dtype))
      return store_narrow(to, frame.operands[it.memory], start, count, from, step);
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

  static void load_narrow(const RowOperand& from, const std::byte* memory, std::int64_t start,
                          std::int64_t count, float* result) {
    const std::int64_t step = from.along * plan::size_in_bytes(from.place.dtype);
    memory += start * step;
    if (from.along == 1 || count == 1) return widen(from.place.dtype, memory, result, count);
    for (std::int64_t i = 0; i < count; ++i) widen(from.place.dtype, memory + i * step, result + i, 1);
  }

  static void store_narrow(const RowOperand& to, std::byte* memory, std::int64_t start, std::int64_t count,
                           const float* from, std::int64_t step) {
    const std::int64_t along = to.along * plan::size_in_bytes(to.place.dtype);
    memory += start * along;
    if ((to.along == 1 && step == 1) || count == 1) return narrow(to.place.dtype, from, memory, count);
    for (std::int64_t i = 0; i < count; ++i) narrow(to.place.dtype, from + i * step, memory + i * along, 1);
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
      float* product = frame.slots + slots_ * slot_length();
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
  std::vector<RowRegister> registers_;
  std::vector<PlacedStep> steps_;
  std::int64_t slots_ = 0;  // without the extra one for products that are accumulated
  std::int64_t totals_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_row_kernel(const program::Program& program, const program::Unit& unit,
                                        std::byte* memory) {
  return std::make_unique<RowKernel>(program, std::get<RowLoop>(unit.kernel), memory);
}

}  // namespace weft::device::cpu
