// Statements through the C functions of weft.h. test/install runs them from C, out of the installed library.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "weft/app/session/weft.h"
#include "weft/communication/comm/weft_comm.h"

namespace {

struct Closer {
  void operator()(weft_session* session) const { weft_session_close(session); }
  void operator()(weft_answer* answer) const { weft_answer_free(answer); }
};
using SessionHandle = std::unique_ptr<weft_session, Closer>;
using AnswerHandle = std::unique_ptr<weft_answer, Closer>;

SessionHandle open_session() {
  weft_session* session = nullptr;
  EXPECT_EQ(weft_session_open(&session), WEFT_OK);
  return SessionHandle(session);
}

struct Executed {
  int status = -1;
  AnswerHandle answer;

  std::string text() const { return weft_answer_text(answer.get()); }
  const weft_error* error() const { return weft_answer_error(answer.get()); }
};

Executed execute(const SessionHandle& session, const char* text, int format = WEFT_TEXT) {
  weft_answer* answer = nullptr;
  const int status = weft_session_execute(session.get(), text, format, &answer);
  return {status, AnswerHandle(answer)};
}

TEST(CSession, AnswersInTextAndJson) {
  const SessionHandle session = open_session();
  const Executed text = execute(session, "SET search_limit = 3");
  EXPECT_EQ(text.status, WEFT_OK);
  EXPECT_EQ(text.text(), "search_limit = 3\n");
  EXPECT_EQ(weft_answer_size(text.answer.get()), text.text().size());
  EXPECT_EQ(text.error(), nullptr);
  const Executed json = execute(session, "SET search_limit = 4", WEFT_JSON);
  EXPECT_EQ(json.text(), "{\"set\":\"search_limit\",\"value\":\"4\"}\n");
}

TEST(CSession, ErrorsHaveALocationAndHint) {
  const SessionHandle session = open_session();
  const char* statements = "SET search_limit = 3;\nEXPLAIN TRAIN gpt2 ON pood";
  const Executed executed = execute(session, statements);
  EXPECT_EQ(executed.status, WEFT_USER);
  EXPECT_EQ(executed.text(), "search_limit = 3\n") << "what ran before the error has answered";
  const weft_error* error = executed.error();
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->status, WEFT_USER);
  EXPECT_STREQ(error->message, "unknown cluster or device: pood");
  EXPECT_STREQ(error->hint, "did you mean 'pod'?");
  EXPECT_STREQ(error->text, statements);
  EXPECT_EQ(error->line, 2);
  EXPECT_EQ(error->column, 23);
  EXPECT_EQ(std::string(error->text + error->offset, error->length), "pood");
  EXPECT_STREQ(error->report,
               "error 2:23: unknown cluster or device: pood\n  EXPLAIN TRAIN gpt2 ON pood\n                  "
               "      ^^^^\n"
               "  did you mean 'pod'?\n");
  EXPECT_STREQ(weft_last_error(), "unknown cluster or device: pood");
}

// A layer binds where a model uses it: the error is in the layer's text, not in the statement that
// was executed.
TEST(CSession, ErrorsInADefinitionPointIntoTheDefinition) {
  const SessionHandle session = open_session();
  const char* layer = "CREATE LAYER wrong(x[b, d]) PARAMETER w[d]\nAS SELECT x * ww FROM x, w";
  const Executed made = execute(session, layer);
  const Executed used =
      execute(session, "CREATE MODEL m (b = 1, d = 4) INPUT x[b, d] AS SELECT * FROM wrong(x)");
  ASSERT_EQ(made.status, WEFT_OK) << made.error()->report;
  ASSERT_EQ(used.status, WEFT_USER);
  const weft_error* error = used.error();
  EXPECT_STREQ(error->text, layer);
  EXPECT_EQ(error->line, 2);
  EXPECT_EQ(std::string(error->text + error->offset, error->length), "ww");
}

TEST(CSession, ErrorsWithoutALocationHaveNoLine) {
  const SessionHandle session = open_session();
  const Executed executed = execute(session, "LOAD digits_mlp FROM '/nowhere/at/all.safetensors'");
  EXPECT_EQ(executed.status, WEFT_WORLD);
  ASSERT_NE(executed.error(), nullptr);
  EXPECT_NE(std::string(executed.error()->message).find("/nowhere/at/all.safetensors"), std::string::npos);
}

