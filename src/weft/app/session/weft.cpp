#include "weft/app/session/weft.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/app/session/session.h"
#include "weft/communication/comm/c_boundary.h"
#include "weft/language/complaint.h"
#include "weft/plan/graph/dtype.h"
#include "weft/runtime/run/weights.h"

using weft::comm::guarded;
using weft::comm::tell;
using weft::session::ExitCode;
using weft::session::Format;
using weft::session::Reply;

struct weft_session {
  weft::session::Session session;
  std::atomic<bool> interrupted = false;
  std::function<void(const weft_progress&)> on_progress;
  std::function<void(const weft_search_progress&)> on_search;
};

struct weft_answer {
  std::string text;
  // Storage for the strings of `error`.
  std::string message, hint, report, source;
  bool failed = false;
  weft_error error = {};
};

struct weft_weights {
  weft::run::Weights weights;
  std::vector<std::string> dtypes;  // null-terminated for C
  std::vector<weft_tensor> tensors;
};

namespace {

static_assert(WEFT_OK == static_cast<int>(ExitCode::ok) &&
              WEFT_USER == static_cast<int>(ExitCode::user_error) &&
              WEFT_WORLD == static_cast<int>(ExitCode::environment_error) &&
              WEFT_INTERNAL == static_cast<int>(ExitCode::internal_error) &&
              WEFT_STOPPED == static_cast<int>(ExitCode::stopped));
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may interrupt a session");

void fill_error(weft_answer& answer, Reply reply, std::string_view text) {
  answer.failed = true;
  answer.report = std::move(reply.complaint);
  const weft::Error error = std::move(reply.error).value();
  answer.message = error.message;
  answer.hint = error.hint;
  answer.source = error.text != nullptr ? *error.text : std::string(text);
  answer.error = {.status = static_cast<int>(reply.exit_code),
                  .message = answer.message.c_str(),
                  .hint = answer.hint.c_str(),
                  .report = answer.report.c_str(),
                  .text = answer.source.c_str(),
                  .line = 0,
                  .column = 0,
                  .offset = 0,
                  .length = 0};
  if (!error.span.known()) return;
  const auto [line, column] = weft::language::position(answer.source, error.span.offset);
  answer.error.line = static_cast<int64_t>(line);
  answer.error.column = static_cast<int64_t>(column);
  answer.error.offset = error.span.offset;
  answer.error.length = error.span.length;
}

// Turns exceptions that no statement caught into a reply with an internal error.
Reply execute(weft_session& session, std::string_view text) {
  try {
    return session.session.execute(text);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& exception) {
    return {ExitCode::internal_error,
            {},
            fmt::format("internal error: {}\n", exception.what()),
            weft::environment_error(exception.what())};
  }
}

// Passes on what the session reports to the function for its kind.
void listen(weft_session& session) {
  session.session.on_progress = nullptr;
  if (!session.on_progress && !session.on_search) return;
  session.session.on_progress = [&session](const weft::explain::Progress& now) {
    if (now.search && session.on_search)
      session.on_search({.model = now.model.c_str(),
                         .candidates = now.step,
                         .best_seconds = now.search->best_seconds,
                         .bound_seconds = now.search->bound_seconds,
                         .seconds = now.search->seconds});
    if (!now.search && session.on_progress)
      session.on_progress({.model = now.model.c_str(),
                           .step = now.step,
                           .steps = now.steps,
                           .loss = now.loss,
                           .rows_per_second = now.rows_per_second,
                           .seconds_left = now.seconds_left});
  };
}

const char* missing_argument(const weft_session* session, const char* text, weft_answer* const* answer) {
  return session == nullptr ? "session" : text == nullptr ? "text" : answer == nullptr ? "answer" : nullptr;
}

}  // namespace

const char* weft_version(void) { return WEFT_VERSION; }

int weft_session_open(weft_session** session) {
  return guarded([&] {
    if (session == nullptr) return tell(weft::user_error("session is NULL"));
    *session = nullptr;
    auto made = std::make_unique<weft_session>();
    made->session.interrupted = [flag = &made->interrupted] { return flag->load(std::memory_order_relaxed); };
    *session = made.release();
    return static_cast<int>(WEFT_OK);
  });
}

void weft_session_close(weft_session* session) { delete session; }

