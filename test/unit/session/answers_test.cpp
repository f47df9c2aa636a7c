// What statements write to files: answers, training logs, drawings for one device.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/session/session.h"
#include "weft/base/crc32c.h"
#include "weft/base/random.h"
#include "weft/base/utf8.h"
#include "weft/formats/data_file.h"
#include "weft/formats/protobuf_wire.h"
#include "weft/predict/cost/exchange_seconds.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

const std::string kRows = WEFT_SOURCE_DIR "/test/data/pixels.csv";
constexpr std::string_view kSizes = "b = 2, p = 2, c = 3, f = 4, threads = 1, rules = false";

// The JSON object in the answer to the last statement.
Json last_answer(Session& session, const std::string& text) {
  session.format = Format::json;
  const Reply reply = session.execute(text);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << text << "\n" << reply.complaint;
  std::istringstream lines(reply.output);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line;
  return Json::parse(last, nullptr, false);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string loaded() {
  return fmt::format("LOAD digits_mlp FROM '{}/test/data/pixels.safetensors';", WEFT_SOURCE_DIR);
}

TEST(Answers, FilesContainTheRowsOfTheJsonAnswer) {
  const TemporaryFolder folder;
  Session session;
  const Json rows = last_answer(
      session, fmt::format("{} INFER digits_mlp FROM '{}' WITH ({})", loaded(), kRows, kSizes))["rows"];
  ASSERT_EQ(rows.size(), 4u);
  const formats::Field fields[] = {{"logits", 3, plan::DType::f32}, {"predicted", 1, plan::DType::i32}};
  for (const std::string ending : {"csv", "npy"}) {
    const std::string path = folder / ("answers." + ending);
    const Json answer = last_answer(
        session, fmt::format("INFER digits_mlp FROM '{}' INTO '{}' WITH ({})", kRows, path, kSizes));
    EXPECT_EQ(answer["into"], path);
    const auto table = formats::read_table(path, fields);
    ASSERT_TRUE(table.ok()) << table.error().message;
    ASSERT_EQ(table->rows(), 4);
    for (std::int64_t row = 0; row < 4; ++row) {
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_EQ(static_cast<double>(table->row<float>(0, row)[c]), rows[static_cast<std::size_t>(row)][c]);
      const int predicted = table->row<std::int32_t>(1, row)[0];
      EXPECT_EQ(predicted, rows[static_cast<std::size_t>(row)][3]);
      EXPECT_EQ(predicted, (std::vector<int>{0, 1, 2, 0})[static_cast<std::size_t>(row)]);
    }
  }
}

TEST(Answers, TheLogHasARowPerStepAndContinues) {
  const TemporaryFolder folder;
  Session session;
  const std::string path = folder / "loss.csv";
  const std::string train =
      fmt::format("TRAIN digits_mlp FROM '{}' STEPS 3 WITH ({}, log = '{}', holdout = 2, test_every = 2)",
                  kRows, kSizes, path);
  const Json first = last_answer(session, train), second = last_answer(session, train);
  std::istringstream lines(text_of(path));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "step,loss,seconds,test_loss,test_accuracy");
  for (int step = 1; step <= 6; ++step) {
    ASSERT_TRUE(std::getline(lines, line)) << step;
    int read_step = 0;
    double loss = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%d,%lf,", &read_step, &loss), 2) << line;
    EXPECT_EQ(read_step, step);
    const Json& curve = (step <= 3 ? first : second)["curve"];
    EXPECT_EQ(curve["steps"][static_cast<std::size_t>((step - 1) % 3)], step);
    EXPECT_EQ(curve["losses"][static_cast<std::size_t>((step - 1) % 3)], loss);
    // Tested after every second step, and after the last step of each TRAIN.
    EXPECT_EQ(line.ends_with(",,"), step == 1 || step == 5) << line;
  }
  EXPECT_FALSE(std::getline(lines, line));
  // Training from scratch starts a new file.
  last_answer(session,
              fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1 WITH ({}, log = '{}', from_scratch = true)",
                          kRows, kSizes, path));
  EXPECT_EQ(std::ranges::count(text_of(path), '\n'), 2);
}

