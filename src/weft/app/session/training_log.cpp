#include "weft/app/session/training_log.h"

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "weft/formats/event_file.h"

namespace weft::session {
namespace {

constexpr std::size_t kCurvePoints = 1000;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<TrainingLog> TrainingLog::open(const std::string& path, std::int64_t first_step) {
  TrainingLog log;
  log.path_ = path;
  if (path.empty()) return log;
  log.events_ = path.find("tfevents") != std::string::npos;
  if (!log.events_ && !path.ends_with(".csv"))
    return user_error(
        fmt::format("expected a log that ends in .csv or has tfevents in its name, found {}", path),
        "for example: log = 'loss.csv', log = 'runs/tfevents.digits'");
  std::error_code unused;
  const bool goes_on = first_step > 0 && std::filesystem::file_size(path, unused) > 0 && !unused;
  log.file_.open(path, std::ios::binary | (goes_on ? std::ios::app : std::ios::trunc));
  WEFT_TRY_STATUS(log.write(goes_on       ? std::string()
                            : log.events_ ? formats::first_event(wall_seconds())
                                          : std::string("step,loss,seconds,test_loss,test_accuracy\n")));
  return log;
}

Status TrainingLog::write(std::string_view bytes) {
  if (path_.empty()) return {};
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file_.flush();
  if (!file_)
    return environment_error(fmt::format("cannot write {}", path_), "log = '' trains without a log");
  return {};
}

Status TrainingLog::add(const run::StepReport& report) {
  WEFT_TRY_STATUS(write_pending());
  steps_.push_back(report);
  pending_ = report;
  return {};
}

Status TrainingLog::add(std::int64_t step, const Score& test) {
  tests_.emplace_back(step, test);
  return {};
}

Status TrainingLog::finish() { return write_pending(); }

Status TrainingLog::write_pending() {
  if (!pending_ || path_.empty()) return {};
  const run::StepReport row = *pending_;
  pending_.reset();
  const Score* test = tested_at(row.step) ? &tests_.back().second : nullptr;
  const std::optional<double> loss = test != nullptr ? test->loss : std::nullopt,
                              accuracy = test != nullptr ? test->accuracy : std::nullopt;
  if (events_) {
    const double now = wall_seconds();
    std::string records = formats::scalar_event(now, row.step, "loss", row.loss);
    if (loss) records += formats::scalar_event(now, row.step, "test_loss", *loss);
    if (accuracy) records += formats::scalar_event(now, row.step, "test_accuracy", *accuracy);
    return write(records);
  }
  const auto shown = [](std::optional<double> number) {
    return number ? fmt::format("{}", *number) : std::string();
  };
  return write(
      fmt::format("{},{},{:.6f},{},{}\n", row.step, row.loss, row.seconds, shown(loss), shown(accuracy)));
}

nlohmann::ordered_json TrainingLog::curve() const {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array(), losses = nlohmann::ordered_json::array(),
                         tests = nlohmann::ordered_json::array();
  const std::size_t every = (steps_.size() + kCurvePoints - 1) / kCurvePoints;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (i % every == 0 || i + 1 == steps_.size()) {
      steps.push_back(steps_[i].step);
      losses.push_back(steps_[i].loss);
    }
  nlohmann::ordered_json json = {{"steps", std::move(steps)}, {"losses", std::move(losses)}};
  for (const auto& [step, test] : tests_) {
    nlohmann::ordered_json row = {{"step", step}};
    if (test.loss) row["loss"] = *test.loss;
    if (test.accuracy) row["accuracy"] = *test.accuracy;
    tests.push_back(std::move(row));
  }
  if (!tests.empty()) json["tests"] = std::move(tests);
  return json;
}

}  // namespace weft::session
