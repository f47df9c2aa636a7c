#include "weft/collectives/algorithm/summation_service.h"

#include <algorithm>
#include <numeric>

#include "weft/collectives/algorithm/library.h"

namespace weft::collective {

double busiest_card(const SummationService& service, std::int32_t workers, double server_rate) {
  const auto all = static_cast<double>(workers * service.own + service.servers * service.served);
  const double worker = service.own / all, server = service.served / all;
  return std::max(1 + (workers - 2) * worker, workers * server / server_rate);
}

SummationService best_split(std::int32_t workers, std::int32_t servers, double server_rate,
                            std::int32_t most) {
  SummationService best{servers, 0, 1};
  for (std::int32_t served = 1; served <= most; ++served)
    for (std::int32_t own = 0; own <= most; ++own) {
      const SummationService next{servers, own, served};
      // Among equally good splits take the one with the fewest chunks, which comes first.
      constexpr double kSame = 1e-12;
      if (std::gcd(own, served) == 1 &&
          busiest_card(next, workers, server_rate) < busiest_card(best, workers, server_rate) - kSame)
        best = next;
    }
  return best;
}

std::string print(const SummationService& service) {
  const auto number = [](std::int32_t value) { return Argument(std::int64_t{value}); };
  return print(AlgorithmReference{std::string(kSummationService),
                                  {{"servers", number(service.servers)},
                                   {"own", number(service.own)},
                                   {"served", number(service.served)}}});
}

std::optional<SummationService> find_summation_service(std::string_view algorithm) {
  if (!algorithm.starts_with(kSummationService)) return std::nullopt;
  const auto reference = parse_reference(algorithm);
  if (!reference.ok() || reference->name != kSummationService) return std::nullopt;
  const auto number = [&](std::string_view name, std::int32_t otherwise) {
    const auto found = reference->arguments.find(name);
    if (found == reference->arguments.end()) return otherwise;
    const auto* const value = std::get_if<std::int64_t>(&found->second);
    return value == nullptr ? otherwise : static_cast<std::int32_t>(*value);
  };
  return SummationService{number("servers", 1), number("own", 0), number("served", 1)};
}

}  // namespace weft::collective
