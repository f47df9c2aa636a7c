// Memory of a training step: what it keeps, and how tightly the rest is packed.
//
//   build/release/bench_step_memory
//
// Programs are compiled, not run. "at least" is the peak of live bytes, a lower bound for any
// packing; "waste" is what the packing adds to it. Compile times are medians; processor time.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "support/training_rank.h"
#include "weft/base/units.h"
#include "weft/program/tasks/program.h"

namespace {

using namespace weft;
using namespace weft::bench;

struct Model {
  std::string name;
  std::int64_t batch;
};

// All shipped models with a loss to train.
const std::vector<Model> kModels = {
    {"digits_mlp", 64}, {"digits_conv", 64}, {"char_gpt", 8},  {"gpt2", 1},         {"alexnet", 8},
    {"vgg16", 8},       {"resnet50", 8},     {"llama2_7b", 1}, {"mixtral_8x7b", 1}, {"gpt3_175b", 1},
};

std::string bytes(std::int64_t count) { return print_bytes(static_cast<double>(count)); }

void row(const Model& model) {
  const auto graph = training_graph(model.name, {{"b", model.batch, {}}});
  constexpr int kRepetitions = 5;
  std::vector<double> times;
  program::Program program;
  for (int i = 0; i < kRepetitions; ++i)
    times.push_back(processor_seconds_of([&] { program = or_throw(program::compile(graph)); }));
  const double waste =
      static_cast<double>(program.work_bytes) / static_cast<double>(program.work_lower_bound) - 1;
  fmt::print("{:24} {:>7} {:>7} {:>10} {:>10} {:>10} {:>7.2f}% {:>10.1f}\n",
             fmt::format("{}, b = {}", model.name, model.batch), program.units.size(), program.buffers.size(),
             bytes(program.persistent_bytes), bytes(program.work_bytes), bytes(program.work_lower_bound),
             waste * 100, median(times) * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main() {
  fmt::print("{:24} {:>7} {:>7} {:>10} {:>10} {:>10} {:>8} {:>10}\n", "training step", "units", "buffers",
             "kept", "packed", "at least", "waste", "compile ms");
  for (const Model& model : kModels) {
    try {
      row(model);
    } catch (const std::exception& error) {
      fmt::print("{:24} {}\n", model.name, error.what());
    }
  }
  return 0;
}
