// weft/communication/transport/doctor_responder.h -- answers `weft doctor` for ranks outside a process
// job.
//
// In a process job, the job's watcher thread answers (Job::on_doctor_query). A single rank, or one that
// is a thread, has this instead: a socket and a thread that sleeps until a query arrives.
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace weft::transport {

class DoctorResponder {
 public:
  // `answer` returns text as doctor.h describes; it runs on the internal thread until this is
  // destroyed. Without a socket, queries are not answered.
  explicit DoctorResponder(std::function<std::string()> answer);
  ~DoctorResponder();
  DoctorResponder(const DoctorResponder&) = delete;
  DoctorResponder& operator=(const DoctorResponder&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::transport
