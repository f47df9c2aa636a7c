#include "weft/planner/search/codec/codec_use.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/planner/search/codec/choose_codecs.h"
#include "weft/planner/search/codec/encode_boundaries.h"

namespace weft::search {

Result<CodedPlan> place_codecs(const distribute::DistributedPlan& plan, const CodecUse& use) {
  CodecPicks picks(plan.graph.node_count());
  for (const CodableExchange& exchange : codable_exchanges(plan, use.allowed)) {
    const std::optional<CodecUse::From>& from = exchange.is_gradient ? use.gradients : use.weights;
    if (from && exchange.bytes >= from->bytes) picks[exchange.node.value] = from->codec;
  }
  WEFT_TRY(made, place_codecs(plan, use.allowed, picks));
  if (!plan.time || !use.allowed.activations.any()) return made;
  const std::optional<CodecUse::From>& from = use.activations;
  WEFT_TRY(crossing,
           encode_boundaries(made.plan, use.allowed.activations,
                             from ? std::optional(from->codec) : std::nullopt, from ? from->bytes : 0));
  made.plan = std::move(crossing.plan);
  made.exchanges.insert(made.exchanges.end(), crossing.exchanges.begin(), crossing.exchanges.end());
  return made;
}

namespace {

class UseSearch {
 public:
  UseSearch(const Codecs& codecs, const std::function<Result<EstimatedUse>(const CodecUse&)>& price)
      : price_(price) {
    best_.allowed = codecs;
  }

  Status begin() {
    WEFT_TRY(without, price_(best_));
    seconds_ = without.seconds;
    fits_ = without.fits;
    return {};
  }

  Status look(const CodecChoice& choice, std::vector<std::int64_t> bytes,
              std::optional<CodecUse::From> CodecUse::*kind) {
    bool must = choice.always;
    const CodecUse before = best_;
    for (const std::int64_t least : sizes_to_try(std::move(bytes), choice.always))
      for (std::size_t codec = 0; codec < choice.codecs.size(); ++codec) {
        CodecUse use = before;
        use.*kind = CodecUse::From{codec, least};
        WEFT_TRY(priced, price_(use));
        const bool fits = priced.fits || !fits_;
        if (!fits && must)
          return user_error(
              "codecs do not fit in a rank's memory",
              "without `always`, Weft uses them where they fit; without feedback, they keep no state");
        if (!fits || (!must && priced.seconds >= seconds_)) continue;
        must = false;
        seconds_ = priced.seconds;
        best_ = std::move(use);
      }
    return {};
  }

  CodecUse best() && { return std::move(best_); }

 private:
  const std::function<Result<EstimatedUse>(const CodecUse&)>& price_;
  CodecUse best_;
  double seconds_ = 0;
  bool fits_ = true;  // without codecs
};

}  // namespace

Result<CodecUse> choose_use(const distribute::DistributedPlan& plan, const Codecs& codecs,
                            const std::function<Result<EstimatedUse>(const CodecUse&)>& price) {
  UseSearch search(codecs, price);
  WEFT_TRY_STATUS(search.begin());
  std::vector<std::int64_t> gradients, weights;
  for (const CodableExchange& exchange : codable_exchanges(plan, codecs))
    (exchange.is_gradient ? gradients : weights).push_back(exchange.bytes);
  WEFT_TRY(crossings, encodable_boundaries(plan, codecs.activations));
  WEFT_TRY_STATUS(search.look(codecs.gradients, std::move(gradients), &CodecUse::gradients));
  WEFT_TRY_STATUS(search.look(codecs.weights, std::move(weights), &CodecUse::weights));
  WEFT_TRY_STATUS(search.look(codecs.activations, std::move(crossings), &CodecUse::activations));
  return std::move(search).best();
}

}  // namespace weft::search
