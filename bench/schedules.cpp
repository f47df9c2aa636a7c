// Pipeline schedules and stage cuts compared with published results.
//
//   build/release/bench_schedules [CORPUS]
//
// CORPUS holds zb-schedules, dnn-placement, pipedream and piper. Prints bubble rates of schedules
// and of synthesis at the published memory, how synthesis time grows, and costs of cuts compared
// with the optima and with the times of the programs that found them. Times are of one thread.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/measure.h"
#include "weft/formats/placement_json.h"
#include "weft/formats/profile_text.h"
#include "weft/formats/stage_costs_json.h"
#include "weft/parallel/partition/steady.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/synthesize.h"

namespace {

using namespace weft;
using Json = nlohmann::json;

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

pipeline::Times times_of(const Json& setting) {
  return pipeline::Times::alike(setting["p"], setting["T_F_us"], setting["T_B_us"], setting["T_W_us"],
                                setting["T_comm_us"]);
}

void named_schedule(const Json& setting, const std::string& name, double published) {
  std::map<std::string, double> parameters = {{"stages", setting["p"]}, {"micro_batches", setting["m"]}};
  if (name == "1F1B-I") parameters["chunks"] = setting["interleave_chunks"];
  const auto schedule = pipeline::unfold(*pipeline::find_schedule(name).value(), parameters).value();
  const auto priced = pipeline::price(schedule, times_of(setting)).value();
  fmt::print("{:22} {:8} {:9.4f} {:10.4f}\n", setting["id"].get<std::string>(), name, priced.bubble_rate,
             published);
}

// With the memory of the published search: that of 1F1B, or twice that. What B frees follows from
// the model's sizes.
void synthesized(const Json& setting, const std::string& name, double published) {
  const double hidden = setting["hidden"], heads = setting["heads"], tokens = setting["seq"];
  pipeline::SynthesisRequest request{.stages = setting["p"], .micro_batches = setting["m"]};
  request.chunks = name == "ZB-V" ? 2 : 1;
  request.times = times_of(setting);
  request.memory = {(name == "ZB-2p" ? 2.0 : 1.0) * request.stages};
  request.weight_share = 32 * hidden / (34 * hidden + 5 * heads * tokens);
  request.clock = name == "ZB-1p" ? pipeline::Clock::end : pipeline::Clock::span;
  pipeline::Synthesis made;
  const double seconds = bench::processor_seconds_of([&] { made = pipeline::synthesize(request).value(); });
  fmt::print("{:22} {:8} {:9.4f} {:10.4f} {:9.2f} s   {}\n", setting["id"].get<std::string>(), name,
             made.price.bubble_rate, published, seconds, made.from);
}

void bubble_rates(const std::filesystem::path& file) {
  fmt::print("bubble rates\n{:22} {:8} {:>9} {:>10}\n", "setting", "schedule", "weft", "published");
  for (const Json& setting : Json::parse(slurp(file)))
    for (const auto& [name, published] : setting["bubble_rate"].items()) {
      const bool is_search = name == "ZB-1p" || name == "ZB-2p" || name == "ZB-V";
      (is_search ? synthesized : named_schedule)(setting, name, published.get<double>());
      std::fflush(stdout);
    }
}

// Unequal stages: every third takes 1.5 times as long.
void growth() {
  fmt::print("\nsynthesis where stages differ\n{:>6} {:>13} {:>6} {:>9} {:>9} {:>12}\n", "stages",
             "micro-batches", "chunks", "seconds", "bubble", "above bound");
  for (const auto& [stages, micro_batches, chunks] :
       {std::tuple(4, 16, 1), std::tuple(8, 64, 1), std::tuple(16, 128, 1), std::tuple(32, 256, 1),
        std::tuple(32, 256, 2)}) {
    pipeline::SynthesisRequest request{
        stages, micro_batches, chunks, pipeline::Times::alike(stages, 2, 2, 1.5, 0.1), {1.0 * stages}};
    for (std::size_t stage = 0; stage < request.times.forward.size(); stage += 3)
      for (auto* list : {&request.times.forward, &request.times.backward, &request.times.weight})
        (*list)[stage] *= 1.5;
    pipeline::Synthesis made;
    const double seconds = bench::processor_seconds_of([&] { made = pipeline::synthesize(request).value(); });
    fmt::print("{:>6} {:>13} {:>6} {:>9.2f} {:>9.4f} {:>11.2f}%\n", stages, micro_batches, chunks, seconds,
               made.price.bubble_rate, 100 * (made.price.cost / made.lower_bound - 1));
    std::fflush(stdout);
  }
}

void cut(const std::string& what, double cost, double theirs, double seconds,
         const std::string& their_seconds) {
  fmt::print("{:48} {:>12.6g} {:>12.6g} {:>8.4f} {:>9.3f} {:>9}\n", what, cost, theirs, cost / theirs,
             seconds, their_seconds);
  std::fflush(stdout);
}

void cut_head(const char* title, const char* unit) {
  fmt::print("\n{}\n{:48} {:>12} {:>12} {:>8} {:>9} {:>9}\n", title, "file", unit, "theirs", "ratio",
             "seconds", "theirs");
}

void placements(const std::filesystem::path& folder) {
  cut_head("dnn-placement: the largest load, against the optimum", "load");
  for (const Json& row : Json::parse(slurp(folder / "max_load.json"))) {
    const Json json = Json::parse(slurp(folder / row["graph"].get<std::string>()));
    const auto placement = formats::read_placement(formats::JsonNode(json)).value();
    double cost = 0;
    const double seconds =
        bench::processor_seconds_of([&] { cost = partition::place(placement).value().cost; });
    cut(row["graph"], cost, row["optimal_contiguous_max_load"], seconds, "-");
  }
}

void steady(const std::filesystem::path& folder) {
  cut_head("pipedream: a stage's time, against its optimizer", "s");
  const Json reference = Json::parse(slurp(folder / "optimizer_reference.json"));
  for (const Json& row : reference["results"]) {
    std::vector<partition::Level> levels;
    for (std::size_t i = 0; i < row["num_machines"].size(); ++i)
      levels.push_back({row["num_machines"][i], row["bandwidth_Bps"][i]});
    const std::string model = row["model"];
    const auto profile = partition::without_inputs(
        formats::read_profile(slurp(folder / "profiles" / (model + ".graph.txt"))).value());
    double cost = 0;
    const double seconds = bench::processor_seconds_of(
        [&] { cost = partition::cut_steady(profile, levels, row["straight"]).value().cost; });
    cut(fmt::format("{} {}", model, row["topology"].get<std::string>()), cost, row["stage_time_s"], seconds,
        fmt::format("{:.2f}", row["wall_s"].get<double>()));
  }
}

void hybrids(const std::filesystem::path& folder) {
  cut_head("piper: time per sample, against its optimum", "s");
  const Json base = Json::parse(slurp(folder / "bert32a100.json"));
  const Json reference = Json::parse(slurp(folder / "reference.json"));
  for (const Json& row : reference["results"]) {
    if (row["model"] != "bert32" || !row["feasible"].get<bool>()) continue;
    auto hybrid = formats::read_stage_costs(formats::JsonNode(base), base).value();
    hybrid.devices = row["k"];
    hybrid.micro_batches = row["mbsInBatch"];
    hybrid.memory = row["mem_gib"].get<double>() * 1024 * 1024 * 1024;
    hybrid.bandwidth = row["bandwidth_Bps"];
    double cost = 0;
    const double seconds =
        bench::processor_seconds_of([&] { cost = partition::cut_hybrid(hybrid).value().cost; });
    cut(fmt::format("bert32, {} devices, {} GiB", row["k"].get<int>(), row["mem_gib"].get<double>()), cost,
        row["tps"], seconds, fmt::format("{:.2f}", row["search_s"].get<double>()));
  }
}

}  // namespace

int main(int argc, char** argv) {
#ifdef WEFT_SOURCE_DIR
  const std::filesystem::path root = WEFT_SOURCE_DIR;
#else
  const std::filesystem::path root = ".";
#endif
  const std::filesystem::path corpus = argc > 1 ? std::filesystem::path(argv[1]) : root / "../shared/corpus";
  growth();
  const std::pair<const char*, void (*)(const std::filesystem::path&)> parts[] = {
      {"zb-schedules/settings.json", bubble_rates},
      {"dnn-placement", placements},
      {"pipedream", steady},
      {"piper", hybrids}};
  for (const auto& [name, part] : parts) {
    if (std::filesystem::exists(corpus / name)) {
      part(corpus / name);
    } else {
      fmt::print("\n(no published figures: {} not found)\n", (corpus / name).string());
    }
  }
  return 0;
}