std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// In TensorBoard's format: records with checksums, one event each.
TEST(Answers, TensorBoardCanReadTheLog) {
  const TemporaryFolder folder;
  Session session;
  const std::string path = folder / "events.out.tfevents.1";
  const Json trained = last_answer(
      session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 2 WITH ({}, log = '{}', holdout = 2)", kRows,
                           kSizes, path));
  const std::string bytes = text_of(path);
  std::vector<std::string> seen;
  std::vector<float> losses;
  for (std::string_view rest = bytes; !rest.empty();) {
    ASSERT_GE(rest.size(), 16u);
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
    std::memcpy(&length, rest.data(), 8);
    std::memcpy(&crc, rest.data() + 8, 4);
    EXPECT_EQ(crc, masked(rest.substr(0, 8)));
    ASSERT_GE(rest.size(), 16 + length);
    const std::string_view event = rest.substr(12, length);
    std::memcpy(&crc, rest.data() + 12 + length, 4);
    EXPECT_EQ(crc, masked(event));
    rest.remove_prefix(16 + length);
    std::uint64_t step = 0;
    formats::WireReader reader(event);
    for (formats::WireField field; !reader.at_end();) {
      ASSERT_TRUE(reader.read_field(field));
      if (field.number == 2) step = field.whole;
      if (field.number == 3) seen.emplace_back(field.bytes);
      if (field.number != 5) continue;
      formats::WireField value;
      ASSERT_TRUE(formats::WireReader(field.bytes).read_field(value));
      formats::WireReader parts(value.bytes);
      std::string tag;
      for (formats::WireField part; !parts.at_end();) {
        ASSERT_TRUE(parts.read_field(part));
        if (part.number == 1) tag = part.bytes;
        if (part.number != 2) continue;
        float number = 0;
        const auto bits = static_cast<std::uint32_t>(part.whole);
        std::memcpy(&number, &bits, 4);
        if (tag == "loss") losses.push_back(number);
      }
      seen.push_back(fmt::format("{} {}", tag, step));
    }
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"brain.Event:2", "loss 1", "loss 2", "test_loss 2",
                                            "test_accuracy 2"}));
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[1], trained["last_loss"].get<float>());
}

// Random rows rather than the last ones, the same for the same seed, and INFER tests on those.
TEST(Answers, TheSeedSelectsTheHoldout) {
  const TemporaryFolder folder;
  const std::string digits = folder / "digits.csv";
  {
    Random random(5);
    std::ofstream file(digits);
    for (int row = 0; row < 300; ++row)
      for (int column = 0; column < 65; ++column)
        file << (column == 64 ? row % 10 : random.between(0, 16)) << (column == 64 ? '\n' : ',');
  }
  const auto test = [&](std::string_view by, int seed) {
    Session session;
    const std::string with = fmt::format("threads = 1, rules = false, holdout = 100, holdout_by = {}", by);
    const Json trained = last_answer(
        session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 5 WITH (seed = {}, {})", digits, seed, with));
    const Json asked =
        last_answer(session, fmt::format("INFER digits_mlp FROM '{}' WITH ({})", digits, with));
    EXPECT_EQ(trained["test"]["examples"], 100);
    EXPECT_EQ(asked["examples"], 100);
    EXPECT_NEAR(asked["loss"].get<double>(), trained["test"]["loss"].get<double>(), 1e-6);
    return trained["test"]["loss"].get<double>();
  };
  EXPECT_EQ(test("seed", 1), test("seed", 1));
  EXPECT_NE(test("seed", 1), test("last", 1));
  EXPECT_NE(test("seed", 1), test("seed", 2));
}

// A text that repeats four letters is soon memorized.
TEST(Answers, ContinuesAText) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 500; ++i) text += "abcd";
  std::ofstream(folder / "letters.txt") << text;
  const std::string sizes = "b = 8, s = 8, d = 16, h = 2, layers = 1, threads = 1, rules = false";
  Session session;
  last_answer(session, fmt::format("TRAIN char_gpt FROM '{}' STEPS 120 WITH ({}, learning_rate = 0.01)",
                                   folder / "letters.txt", sizes));
  const auto generate = [&](std::string_view prompt, std::string_view more) {
    return last_answer(session, fmt::format("GENERATE char_gpt PROMPT '{}' STEPS 12 WITH ({}{})", prompt,
                                            sizes, more))["text"]
        .get<std::string>();
  };
  EXPECT_EQ(generate("abcdabcdab", ""), "cdabcdabcdab");
  EXPECT_EQ(generate("cda", ""), "bcdabcdabcda");  // shorter than the model's context
  const std::string hot = generate("abcd", ", temperature = 50, seed = 1");
  EXPECT_EQ(generate("abcd", ", temperature = 50, seed = 1"), hot);
  EXPECT_NE(generate("abcd", ", temperature = 50, seed = 2"), hot);
  EXPECT_NE(hot, "abcdabcdabcd");
}

