// weft/communication/transport/answering.h -- answers `weft doctor` for ranks that are in no job of processes.
//
// A rank whose process is a job's has the job's watcher for that (Job::on_question). One that computes alone, or is a
// thread beside others, has this: a socket and a thread that sleeps until it is asked.
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace weft::transport {

class Answering {
 public:
  // `answer` begins as doctor.h says; it runs on the thread, until this is gone. Where there can be no socket nobody is
  // answered.
  explicit Answering(std::function<std::string()> answer);
  ~Answering();
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::transport
