#include <map>
#include <numeric>

#include <fmt/format.h>

#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {
namespace {

// The trip count of a pipeline: its chunks over its unit. Equal fractions give equal trip counts
// for every message size; 0 of 0 stands for steps outside of pipelines.
struct Turning {
  std::int64_t chunks = 0, bytes = 0;
  friend auto operator<=>(const Turning&, const Turning&) = default;
};

class CounterBalance {
 public:
  explicit CounterBalance(const OneSided& plan) : plan_(plan) {}

  std::optional<Finding> find() {
    for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank)
      for (std::size_t block = 0; block < plan_.ranks[rank].blocks.size(); ++block) {
        Where where{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(block), -1};
        add(plan_.ranks[rank].blocks[block], where, {});
      }
    for (const auto& [end, uses] : ends_)
      if (auto finding = judge(end, uses)) return finding;
    return std::nullopt;
  }

 private:
  // A counter, by its waiting end. A channel is numbered among those of the same (rank, peer,
  // path).
  struct End {
    std::int32_t rank = 0;
    Path path = Path::none;  // none: a semaphore
    std::int32_t peer = -1, number = 0;
    friend auto operator<=>(const End&, const End&) = default;
  };
  struct Use {
    std::int64_t raises = 0, takes = 0;
    Where raise, take;  // the last of each
  };

  void add(const std::vector<OneSidedStep>& steps, Where& where, Turning turning) {
    for (const OneSidedStep& step : steps) {
      ++where.step;
      if (step.verb == Verb::pipeline) {
        const std::int64_t shared = std::gcd(std::int64_t{step.unit_chunks}, step.unit_bytes);
        add(step.body, where,
            shared == 0 ? Turning{} : Turning{step.unit_chunks / shared, step.unit_bytes / shared});
        continue;
      }
      const bool puts = step.verb == Verb::put_signal || step.verb == Verb::put_signal_flush;
      const bool raises = puts || step.verb == Verb::signal || step.verb == Verb::relaxed_signal;
      const bool takes = step.verb == Verb::wait || step.verb == Verb::relaxed_wait;
      for (const std::int32_t channel : step.channels) {
        if (!raises && !takes) continue;
        const auto& peers = step.path == Path::memory ? plan_.ranks[where.rank].memory_peers
                                                      : plan_.ranks[where.rank].port_peers;
        const std::int32_t peer = peers[channel];
        std::int32_t number = 0;
        for (std::int32_t i = 0; i < channel; ++i) number += peers[i] == peer;
        if (raises) raise({peer, step.path, where.rank, number}, where, turning);
        if (takes) take({where.rank, step.path, peer, number}, where, turning);
      }
      for (const std::int32_t id : step.semaphores) {
        if (step.verb == Verb::release) raise({where.rank, Path::none, -1, id}, where, turning);
        if (step.verb == Verb::acquire) take({where.rank, Path::none, -1, id}, where, turning);
      }
    }
  }

  void raise(const End& end, const Where& where, const Turning& turning) {
    Use& use = ends_[end][turning];
    ++use.raises;
    use.raise = where;
  }
  void take(const End& end, const Where& where, const Turning& turning) {
    Use& use = ends_[end][turning];
    ++use.takes;
    use.take = where;
  }

  std::string name_of(const End& end) const {
    if (end.path == Path::none) return fmt::format("semaphore {}", end.number);
    return fmt::format("{} channel {} from gpu {} to gpu {}", name(end.path), end.number, end.peer, end.rank);
  }

  std::optional<Finding> judge(const End& end, const std::map<Turning, Use>& uses) const {
    std::int64_t raises = 0, takes = 0;
    const Use* uneven = nullptr;
    for (const auto& [turning, use] : uses) {
      raises += use.raises;
      takes += use.takes;
      if (use.raises != use.takes && uneven == nullptr) uneven = &use;
    }
    if (uneven == nullptr) return std::nullopt;
    const Where& where = uneven->raises > uneven->takes ? uneven->raise : uneven->take;
    if (raises == takes)
      return Finding{
          uneven->raises > uneven->takes ? Verdict::race : Verdict::deadlock, where,
          fmt::format("{} is raised and waited for in loops with different trip counts", name_of(end))};
    if (raises > takes)
      return Finding{
          Verdict::race, where,
          fmt::format("{} is raised {} times per run and waited for {}: the next run begins {} ahead",
                      name_of(end), raises, takes, raises - takes)};
    return Finding{
        Verdict::deadlock, where,
        fmt::format("{} is waited for {} times per run and raised {}", name_of(end), takes, raises)};
  }

  const OneSided& plan_;
  std::map<End, std::map<Turning, Use>> ends_;
};

}  // namespace

std::optional<Finding> check_counters(const OneSided& plan) { return CounterBalance(plan).find(); }

}  // namespace weft::collective
