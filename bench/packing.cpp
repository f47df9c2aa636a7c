// Quality and time of buffer packing: published hard problems, and programs of typical shape.
//
//   build/release/bench_packing [FOLDER]
//
// FOLDER holds problems as name.capacity.csv with the columns id, lower, upper, size. "by size" is
// the usual greedy algorithm, first fit by decreasing size; "quick" is pack() without its search;
// "packed" is pack() under the capacity. Times are of the last: medians of repetitions, processor
// time.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/corpus.h"
#include "support/measure.h"
#include "weft/base/random.h"
#include "weft/base/units.h"
#include "weft/program/memory/check.h"
#include "weft/program/memory/first_fit.h"
#include "weft/program/memory/pack.h"
#include "weft/program/memory/preference.h"

namespace {

using namespace weft;
using memory::Buffer;
using memory::Packing;

double median_seconds(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(bench::processor_seconds_of(work));
  return median(times);
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<Buffer> read_buffers(const std::filesystem::path& path) {
  std::vector<Buffer> buffers;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::int64_t> fields;
    for (std::size_t comma = line.find(','); comma != std::string::npos; comma = line.find(',', comma + 1))
      fields.push_back(number(std::string_view(line).substr(comma + 1)));
    if (fields.size() == 3) buffers.push_back({fields[0], fields[1], fields[2]});
  }
  return buffers;
}

// First fit by size over all buffers, as the baseline.
std::int64_t peak_by_size(std::span<const Buffer> buffers) {
  memory::Piece piece;
  std::vector<std::int64_t> steps;
  for (const Buffer& buffer : buffers) steps.insert(steps.end(), {buffer.born, buffer.dies});
  std::ranges::sort(steps);
  const auto place = [&](std::int64_t step) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(steps, step) - steps.begin());
  };
  for (const Buffer& buffer : buffers)
    piece.boxes.push_back({place(buffer.born), place(buffer.dies), buffer.size, 0});
  piece.moments = static_cast<std::int32_t>(steps.size());
  const auto collisions = memory::Collisions::among(piece, std::size_t{1} << 28);
  if (!collisions) return -1;
  return memory::highest_edge(
      piece, memory::first_fit(piece, *collisions, memory::ranked(piece.boxes, memory::Preference::tall)));
}

void row(std::string_view name, std::span<const Buffer> buffers, std::int64_t capacity) {
  const memory::PackOptions options{.capacity = capacity};
  Result<Packing> packing = memory::pack(buffers, options);
  if (packing.ok()) WEFT_CHECK(memory::check(buffers, *packing, options).ok());
  const double seconds = median_seconds([&] { packing = memory::pack(buffers, options); });
  fmt::print("{:20} {:>8} {:>13} {:>13} {:>13} {:>13} {:>13} {:9.2f}\n", name, buffers.size(),
             print_exact(memory::lower_bound(buffers)),
             capacity == memory::kUnlimited ? "-" : print_exact(capacity), print_exact(peak_by_size(buffers)),
             print_exact(memory::pack(buffers, {.effort = 0})->peak),
             packing.ok() ? print_exact(packing->peak) : "none found", seconds * 1e3);
  std::fflush(stdout);
}

// Lifetimes of buffers in a training step: weights are permanent, every third activation lives
// until its backward step, gradients live until the end, and the rest is short-lived.
std::vector<Buffer> training_step(std::int64_t layers) {
  constexpr std::int64_t kNodes = 60;  // per layer, forward
  Random random(static_cast<std::uint64_t>(layers));
  const auto size = [&] { return random.between(1, 64) << 10; };
  const std::int64_t forward = layers * kNodes, end = 2 * forward + 1;
  std::vector<Buffer> buffers;
  for (std::int64_t i = 0; i < 12 * layers; ++i) {
    const std::int64_t weight = size();
    buffers.push_back({0, end, weight});
    buffers.push_back({end - 1 - i * kNodes / 12, end, weight});
  }
  for (std::int64_t step = 0; step < forward; ++step) {
    const bool saved = step % 3 == 0;
    buffers.push_back({step, saved ? 2 * forward - step : step + random.between(1, 9), size()});
    buffers.push_back({forward + step, forward + step + random.between(1, 9), size()});
  }
  return buffers;
}

// Without structure: random lifetimes and sizes.
std::vector<Buffer> confusion(std::int64_t count) {
  Random random(static_cast<std::uint64_t>(count));
  std::vector<Buffer> buffers;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t born = random.between(0, count);
    buffers.push_back({born, born + random.between(1, std::int64_t{1} << random.between(1, 12)),
                       random.between(1, std::int64_t{1} << random.between(1, 20))});
  }
  return buffers;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1]) : bench::corpus("minimalloc");
  fmt::print("{:20} {:>8} {:>13} {:>13} {:>13} {:>13} {:>13} {:>9}\n", "problem", "buffers", "lower bound",
             "capacity", "by size", "quick", "packed", "ms");
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  std::ranges::sort(paths);
  if (paths.empty()) fmt::print("(no published problems: {} has no .csv files)\n", folder.string());
  for (const std::filesystem::path& path : paths)
    row(path.stem().stem().string(), read_buffers(path), number(path.stem().extension().string().substr(1)));
  for (const std::int64_t layers : {12, 96}) {
    const std::vector<Buffer> buffers = training_step(layers);
    row(fmt::format("training, {} layers", layers), buffers, memory::kUnlimited);
  }
  row("confusion", confusion(20'000), memory::kUnlimited);
  return 0;
}