int weft_session_execute(weft_session* session, const char* text, int format, weft_answer** answer) {
  return guarded([&] {
    if (answer != nullptr) *answer = nullptr;
    if (const char* missing = missing_argument(session, text, answer))
      return tell(weft::user_error(fmt::format("{} is NULL", missing)));
    if (format != WEFT_TEXT && format != WEFT_JSON && format != WEFT_JSON_WITH_REPORT)
      return tell(weft::user_error(fmt::format("no such format: {}", format)));
    session->interrupted.store(false, std::memory_order_relaxed);
    session->session.format = format == WEFT_TEXT ? Format::text : Format::json;
    session->session.with_report = format == WEFT_JSON_WITH_REPORT;
    auto made = std::make_unique<weft_answer>();
    Reply reply = execute(*session, text);
    const int status = static_cast<int>(reply.exit_code);
    made->text = std::move(reply.output);
    if (status != WEFT_OK) fill_error(*made, std::move(reply), text);
    if (status != WEFT_OK) weft::comm::remember(made->message);
    *answer = made.release();
    return status;
  });
}

const char* weft_answer_text(const weft_answer* answer) {
  return answer == nullptr ? "" : answer->text.c_str();
}
size_t weft_answer_size(const weft_answer* answer) { return answer == nullptr ? 0 : answer->text.size(); }
const weft_error* weft_answer_error(const weft_answer* answer) {
  return answer != nullptr && answer->failed ? &answer->error : nullptr;
}
void weft_answer_free(weft_answer* answer) { delete answer; }

void weft_session_on_answer(weft_session* session, weft_on_answer function, void* data) {
  guarded([&] {
    if (session == nullptr) return tell(weft::user_error("session is NULL"));
    session->session.on_output = nullptr;
    if (function != nullptr)
      session->session.on_output = [function, data](std::string_view text) {
        const std::string ended(text);  // null-terminated for C
        function(ended.c_str(), ended.size(), data);
      };
    return static_cast<int>(WEFT_OK);
  });
}

void weft_session_on_progress(weft_session* session, weft_on_progress function, void* data) {
  guarded([&] {
    if (session == nullptr) return tell(weft::user_error("session is NULL"));
    session->on_progress = nullptr;
    if (function != nullptr)
      session->on_progress = [function, data](const weft_progress& progress) { function(&progress, data); };
    listen(*session);
    return static_cast<int>(WEFT_OK);
  });
}

void weft_session_on_search(weft_session* session, weft_on_search function, void* data) {
  guarded([&] {
    if (session == nullptr) return tell(weft::user_error("session is NULL"));
    session->on_search = nullptr;
    if (function != nullptr)
      session->on_search = [function, data](const weft_search_progress& progress) {
        function(&progress, data);
      };
    listen(*session);
    return static_cast<int>(WEFT_OK);
  });
}

void weft_session_interrupt(weft_session* session) {
  if (session != nullptr) session->interrupted.store(true, std::memory_order_relaxed);
}

int weft_session_weights(weft_session* session, const char* model, weft_weights** weights) {
  return guarded([&] {
    if (weights != nullptr) *weights = nullptr;
    if (session == nullptr || model == nullptr || weights == nullptr)
      return tell(weft::user_error(fmt::format("{} is NULL", session == nullptr ? "session"
                                                             : model == nullptr ? "model"
                                                                                : "weights")));
    const auto found = session->session.weights(model);
    if (!found.ok()) return tell(found.error());
    auto made = std::make_unique<weft_weights>();
    made->weights = **found;
    const std::size_t count = made->weights.tensors.size();
    made->dtypes.reserve(count);  // addresses must not change
    made->tensors.reserve(count);
    for (const auto& [name, tensor] : made->weights.tensors) {
      made->dtypes.emplace_back(weft::plan::name(tensor.dtype));
      made->tensors.push_back({.name = name.c_str(),
                               .dtype = made->dtypes.back().c_str(),
                               .shape = tensor.shape.data(),
                               .dimensions = tensor.shape.size(),
                               .data = tensor.bytes.data(),
                               .size = tensor.bytes.size()});
    }
    *weights = made.release();
    return static_cast<int>(WEFT_OK);
  });
}

int64_t weft_weights_step(const weft_weights* weights) {
  return weights == nullptr ? 0 : weights->weights.step;
}
size_t weft_weights_count(const weft_weights* weights) {
  return weights == nullptr ? 0 : weights->tensors.size();
}
const weft_tensor* weft_weights_tensor(const weft_weights* weights, size_t index) {
  return index < weft_weights_count(weights) ? &weights->tensors[index] : nullptr;
}
void weft_weights_free(weft_weights* weights) { delete weights; }
