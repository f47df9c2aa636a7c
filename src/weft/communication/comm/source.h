// weft/communication/comm/source.h -- where a rank sleeps until another rank makes progress.
//
// As in endpoint.h: signal(), check again, wait().
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include "weft/communication/transport/endpoint.h"

namespace weft::comm {

class DirectGroup;

class Source {
 public:
  virtual ~Source() = default;
  virtual std::uint32_t signal() = 0;
  virtual void wait(std::uint32_t seen, std::chrono::nanoseconds patience) = 0;
  virtual void wake() = 0;
};

// The argument must outlive the source.
std::unique_ptr<Source> source_of(DirectGroup& group);
std::unique_ptr<Source> source_of(transport::Endpoint& endpoint);

}  // namespace weft::comm
