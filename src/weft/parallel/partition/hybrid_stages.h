// weft/parallel/partition/hybrid_stages.h -- the cost of a stage between two ideals, on demand.
#pragma once
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "weft/parallel/partition/choices.h"
#include "weft/parallel/partition/hybrid.h"

namespace weft::partition {

class HybridStages {
 public:
  HybridStages(const Hybrid& hybrid, const Ideals& ideals);

  // The nodes between two ideals, the smaller first, with a tensor-parallel degree that all of them
  // support.
  struct Part {
    std::int32_t inner = 0, degree = 0;
    std::uint32_t number = 0;
    // Sums over the nodes, each with its individually best variant.
    double seconds = 0, parameters = 0, held = 0, kept = 0;
  };
  // All parts that end at an ideal.
  const std::vector<Part>& ending(std::int32_t outer) const { return parts_[slot(outer)]; }
  const std::vector<std::int32_t>& replicas() const { return replicas_; }

  // The largest number of micro-batches in flight, up to `most`, with which the part on this many
  // replicas takes at most `limit` seconds; 0: none.
  std::int32_t most_in_flight(const Part& part, std::int32_t outer, std::int32_t replicas, double limit,
                              std::int32_t most);
  // The variant of each node between the ideals, in ascending order, and their cost.
  Choices ways(const Part& part, std::int32_t outer, std::int32_t replicas, std::int32_t in_flight,
               double limit);
  // Whether the variants of every queried part are known to be optimal.
  bool exact() const { return exact_; }
  // A lower bound on the device-seconds of a node.
  double least_work(std::int32_t node) const { return least_work_[slot(node)]; }

 private:
  struct Known {
    double cost = 0, bound = 0;
  };
  // The number in flight is monotonic in the limit, so answers for two enclosing limits often
  // decide a query.
  struct Bracket {
    double low_limit = 0, high_limit = std::numeric_limits<double>::infinity();
    std::int32_t low = 0, high = std::numeric_limits<std::int32_t>::max();
  };
  // A variant of a node in the part that was queried last, per replica.
  struct OwnWay {
    double seconds = 0, parameters = 0, held = 0, kept = 0;
  };
  bool within_limit(const Part& part, std::int32_t outer, std::int32_t replicas, std::int32_t in_flight,
                    double limit);
  const Items& items(const Part& part, std::int32_t outer, std::int32_t replicas, std::int32_t in_flight);
  // Seconds of a node in a part per replica, including synced bytes.
  double own_seconds(std::int32_t node, const Way& way, std::int32_t inner, std::int32_t outer) const;
  double resync(double parameters, std::int32_t replicas) const {
    return 4.0 * (replicas - 1) * parameters / replicas / hybrid_.micro_batches / hybrid_.bandwidth;
  }
  const std::vector<Way>* ways_of(std::int32_t node, std::int32_t degree) const;

  const Hybrid& hybrid_;
  const Ideals& ideals_;
  std::vector<std::vector<std::int32_t>> incoming_, outgoing_;  // positions in Hybrid::edges
  std::vector<std::vector<Part>> parts_;                        // by outer ideal
  std::vector<std::int32_t> replicas_;                          // ascending
  std::vector<double> least_work_;
  std::unordered_map<std::uint64_t, Known> known_;
  std::unordered_map<std::uint64_t, Bracket> brackets_;
  std::uint32_t last_part_ = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::vector<OwnWay>> last_ways_;
  Items items_;
  bool exact_ = true;
};

}  // namespace weft::partition
