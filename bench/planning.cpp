// Throughput of parser, binder, plan reader and plan printer, and the time from a model's name to
// its bound plan and training plan, by model size.
//
//   build/release/bench_planning ['parse and bind']
//
// Rates are medians of alternating repetitions in one run; processor time. "MB" is the peak of what
// the operation allocated, counted in operator new. "process MB" is the growth of a process that
// runs it once, at its peak, as reported by the system.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/language/bind.h"
#include "weft/language/catalog.h"
#include "weft/language/parser.h"
#include "weft/language/shipped.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace {

bool counting = false;  // only to measure memory, since counting takes time
std::ptrdiff_t live_bytes = 0, peak_bytes = 0;

void* counted(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  if (counting) live_bytes += static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  peak_bytes = std::max(peak_bytes, live_bytes);
  return memory;
}

void uncounted(void* memory) noexcept {
  if (memory == nullptr) return;
  if (counting) live_bytes -= static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { uncounted(memory); }

namespace {

using namespace weft;

// A model with many entries and no REPEAT, so every byte is bound once.
std::string flat_model(int number, int entries) {
  std::string text = fmt::format(
      "CREATE MODEL flat_{}\n  (b = 64, s = 128, d = 256, f = 1024)\n  INPUT     x[b, s, d]\n"
      "  PARAMETER w1[d, f] INIT normal(0, 0.02), w2[f, d] INIT normal(0, 0.02), gain[d] INIT ones\nAS "
      "WITH\n",
      number);
  std::string last = "x";
  for (int i = 0; i < entries; ++i) {
    text += fmt::format(
        "  norm_{0}   AS (SELECT layer_norm({1}) OVER (PARTITION BY b, s) * gain FROM {1}, gain),\n", i,
        last);
    text += fmt::format(
        "  hidden_{0} AS (SELECT gelu(sum(norm_{0} * w1)) FROM norm_{0}, w1 GROUP BY b, s, f),\n", i);
    text += fmt::format(
        "  out_{0}    AS (SELECT {1} + sum(hidden_{0} * w2) FROM {1}, hidden_{0}, w2 GROUP BY b, s, d),\n", i,
        last);
    last = fmt::format("out_{}", i);
  }
  text += fmt::format("  y AS (SELECT mean({0}) FROM {0})\nSELECT y AS loss FROM y;\n\n", last);
  return text;
}

void rates(std::string_view only) {
  std::string text;
  for (int i = 0; text.size() < (std::size_t{8} << 20); ++i) text += flat_model(i, 40);
  const language::Catalog empty;

  // A large plan for the reader and the printer.
  std::string large = flat_model(0, 40'000);
  auto large_source = *language::parse_and_keep(large);
  language::BindOptions options;
  options.plan_limit = 100'000'000;
  const language::ModelDefinition large_model{
      large_source, &large_source->script.statements.front()->as<language::syntax::CreateModel>()};
  const plan::Graph graph = std::move(language::bind(empty, large_model, options)->graph);
  const std::string plan_text = plan::print(graph);

  struct Row {
    std::string name;
    std::size_t bytes;
    std::function<void()> work;
    std::vector<double> times;
  };
  std::vector<Row> rows;
  rows.push_back({"parse WeftQL", text.size(), [&] { WEFT_CHECK(language::parse(text).ok()); }, {}});
  rows.push_back(
      {"parse and bind WeftQL",
       text.size(),
       [&] {
         auto source = *language::parse_and_keep(text);
         for (const language::syntax::Statement* statement : source->script.statements) {
           const language::ModelDefinition model{source, &statement->as<language::syntax::CreateModel>()};
           WEFT_CHECK(language::bind(empty, model, options).ok());
         }
       },
       {}});
  rows.push_back({"print plan text",
                  plan_text.size(),
                  [&] { WEFT_CHECK(plan::print(graph).size() == plan_text.size()); },
                  {}});
  rows.push_back(
      {"read plan text", plan_text.size(), [&] { WEFT_CHECK(plan::read(plan_text, ops::all()).ok()); }, {}});
  constexpr int kRepetitions = 9;
  for (int i = 0; i < kRepetitions; ++i)
    for (Row& row : rows)
      if (row.name.find(only) != std::string::npos)
        row.times.push_back(bench::processor_seconds_of(row.work));

  fmt::print("{:24} {:>10} {:>10} {:>10}\n", "text", "MB", "ms", "MB/s");
  for (const Row& row : rows) {
    if (row.times.empty()) continue;
    const double seconds = median(row.times);
    fmt::print("{:24} {:10.1f} {:10.1f} {:10.0f}\n", row.name, static_cast<double>(row.bytes) / 1e6,
               seconds * 1e3, static_cast<double>(row.bytes) / 1e6 / seconds);
  }
}

// From text: parses the shipped catalog each time.
language::BoundModel bound_gpt3(std::int64_t layers, language::Mode mode) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::BindOptions options;
  options.mode = mode;
  options.sizes = {{"layers", layers, {}}};
  return language::bind(catalog, language::syntax::Name{"gpt3_175b", {}}, options).value();
}

std::size_t bind_gpt3(std::int64_t layers) {
  return bound_gpt3(layers, language::Mode::infer).graph.node_count();
}

// Forward, backward and Adam.
std::size_t plan_gpt3_training(std::int64_t layers) {
  return train::make_training_plan(bound_gpt3(layers, language::Mode::train).graph, {})->graph.node_count();
}

// Peak memory of this process so far, in bytes.
double highest_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (double kilobytes = 0; word == "VmHWM:" && file >> kilobytes) return kilobytes * 1024;
  return 0;
}

// Memory growth of a process that does the work once; 0 if unknown.
double process_growth(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return 0;
  malloc_trim(0);  // else the child would reuse free memory
  const pid_t child = fork();
  if (child == 0) {
    const double before = highest_memory();
    work();
    const double grown = highest_memory() - before;
    _exit(write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  close(ends[1]);
  double grown = 0;
  if (child < 0 || read(ends[0], &grown, sizeof grown) != sizeof grown) grown = 0;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return grown;
}

// `plan` makes a plan with this many layers and returns its number of nodes.
void growth(std::string_view what, const std::function<std::size_t(std::int64_t)>& plan) {
  fmt::print("\n{:24} {:>10} {:>10} {:>10} {:>12} {:>10} {:>12}\n", what, "nodes", "ms", "MB", "us/layer",
             "KB/layer", "process MB");
  for (const std::int64_t layers : {12, 24, 48, 96, 192}) {
    const double grown = process_growth([&] { plan(layers); });
    counting = true;
    std::vector<double> times;
    std::size_t nodes = 0;
    std::ptrdiff_t peak = 0;
    for (int i = 0; i < 15; ++i) {
      const std::ptrdiff_t before = live_bytes;
      peak_bytes = live_bytes;
      times.push_back(bench::processor_seconds_of([&] { nodes = plan(layers); }));
      peak = peak_bytes - before;
    }
    counting = false;
    const double seconds = median(times);
    fmt::print("{:24} {:10} {:10.2f} {:10.2f} {:12.1f} {:10.1f} {:12.1f}\n", fmt::format("{} layers", layers),
               nodes, seconds * 1e3, static_cast<double>(peak) / 1e6,
               seconds * 1e6 / static_cast<double>(layers),
               static_cast<double>(peak) / 1e3 / static_cast<double>(layers), grown / 1e6);
  }
}

}  // namespace

// The argument selects rows whose name contains it.
int main(int argc, char** argv) {
  rates(argc > 1 ? argv[1] : "");
  if (argc > 1) return 0;
  growth("gpt3_175b, bound", bind_gpt3);
  growth("gpt3_175b, training", plan_gpt3_training);
  return 0;
}
