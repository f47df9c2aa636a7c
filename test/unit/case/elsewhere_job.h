// test/unit/case/elsewhere_job.h -- threads of this process that claim to be on other machines.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

// A job of threads whose members report other hosts. A test can observe what they exchange.
class Elsewhere final : public Job {
 public:
  Elsewhere(std::shared_ptr<Job> job, std::vector<Member> members)
      : job_(std::move(job)), members_(std::move(members)) {}

  std::function<void(std::vector<Parcel>&)> on_exchange;
  Job& inner() { return *job_; }
  bool seals = false;
  bool secure() const override { return seals; }
  std::vector<Member>& members() { return members_; }  // as this rank sees them; set before use

  std::int32_t rank() const override { return job_->rank(); }
  std::int32_t ranks() const override { return job_->ranks(); }
  const Member& member(std::int32_t rank) const override { return members_[static_cast<std::size_t>(rank)]; }
  std::chrono::milliseconds timeout() const override { return job_->timeout(); }
  Result<std::vector<Parcel>> exchange(std::span<const std::int32_t> members, Topic topic,
                                       Parcel mine) override {
    auto parcels = job_->exchange(members, topic, std::move(mine));
    if (parcels.ok() && on_exchange) on_exchange(*parcels);
    return parcels;
  }
  void send(std::int32_t to, Topic topic, std::string_view bytes) override { job_->send(to, topic, bytes); }
  void handle(std::uint64_t group, Handler handler) override { job_->handle(group, std::move(handler)); }
  std::vector<Death> deaths() const override { return job_->deaths(); }
  std::uint64_t on_death(DeathListener listener) override { return job_->on_death(std::move(listener)); }
  void forget(std::uint64_t listener) override { job_->forget(listener); }
  Result<std::vector<std::int32_t>> agree_on_survivors(std::span<const std::int32_t> members,
                                                       Topic topic) override {
    return job_->agree_on_survivors(members, topic);
  }
  void on_doctor_query(std::function<std::string()> answer) override {
    job_->on_doctor_query(std::move(answer));
  }
  void leave() override { job_->leave(); }

 private:
  std::shared_ptr<Job> job_;
  std::vector<Member> members_;
};

// One job per named host; equal names are one machine.
inline std::vector<std::shared_ptr<Elsewhere>> make_elsewhere(const std::vector<std::string>& hosts,
                                                              std::chrono::milliseconds timeout) {
  std::vector<Member> members;
  for (const std::string& host : hosts) members.push_back({.host = host, .address = "", .process = 1});
  std::vector<std::shared_ptr<Elsewhere>> jobs;
  for (auto& job : make_thread_jobs(static_cast<std::int32_t>(hosts.size()), timeout))
    jobs.push_back(std::make_shared<Elsewhere>(std::move(job), members));
  return jobs;
}

// Retries until it succeeds, as an interpreter would. Returns false on a fault or after ten
// seconds. A missed wake-up shows as a long wait.
template <class Try>
bool until(Endpoint& endpoint, std::chrono::seconds wait, Try attempt) {
  using Clock = std::chrono::steady_clock;
  for (const auto deadline = Clock::now() + std::chrono::seconds(10); Clock::now() < deadline;) {
    const std::uint32_t seen = endpoint.signal();
    if (attempt()) return true;
    if (endpoint.fault()) return false;
    endpoint.wait(seen, wait);
  }
  return false;
}

}  // namespace weft::transport
