// Ranks as threads of this process, each with a communicator that contains all of them.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elsewhere_job.h"
#include "weft/communication/comm/communicator.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

inline Options plain(TransportKind transport) {
  Options options;
  options.transport = transport;
  options.statistics = "none";
  return options;
}

// For transports that need several hosts: the first half of the ranks is on one host and the rest
// on another.
inline std::vector<std::shared_ptr<transport::Job>> make_jobs(std::int32_t ranks, TransportKind transport) {
  constexpr std::chrono::seconds kTimeout{10};
  std::vector<std::shared_ptr<transport::Job>> jobs;
  if (transport == TransportKind::mixed) {
    std::vector<std::string> hosts;
    for (std::int32_t rank = 0; rank < ranks; ++rank) hosts.emplace_back(2 * rank < ranks ? "here" : "there");
    for (auto& job : transport::make_elsewhere(hosts, kTimeout)) jobs.push_back(std::move(job));
  } else {
    for (auto& job : transport::make_thread_jobs(ranks, kTimeout)) jobs.push_back(std::move(job));
  }
  return jobs;
}

// Runs `body` on `ranks` threads. The second variant also receives the rank's job.
inline void on_jobs(std::int32_t ranks, const Options& options,
                    const std::function<void(Communicator&, transport::Job&)>& body) {
  auto jobs = make_jobs(ranks, options.transport);
  std::vector<std::thread> threads;
  for (auto& job : jobs) {
    threads.emplace_back([&options, &body, job = std::move(job)] {
      auto made = Communicator::create(job, options);
      ASSERT_TRUE(made.ok()) << made.error().message;
      body(**made, *job);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void on_ranks(std::int32_t ranks, const Options& options,
                     const std::function<void(Communicator&)>& body) {
  on_jobs(ranks, options, [&](Communicator& group, transport::Job&) { body(group); });
}

}  // namespace weft::comm
