#include "weft/device/cuda/row_choices.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "weft/device/cuda/gpu.h"
#include "weft/device/cuda/kernels.h"
#include "weft/device/cuda/stored_choice.h"
#include "weft/device/cuda/trial.h"

namespace weft::device::cuda {
namespace {

// Loops that move less memory take too little time to matter.
constexpr std::int64_t kLeastMoved = 8 << 20;
constexpr std::chrono::milliseconds kRowTrialBudget{1000};

std::int64_t stretch(const program::RowOperand& operand) {
  const program::Extent whole = program::extent(operand.place);
  return (whole.end - whole.begin + 511) / 256 * 256;
}

std::int64_t moved(const program::RowLoop& loop) {
  std::int64_t bytes = 0;
  for (const program::RowOperand& operand : loop.operands) bytes += stretch(operand);
  return bytes;
}

}  // namespace

std::string row_key(const RowSource& usual, const program::RowLoop& loop) {
  return fmt::format("rows {} of {}", loop.rows(), Hasher().text(usual.text).digest().hex());
}

RowShape RowChoices::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = chosen_.find(key);
  return found != chosen_.end() ? found->second : RowShape{};
}

void RowChoices::choose(const program::Program& program) {
  const std::lock_guard lock(mutex_);
  struct Wanted {
    std::string key;
    const program::RowLoop* loop = nullptr;
    std::vector<RowShape> shapes;
    std::int64_t bytes = 0;
  };
  std::map<std::string, Wanted> wanted;
  for (const program::Unit& unit : program.units) {
    const auto* const loop = std::get_if<program::RowLoop>(&unit.kernel);
    if (loop == nullptr || moved(*loop) < kLeastMoved) continue;
    std::vector<RowShape> shapes = row_shapes(*loop);
    if (shapes.size() < 2) continue;
    const std::string key = row_key(row_source(*loop), *loop);
    if (chosen_.contains(key)) continue;
    Wanted& one = wanted[key];
    one.bytes += moved(*loop);
    one.key = key;
    one.loop = loop;
    one.shapes = std::move(shapes);
  }
  std::vector<Wanted*> order;
  std::vector<std::string> texts;
  const auto full_key = [&](const Wanted& one) { return fmt::format("{} on {}", one.key, gpu_.model()); };
  for (auto& [key, one] : wanted) {
    if (const auto kept = stored_choice(full_key(one))) {
      const RowShape shape{static_cast<int>((*kept)[0]), static_cast<std::int64_t>((*kept)[1])};
      if (std::ranges::find(one.shapes, shape) != one.shapes.end()) {
        chosen_.emplace(key, shape);
        continue;
      }
    }
    order.push_back(&one);
    for (const RowShape& shape : one.shapes) texts.push_back(row_source(*one.loop, shape).text);
  }
  std::ranges::stable_sort(order, std::greater<>(), &Wanted::bytes);
  gpu_.compile_all(std::move(texts));
  const auto end = std::chrono::steady_clock::now() + kRowTrialBudget;
  for (const Wanted* one : order) {
    const RowShape shape =
        std::chrono::steady_clock::now() < end ? fastest(*one->loop, one->shapes) : one->shapes.front();
    keep_choice(full_key(*one),
                {static_cast<std::uint64_t>(shape.threads), static_cast<std::uint64_t>(shape.most_blocks)});
    chosen_.emplace(one->key, shape);
  }
}

RowShape RowChoices::fastest(const program::RowLoop& loop, std::span<const RowShape> shapes) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::int64_t scratch = 0;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
  for (const program::RowOperand& operand : loop.operands) {
    offsets.push_back(bytes);
    bytes += stretch(operand);
  }
  // The scratch size is known only after the kernels are made, so they are made twice: first
  // without an address.
  const auto make = [&](DevicePointer memory) -> bool {
    kernels.clear();
    std::vector<DevicePointer> operands;
    for (std::size_t i = 0; i < offsets.size(); ++i)
      operands.push_back(memory + static_cast<DevicePointer>(offsets[i]));
    for (const RowShape& shape : shapes) {
      auto kernel = make_row_kernel(gpu_, loop, operands, shape);
      if (!kernel.ok()) return false;
      scratch = std::max(scratch, (*kernel)->scratch_bytes());
      kernels.push_back(std::move(*kernel));
    }
    return true;
  };
  if (!make(0)) return shapes.front();
  auto trial = Trial::start(gpu_, bytes + scratch);
  if (!trial || !trial->start_cold() || !make(trial->memory())) return shapes.front();
  std::vector<Trial::Launch> launches;
  for (const auto& kernel : kernels)
    launches.push_back([&kernel](const LaunchContext& at) { return kernel->launch(at, {}); });
  return shapes[trial->fastest(launches, trial->place(trial->memory() + static_cast<DevicePointer>(bytes)))];
}

}  // namespace weft::device::cuda
