#include "weft/predict/sim/trace/traffic.h"

#include <algorithm>

namespace weft::sim {

Traffic::Traffic(const TraceNetwork& network, WireModel model, Folded folded)
    : network_(network), model_(model), folded_(folded) {
  const std::int64_t ranks = folded == Folded::yes ? 1 : network.ranks();
  std::int64_t wires = 0;
  for (const TraceDimension& dimension : network.dimensions) {
    first_wire_.push_back(wires);
    wires += dimension.wires_per_rank() * ranks;
  }
  if (model != WireModel::uncontended) free_.resize(static_cast<std::size_t>(wires), 0);
}

void Traffic::push(double time, std::int32_t message, const Note& note) {
  heap_.push_back({time, order_++, message, note});
  std::push_heap(heap_.begin(), heap_.end());
}

void Traffic::send(double now, std::int32_t from, std::int32_t to, double bytes, const Note& note) {
  if (from == to) return tell(now, note);
  if (model_ == WireModel::uncontended) {
    double latency = 0, seconds = 0;
    network_.route(from, to, [&](std::size_t d, std::int32_t, std::int32_t) {
      latency += network_.dimensions[d].latency_seconds;
      seconds = std::max(seconds, bytes / network_.dimensions[d].bytes_per_second);
    });
    return tell(now + latency + seconds, note);
  }
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::int32_t>(messages_.size()));
    messages_.emplace_back();
  }
  const std::int32_t number = unused_.back();
  unused_.pop_back();
  Message& message = messages_[static_cast<std::size_t>(number)];
  message.note = note;
  message.hops.clear();
  message.at = 0;
  message.tail = 0;
  network_.route(from, to, [&](std::size_t d, std::int32_t rank, std::int32_t port) {
    const TraceDimension& dimension = network_.dimensions[d];
    const std::int64_t owner = folded_ == Folded::yes ? 0 : rank;
    message.hops.push_back({first_wire_[d] + owner * dimension.wires_per_rank() + port,
                            bytes / dimension.bytes_per_second, dimension.latency_seconds});
  });
  advance(now, number);
}

void Traffic::advance(double now, std::int32_t number) {
  Message& message = messages_[static_cast<std::size_t>(number)];
  const Hop& hop = message.hops[message.at++];
  double& free = free_[static_cast<std::size_t>(hop.wire)];
  const double begin = std::max(now, free);
  free = begin + hop.seconds;
  // A fast wire after a slow one finishes no sooner than the slow one has delivered the last byte.
  message.tail = std::max(free, message.tail) + hop.latency;
  if (message.at == message.hops.size()) {
    push(message.tail, -1, message.note);
    unused_.push_back(number);
  } else {
    push(model_ == WireModel::cut_through ? begin + hop.latency : message.tail, number, {});
  }
}

std::optional<Happening> Traffic::next() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Entry entry = heap_.back();
    heap_.pop_back();
    ++events_;
    if (entry.message < 0) return Happening{entry.time, entry.note};
    advance(entry.time, entry.message);
  }
  return {};
}

}  // namespace weft::sim
