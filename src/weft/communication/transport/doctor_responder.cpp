#include "weft/communication/transport/doctor_responder.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <system_error>
#include <thread>
#include <utility>

#include "weft/communication/transport/doctor.h"

namespace weft::transport {

struct DoctorResponder::State {
  std::function<std::string()> answer;
  tcp::Socket questions, stop;
  std::thread thread;

  void serve() const {
    sigset_t all;
    ::sigfillset(&all);  // signals go to the application's threads
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (;;) {
      pollfd wanted[] = {{stop.descriptor(), POLLIN, 0}, {questions.descriptor(), POLLIN, 0}};
      ::poll(wanted, 2, -1);
      if (wanted[0].revents != 0) return;
      if (wanted[1].revents == 0) continue;
      Result<tcp::Socket> asker = accept_doctor_query(questions);
      if (!asker.ok()) return;
      if (*asker) answer_doctor_query(std::move(*asker), answer());
    }
  }
};

DoctorResponder::DoctorResponder(std::function<std::string()> answer) : state_(std::make_unique<State>()) {
  state_->answer = std::move(answer);
  state_->questions = open_doctor_socket();
  state_->stop = tcp::Socket(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!state_->questions || !state_->stop) return;
  try {
    state_->thread = std::thread([state = state_.get()] { state->serve(); });
  } catch (const std::system_error&) {
    state_->questions.close();  // without a thread, queries would hang
  }
}

DoctorResponder::~DoctorResponder() {
  if (!state_->thread.joinable()) return;
  ::eventfd_write(state_->stop.descriptor(), 1);
  state_->thread.join();
}

}  // namespace weft::transport