TEST(CSession, RejectsMissingArguments) {
  const SessionHandle session = open_session();
  weft_answer* answer = nullptr;
  EXPECT_EQ(weft_session_open(nullptr), WEFT_USER);
  EXPECT_EQ(weft_session_execute(nullptr, "SHOW MODELS", WEFT_TEXT, &answer), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "session is NULL");
  EXPECT_EQ(weft_session_execute(session.get(), nullptr, WEFT_TEXT, &answer), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "text is NULL");
  EXPECT_EQ(weft_session_execute(session.get(), "SHOW MODELS", WEFT_TEXT, nullptr), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "answer is NULL");
  EXPECT_EQ(weft_session_execute(session.get(), "SHOW MODELS", 7, &answer), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "no such format: 7");
  EXPECT_EQ(answer, nullptr);
  EXPECT_STREQ(weft_answer_text(nullptr), "");
  EXPECT_EQ(weft_answer_error(nullptr), nullptr);
  weft_answer_free(nullptr);
  weft_session_close(nullptr);
  weft_session_interrupt(nullptr);
}

TEST(CSession, ReturnsAnswersOneByOneOnRequest) {
  const SessionHandle session = open_session();
  std::vector<std::string> seen;
  const weft_on_answer keep = [](const char* text, size_t size, void* data) {
    static_cast<std::vector<std::string>*>(data)->emplace_back(text, size);
  };
  weft_session_on_answer(session.get(), keep, &seen);
  EXPECT_EQ(execute(session, "SET search_limit = 3; SET search_limit = 4").text(), "");
  EXPECT_EQ(seen, (std::vector<std::string>{"search_limit = 3\n", "search_limit = 4\n"}));
  weft_session_on_answer(session.get(), nullptr, nullptr);
  EXPECT_EQ(execute(session, "SET search_limit = 5").text(), "search_limit = 5\n");
}

// The whole search would take minutes: that the test ends shows that a callback can interrupt it.
TEST(CSession, ReportsProgressAndInterruptsASearch) {
  const SessionHandle session = open_session();
  struct Seen {
    weft_session* session;
    std::string model;
    std::int64_t candidates = 0, trainings = 0;
    double seconds = 0;
  } seen{session.get(), {}, 0, 0, 0};
  weft_session_on_progress(
      session.get(), [](const weft_progress*, void* data) { ++static_cast<Seen*>(data)->trainings; }, &seen);
  weft_session_on_search(
      session.get(),
      [](const weft_search_progress* progress, void* data) {
        Seen& to = *static_cast<Seen*>(data);
        to.model = progress->model;
        to.candidates = progress->candidates;
        to.seconds = progress->seconds;
        if (progress->best_seconds > 0) weft_session_interrupt(to.session);
      },
      &seen);
  const Executed executed = execute(
      session, "EXPLAIN TRAIN char_gpt ON superpod WITH (b = 4096, planning_seconds = 1000)", WEFT_JSON);
  ASSERT_EQ(executed.status, WEFT_OK) << executed.error()->report;
  EXPECT_NE(executed.text().find("the search was interrupted"), std::string::npos) << executed.text();
  EXPECT_EQ(seen.model, "char_gpt");
  EXPECT_GT(seen.candidates, 0);
  EXPECT_GT(seen.seconds, 0);
  EXPECT_EQ(seen.trainings, 0) << "a search is not a training";
}

TEST(CSession, JsonCanIncludeTheReport) {
  const SessionHandle session = open_session();
  const char* statement = "EXPLAIN TRAIN digits_mlp ON dgx1 WITH (b = 4096)";
  const std::string without = execute(session, statement, WEFT_JSON).text();
  const std::string with = execute(session, statement, WEFT_JSON_WITH_REPORT).text();
  EXPECT_EQ(without.find("\"report\":"), std::string::npos);
  EXPECT_NE(with.find("\"report\":\"TRAIN digits_mlp on dgx1 (8 v100): b = 4096"), std::string::npos) << with;
  EXPECT_EQ(execute(session, "SET search_limit = 4", WEFT_JSON_WITH_REPORT).text(),
            "{\"set\":\"search_limit\",\"value\":\"4\"}\n");
}

