#include "weft/planner/search/codec/choose_codecs.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::search {
namespace {

// Size thresholds tried per kind and codec. Each is one simulation.
constexpr std::size_t kMostLimits = 5;

class CodecSearch {
 public:
  CodecSearch(const PredictedPlan& before, const Machine& machine, const Codecs& codecs,
              const ChooseCodecsOptions& options)
      : before_(before),
        machine_(machine),
        codecs_(codecs),
        options_(options),
        exchanges_(codable_exchanges(before.plan, codecs)),
        picks_(before.plan.graph.node_count()),
        seconds_(before.prediction.seconds) {}

  Result<ChosenCodecs> run() {
    WEFT_TRY_STATUS(look(codecs_.gradients, true));
    WEFT_TRY_STATUS(look(codecs_.weights, false));
    if (best_ && !is_asked_for() && options_.finished) {
      WEFT_TRY(with, options_.finished(*best_));
      WEFT_TRY(without, options_.finished(before_));
      if (with >= without) forget();
    }
    ChosenCodecs chosen;
    WEFT_TRY(made, place_codecs(before_.plan, codecs_, picks_));
    chosen.exchanges = std::move(made.exchanges);
    chosen.plan = std::move(best_);
    return chosen;
  }

 private:
  bool is_asked_for() const { return codecs_.gradients.always || codecs_.weights.always; }

  void forget() {
    best_.reset();
    std::ranges::fill(picks_, std::nullopt);
  }

  std::vector<std::int64_t> limits_of(const CodecChoice& choice, bool gradients) const {
    std::vector<std::int64_t> bytes;
    for (const CodableExchange& exchange : exchanges_)
      if (exchange.is_gradient == gradients) bytes.push_back(exchange.bytes);
    return sizes_to_try(std::move(bytes), choice.always);
  }

  Status look(const CodecChoice& choice, bool gradients) {
    const CodecPicks before = picks_;
    bool must = choice.always;
    for (const std::int64_t limit : limits_of(choice, gradients))
      for (std::size_t codec = 0; codec < choice.codecs.size(); ++codec) {
        if (!must && std::chrono::steady_clock::now() >= options_.until) return {};
        CodecPicks picks = before;
        for (const CodableExchange& exchange : exchanges_)
          if (exchange.is_gradient == gradients && exchange.bytes >= limit)
            picks[exchange.node.value] = codec;
        WEFT_TRY(made, place_codecs(before_.plan, codecs_, picks));
        if (!made.any()) continue;
        WEFT_TRY(predicted, predict(std::move(made.plan)));
        const double bytes = predicted.prediction.peak_bytes;
        const bool fits = options_.memory_bytes <= 0 ||
                          bytes <= std::max(options_.memory_bytes, before_.prediction.peak_bytes);
        if (!fits && must)
          return user_error(
              fmt::format("codecs need {} per rank, {} available", print_bytes(bytes),
                          print_bytes(options_.memory_bytes)),
              "without `always`, Weft uses them where they fit; without feedback, they keep no state");
        if (!fits || (!must && predicted.prediction.seconds >= seconds_)) continue;
        must = false;
        seconds_ = predicted.prediction.seconds;
        best_ = std::move(predicted);
        picks_ = std::move(picks);
      }
    return {};
  }

  Result<PredictedPlan> predict(distribute::DistributedPlan plan) const {
    PredictedPlan made;
    made.plan = std::move(plan);
    WEFT_TRY(costs, machine_.costs(made.plan.mesh));
    WEFT_TRY(prediction, sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs,
                                      {.overlap = machine_.overlap, .workers = machine_.workers}));
    made.prediction = std::move(prediction);
    return made;
  }

  const PredictedPlan& before_;
  const Machine& machine_;
  const Codecs& codecs_;
  const ChooseCodecsOptions& options_;
  const std::vector<CodableExchange> exchanges_;
  CodecPicks picks_;
  double seconds_;  // of the best plan so far
  std::optional<PredictedPlan> best_;
};

}  // namespace

std::vector<std::int64_t> sizes_to_try(std::vector<std::int64_t> bytes, bool always) {
  std::ranges::sort(bytes, std::greater<>());
  bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
  if (bytes.empty() || always) return bytes.empty() ? bytes : std::vector{bytes.back()};
  std::vector<std::int64_t> sizes;
  const std::size_t count = std::min(bytes.size(), kMostLimits);
  for (std::size_t i = 1; i <= count; ++i) sizes.push_back(bytes[i * bytes.size() / count - 1]);
  return sizes;
}

Result<ChosenCodecs> choose_codecs(const PredictedPlan& before, const Machine& machine, const Codecs& codecs,
                                   const ChooseCodecsOptions& options) {
  return CodecSearch(before, machine, codecs, options).run();
}

}  // namespace weft::search
