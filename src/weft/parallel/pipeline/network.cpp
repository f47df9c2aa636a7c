#include "weft/parallel/pipeline/network.h"

#include <algorithm>

namespace weft::pipeline {

Network::Network(const Schedule& shape, const Times& times, bool whole_backward)
    : m_(shape.micro_batches), positions_(shape.positions()), stages_(shape.stages) {
  const std::size_t size = static_cast<std::size_t>(count());
  stage_.resize(size);
  needs_.assign(size, -1);
  feeds_.assign(size, -1);
  seconds_.resize(size);
  wire_.assign(size, 0);
  for (std::int32_t micro = 0; micro < m_; ++micro) {
    for (std::int32_t place = 0; place < positions_; ++place) {
      const std::int32_t stage = shape.stage_at(place, micro);
      const auto timed = at(shape.timed_as(stage, shape.chunk_at(place, micro)));
      const std::int32_t forward = number(0, micro, place), backward = number(1, micro, place),
                         weight = number(2, micro, place);
      for (const std::int32_t pass : {forward, backward, weight}) stage_[at(pass)] = stage;
      const double share = shape.share();
      seconds_[at(forward)] = times.forward[timed] * share;
      seconds_[at(backward)] = (times.backward[timed] + (whole_backward ? times.weight[timed] : 0)) * share;
      seconds_[at(weight)] = times.weight[timed] * share;
      needs_[at(weight)] = backward;
      if (place > 0) {
        needs_[at(forward)] = number(0, micro, place - 1);
        wire_[at(forward)] = times.between(shape.stage_at(place - 1, micro), stage);
      }
      needs_[at(backward)] = forward;
      if (place + 1 < positions_) {
        needs_[at(backward)] = number(1, micro, place + 1);
        wire_[at(backward)] = times.between(shape.stage_at(place + 1, micro), stage);
      }
    }
  }
  for (std::int32_t pass = 0; pass < count(); ++pass)
    if (const std::int32_t need = needs_[at(pass)]; need >= 0 && kind(pass) != 2) feeds_[at(need)] = pass;
}

bool Network::time(const std::vector<std::vector<std::int32_t>>& orders, std::vector<double>& begin) const {
  begin.assign(static_cast<std::size_t>(count()), -1);
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> free(orders.size(), 0);
  std::vector<std::int32_t> awake;
  for (std::int32_t stage = stages_ - 1; stage >= 0; --stage) awake.push_back(stage);
  while (!awake.empty()) {
    const std::size_t stage = at(awake.back());
    awake.pop_back();
    while (next[stage] < orders[stage].size()) {
      const std::int32_t pass = orders[stage][next[stage]];
      double start = free[stage];
      if (const std::int32_t need = needs(pass); need >= 0) {
        if (begin[at(need)] < 0) break;
        start = std::max(start, begin[at(need)] + seconds(need) + wire(pass));
      }
      begin[at(pass)] = start;
      free[stage] = start + seconds(pass);
      ++next[stage];
      if (const std::int32_t fed = feeds(pass); fed >= 0) {
        const std::size_t other = at(this->stage(fed));
        if (other != stage && next[other] < orders[other].size() && orders[other][next[other]] == fed)
          awake.push_back(static_cast<std::int32_t>(other));
      }
    }
  }
  for (std::size_t stage = 0; stage < orders.size(); ++stage)
    if (next[stage] < orders[stage].size()) return false;
  return true;
}

}  // namespace weft::pipeline