TEST(CSession, ReturnsTrainedWeights) {
  const SessionHandle session = open_session();
  weft_weights* weights = nullptr;
  EXPECT_EQ(weft_session_weights(session.get(), "digits_mlp", &weights), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "digits_mlp is not trained yet: TRAIN it, or LOAD a checkpoint");
  EXPECT_EQ(weft_session_weights(session.get(), "digits_mpl", &weights), WEFT_USER);
  EXPECT_STREQ(weft_last_error(), "unknown model: digits_mpl: did you mean 'digits_mlp'?");
  EXPECT_EQ(weft_session_weights(session.get(), nullptr, &weights), WEFT_USER);
  EXPECT_EQ(weights, nullptr);
  EXPECT_EQ(weft_weights_count(nullptr), 0U);
  EXPECT_EQ(weft_weights_tensor(nullptr, 0), nullptr);
  weft_weights_free(nullptr);

  const std::string train = "TRAIN digits_mlp FROM '" WEFT_SOURCE_DIR
                            "/examples/digits.csv.gz' STEPS 2 WITH (optimizer = momentum)";
  ASSERT_EQ(execute(session, train.c_str()).status, WEFT_OK);
  ASSERT_EQ(weft_session_weights(session.get(), "digits_mlp", &weights), WEFT_OK);
  ASSERT_EQ(execute(session, train.c_str()).status, WEFT_OK);  // the copy stays at step 2
  EXPECT_EQ(weft_weights_step(weights), 2);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (std::size_t i = 0; i < weft_weights_count(weights); ++i) {
    const weft_tensor& tensor = *weft_weights_tensor(weights, i);
    shapes[tensor.name] = {tensor.shape, tensor.shape + tensor.dimensions};
    if (std::string(tensor.name) != "w1") continue;
    EXPECT_STREQ(tensor.dtype, "f32");
    ASSERT_EQ(tensor.size, 64U * 128 * sizeof(float));
    std::vector<float> values(64 * 128);
    std::memcpy(values.data(), tensor.data, tensor.size);
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }));
    EXPECT_TRUE(std::ranges::any_of(values, [](float value) { return value != 0; }));
  }
  EXPECT_EQ(shapes["w1"], (std::vector<std::int64_t>{64, 128}));
  EXPECT_EQ(shapes["b2"], (std::vector<std::int64_t>{10}));
  EXPECT_EQ(weft_weights_tensor(weights, weft_weights_count(weights)), nullptr);
  weft_weights_free(weights);
}

constexpr const char* kLongTraining =
    "TRAIN digits_mlp FROM '" WEFT_SOURCE_DIR "/examples/digits.csv.gz' STEPS 1000000000";

// The training would take days: that the test ends shows that it was interrupted, and that a
// callback can interrupt it.
TEST(CSession, ReportsProgressAndInterruptsTraining) {
  const SessionHandle session = open_session();
  struct Seen {
    weft_session* session;
    std::string model;
    std::int64_t steps = 0;
    double loss = 0;
  } seen{session.get(), {}, 0, 0};
  const weft_on_progress stop = [](const weft_progress* progress, void* data) {
    Seen& to = *static_cast<Seen*>(data);
    to = {to.session, progress->model, progress->steps, progress->loss};
    weft_session_interrupt(to.session);
  };
  weft_session_on_progress(session.get(), stop, &seen);
  const Executed executed = execute(session, kLongTraining);
  EXPECT_EQ(seen.model, "digits_mlp");
  EXPECT_EQ(seen.steps, 1'000'000'000);
  EXPECT_TRUE(std::isfinite(seen.loss) && seen.loss > 0);
  EXPECT_EQ(executed.status, WEFT_USER);
  EXPECT_EQ(std::string(executed.error()->message).rfind("interrupted", 0), 0U) << executed.error()->message;
  weft_session_on_progress(session.get(), nullptr, nullptr);
  EXPECT_EQ(execute(session, "SET search_limit = 3").status, WEFT_OK)
      << "the next statement is not interrupted";
}

TEST(CSession, AnotherThreadCanInterrupt) {
  const SessionHandle session = open_session();
  std::atomic<bool> over = false;
  std::thread other([&] {
    // Repeatedly: an interrupt before the statement begins has no effect.
    while (!over) {
      weft_session_interrupt(session.get());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const Executed executed = execute(session, kLongTraining);
  over = true;
  other.join();
  EXPECT_EQ(executed.status, WEFT_USER);
}

TEST(CSession, SessionsOfThreadsAreIndependent) {
  std::vector<std::string> answers(3);
  std::vector<std::thread> threads;
  for (std::string& answer : answers)
    threads.emplace_back([&answer] {
      const SessionHandle session = open_session();
      execute(session, "CREATE MODEL mine (b = 2, d = 3) INPUT x[b, d] AS SELECT sum(x) FROM x GROUP BY b");
      answer = execute(session, "EXPLAIN INFER mine; DESCRIBE digits_mlp", WEFT_JSON).text();
      answer = std::regex_replace(answer, std::regex(R"x("(planning_seconds|seconds_spent)":[^,}]*)x"), "");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(answers[0].empty());
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
}

}  // namespace