// An untrained model generates any byte: a terminal gets no control characters except newlines and
// tabs, and only UTF-8; a file gets the bytes unchanged.
TEST(Answers, GeneratedTextCannotControlTheTerminal) {
  const TemporaryFolder folder;
  std::ofstream(folder / "letters.txt") << std::string(500, 'a');
  const std::string sizes = "b = 4, s = 8, d = 8, h = 2, layers = 1, threads = 1, rules = false";
  Session session;
  last_answer(session,
              fmt::format("TRAIN char_gpt FROM '{}' STEPS 1 WITH ({})", folder / "letters.txt", sizes));
  session.format = Format::text;
  const std::string generate = fmt::format("GENERATE char_gpt PROMPT 'a' STEPS 300 ");
  const std::string with = fmt::format("WITH ({}, temperature = 100, seed = 1)", sizes);
  const Reply shown = session.execute(generate + with);
  ASSERT_EQ(shown.exit_code, ExitCode::ok) << shown.complaint;
  for (std::string_view rest = shown.output; !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    ASSERT_GT(utf8_length(rest), 0u) << "not UTF-8";
    ASSERT_TRUE(!begins_with_control(rest) || rest[0] == '\n' || rest[0] == '\t');
  }
  EXPECT_NE(shown.output.find("\\x"), std::string::npos);
  const Reply kept = session.execute(fmt::format("{}INTO '{}' {}", generate, folder / "text", with));
  ASSERT_EQ(kept.exit_code, ExitCode::ok) << kept.complaint;
  EXPECT_TRUE(kept.output.starts_with("wrote 301 bytes to ")) << kept.output;
  const std::string bytes = text_of(folder / "text");
  EXPECT_EQ(bytes.size(), 301u);
  std::string escaped;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string_view rest = std::string_view(bytes).substr(at);
    const std::size_t length = std::max<std::size_t>(1, utf8_length(rest));
    const bool shows =
        utf8_length(rest) > 0 && (!begins_with_control(rest) || rest[0] == '\n' || rest[0] == '\t');
    if (utf8_length(rest) == 0) escaped += "\xEF\xBF\xBD";  // not UTF-8
    for (const char byte : utf8_length(rest) == 0 ? std::string_view() : rest.substr(0, length))
      escaped += shows ? std::string(1, byte) : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    at += length;
  }
  EXPECT_EQ(shown.output.substr(0, escaped.size()), escaped);
}

// PAGE, TIMELINE and CHAKRA for one device.
TEST(Answers, DrawsOneDevice) {
  const TemporaryFolder folder;
  Session session;
  for (const std::string on : {" ON h100", " ON LOCAL", ""}) {
    const std::string prefix = folder / ("step" + std::to_string(on.size()));
    const Reply reply = session.execute(fmt::format(
        "EXPLAIN (PAGE '{0}.html', TIMELINE '{0}.json', CHAKRA '{0}') TRAIN digits_mlp{1}", prefix, on));
    ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    EXPECT_NE(text_of(prefix + ".html").find("TRAIN digits_mlp"), std::string::npos);
    const Json trace = Json::parse(text_of(prefix + ".json"), nullptr, false);
    EXPECT_FALSE(trace.is_discarded());
    EXPECT_NE(text_of(prefix + ".json").find("predicted: rank 0"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(prefix + ".0.et"));
  }
  const std::string page = folder / "measured.html";
  const Reply measured = session.execute(
      fmt::format("EXPLAIN (ANALYZE, PAGE '{}') INFER digits_mlp STEPS 1 WITH (threads = 1)", page));
  EXPECT_NE(measured.exit_code, ExitCode::ok);  // INFER has no STEPS
  const Reply again =
      session.execute(fmt::format("EXPLAIN (ANALYZE, PAGE '{}') INFER digits_mlp WITH (threads = 1)", page));
  ASSERT_EQ(again.exit_code, ExitCode::ok) << again.complaint;
  EXPECT_NE(text_of(page).find("measured"), std::string::npos);
}

// The estimate of the very collective that was measured matches the log.
TEST(Answers, EstimatesOnAMeasuredClusterMatchTheMeasurements) {
  Session session;
  last_answer(session,
              fmt::format("CREATE CLUSTER mine FROM '{}/test/data/nccl_one_node.txt'", WEFT_SOURCE_DIR));
  const Json mine = last_answer(session, "DESCRIBE mine");
  EXPECT_EQ(mine["devices"], 8);
  EXPECT_EQ(mine["device"], "h100");
  EXPECT_EQ(mine["origins"].size(), 2u);
  const Json& link = mine["mesh"][1];
  const cost::MeshLink wires{
      .ranks = 8, .latency_seconds = link["latency_seconds"], .bytes_per_second = link["bytes_per_second"]};
  const auto seconds = [&](double bytes) {
    return cost::exchange_seconds(program::Exchange::Kind::all_reduce, wires, bytes).seconds();
  };
  EXPECT_NEAR(seconds(1 << 30), 5241.6e-6, 50e-6);
  EXPECT_NEAR(seconds(1024), 22e-6, 1e-6);
}

}  // namespace
}  // namespace weft::session
