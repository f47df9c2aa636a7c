// GENERATE: continues a text with a byte-level model, one byte at a time.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/learn.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/random.h"
#include "weft/base/utf8.h"
#include "weft/device/element_access.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {
namespace {

constexpr std::int64_t kUsualTokens = 200;

// A model that reads a sequence of bytes and predicts the next byte at each position.
class Continuer {
 public:
  static Result<Continuer> start(const Session::State& state, const Context& context,
                                 const Prepared& prepared, const run::Weights& weights) {
    const language::syntax::Name& model = prepared.run->model;
    const auto refuse = [&](std::string why) {
      return user_error(fmt::format("{} cannot generate text: {}", model.text, why),
                        "GENERATE needs a model of tokens[b, s] with a cross entropy over 256 classes",
                        model.span);
    };
    WEFT_TRY(first, bind_again(state, prepared, language::Mode::infer, {}, context.interrupted));
    WEFT_TRY(one, batch_size(first.graph));
    one.size = 1;
    WEFT_TRY(bound, bind_again(state, prepared, language::Mode::infer, {&one, 1}, context.interrupted));
    if (!add_cross_entropy_outputs(bound.graph)) return refuse("it has no cross entropy");
    WEFT_TRY(asked, start_inference(state, prepared, std::move(bound.graph)));
    WEFT_TRY_STATUS(give_weights(asked, prepared, weights));
    Continuer made(std::move(asked.rank), std::move(asked.unproven));
    const program::Place &tokens = made.tokens().place, &logits = made.logits().place;
    if (!plan::is_integer(tokens.dtype) || tokens.axes.size() != 2)
      return refuse(fmt::format("its first input is not a sequence of whole numbers"));
    if (logits.axes.size() != 3 || logits.axes[1].size != tokens.axes[1].size)
      return refuse("its logits do not have one row per position");
    if (logits.axes[2].size != 256)
      return refuse(fmt::format("it has {} classes; a byte has 256", logits.axes[2].size));
    return made;
  }

  const std::string& unproven() const { return unproven_; }
  std::size_t window() const { return static_cast<std::size_t>(tokens().place.axes[1].size); }

  // The logits of the next byte, given as much of the text's end as fits the model's window.
  Result<std::vector<double>> next(std::string_view text) {
    if (text.size() > window()) text.remove_prefix(text.size() - window());
    for (const program::Port& port : rank_->program().inputs) {
      const std::span<std::byte> memory = rank_->input(port);
      for (std::size_t i = 0; i < window() && port.place.elements() == static_cast<std::int64_t>(window());
           ++i)
        device::store_element(port.place.dtype, memory.data(), static_cast<std::int64_t>(i),
                              i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
    }
    WEFT_TRY_STATUS(rank_->step());
    WEFT_TRY(bytes, rank_->read(logits()));
    std::vector<double> found;
    const std::int64_t row = static_cast<std::int64_t>(text.size()) - 1;
    for (std::int64_t c = 0; c < 256; ++c)
      found.push_back(device::load_element(logits().place.dtype, bytes.data(), row * 256 + c));
    return found;
  }

 private:
  Continuer(std::unique_ptr<exec::Rank> rank, std::string unproven)
      : rank_(std::move(rank)), unproven_(std::move(unproven)) {}

  const program::Port& tokens() const { return rank_->program().inputs.front(); }
  const program::Port& logits() const {
    return *std::ranges::find(rank_->program().outputs, kLogits, &program::Port::name);
  }

  std::unique_ptr<exec::Rank> rank_;
  std::string unproven_;
};

// With temperature 0 the most likely byte, the first of ties. Otherwise samples with probability
// proportional to exp(logit / temperature).
char draw(const std::vector<double>& logits, double temperature, double chance) {
  const auto best = std::ranges::max_element(logits);
  if (temperature == 0) return static_cast<char>(best - logits.begin());
  double all = 0;
  for (const double logit : logits) all += std::exp((logit - *best) / temperature);
  double left = chance * all;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    left -= std::exp((logits[c] - *best) / temperature);
    if (left < 0) return static_cast<char>(c);
  }
  return static_cast<char>(best - logits.begin());
}

// Safe for any terminal: control characters become \x1b, invalid UTF-8 becomes U+FFFD. Newlines and
// tabs stay.
std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    const bool layout = text[0] == '\n' || text[0] == '\t';
    if (layout || (utf8_length(text) > 0 && !begins_with_control(text)))
      result += text.substr(0, length);
    else if (utf8_length(text) == 0)
      result += "\xEF\xBF\xBD";
    else
      for (const char byte : text.substr(0, length))
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

Answer run_generate(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(prepared, prepare(state, run, Purpose::run, context.interrupted));
  const RunOptions& running = prepared.settings.running;
  // The model needs at least one byte of context: without a prompt, a newline.
  std::string text = run.prompt && !run.prompt->text.empty() ? std::string(run.prompt->text) : "\n";
  const std::size_t prompt = run.prompt && !run.prompt->text.empty() ? text.size() : 0;
  const std::size_t begin = text.size();
  WEFT_TRY(model, Continuer::start(state, context, prepared, state.weights.at(std::string(run.model.text))));
  const std::int64_t tokens = run.steps ? run.steps->whole : kUsualTokens;
  Random random(static_cast<std::uint64_t>(running.seed));
  for (std::int64_t i = 0; i < tokens; ++i) {
    if (context.interrupted && context.interrupted()) break;  // returns the text generated so far
    auto logits = model.next(text);
    if (!logits.ok()) return std::move(logits).error();
    text += draw(*logits, running.temperature, random.uniform());
  }
  if (run.into) {  // writes raw bytes, including the prompt
    const Status written =
        write_file_atomically(std::string(run.into->text), std::string_view(text).substr(begin - prompt));
    if (!written.ok()) return placed(Error(written.error()), run.into->span);
  }
  if (context.format == Format::json) {
    nlohmann::ordered_json json = {{"generated", run.model.text},
                                   {"prompt", text.substr(0, prompt)},
                                   {"text", text.substr(begin)},
                                   {"tokens", text.size() - begin}};
    if (run.into) json["into"] = run.into->text;
    if (!model.unproven().empty()) json["unproven"] = model.unproven();
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  if (prompt == 0) text.erase(0, begin);
  if (run.into)
    return fmt::format("wrote {} bytes to {}\n{}{}", text.size(), run.into->text, model.unproven(),
                       model.unproven().empty() ? "" : "\n");
  return fmt::format("{}\n{}{}", printable(text), model.unproven(), model.unproven().empty() ? "" : "\n");
}

}  // namespace weft::session
