// GENERATE: continues a text with a language model, one token at a time.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/generated_text.h"
#include "weft/app/session/learn.h"
#include "weft/app/session/next_token.h"
#include "weft/app/session/reply.h"
#include "weft/base/file.h"
#include "weft/base/random.h"
#include "weft/device/element_access.h"
#include "weft/planner/statement/prepare.h"
#include "weft/text/text_stream.h"
#include "weft/text/tokenizer.h"

namespace weft::session {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kUsualTokens = 200;
constexpr std::int64_t kByteClasses = 256;

// Models round their number of classes up, to a multiple of at most this. The rest are never drawn.
constexpr std::int64_t kMostUnusedClasses = 1024;

// A model that reads a sequence of tokens and predicts the next token at each position.
class Continuer {
 public:
  static Result<Continuer> start(const Session::State& state, const Context& context,
                                 const Prepared& prepared, const run::Weights& weights) {
    const language::syntax::Name& model = prepared.run->model;
    const auto refuse = [&](std::string why) {
      return user_error(fmt::format("{} cannot generate text: {}", model.text, why),
                        "GENERATE needs a model of tokens[b, s] with a cross entropy over the tokens",
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
    return made;
  }

  const std::string& unproven() const { return unproven_; }
  std::size_t window() const { return static_cast<std::size_t>(tokens().place.axes[1].size); }
  std::int64_t classes() const { return logits().place.axes[2].size; }

  // The logits of the next token, given as much of the text's end as fits the model's window.
  Result<std::vector<double>> next(std::span<const std::int32_t> text) {
    text = text.last(std::min(text.size(), window()));
    for (const program::Port& port : rank_->program().inputs) {
      const std::span<std::byte> memory = rank_->input(port);
      for (std::size_t i = 0; i < window() && port.place.elements() == static_cast<std::int64_t>(window());
           ++i)
        device::store_element(port.place.dtype, memory.data(), static_cast<std::int64_t>(i),
                              i < text.size() ? text[i] : 0);
    }
    WEFT_TRY_STATUS(rank_->step());
    WEFT_TRY(bytes, rank_->read(logits()));
    std::vector<double> found;
    const std::int64_t row = static_cast<std::int64_t>(text.size()) - 1;
    for (std::int64_t c = 0; c < classes(); ++c)
      found.push_back(device::load_element(logits().place.dtype, bytes.data(), row * classes() + c));
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

// Text as tokens: those of a tokenizer, or bytes.
class Codec {
 public:
  static Result<Codec> open(const std::string& path) {
    Codec codec;
    if (path.empty()) return codec;
    WEFT_TRY(tokenizer, text::Tokenizer::read(path));
    codec.tokenizer_ = std::make_unique<text::Tokenizer>(std::move(tokenizer));
    return codec;
  }

  std::int64_t tokens() const { return tokenizer_ ? tokenizer_->end() : kByteClasses; }

  Status check(const Continuer& model, const language::syntax::Name& name) const {
    const std::int64_t classes = model.classes();
    if (!tokenizer_ && classes != kByteClasses)
      return user_error(
          fmt::format("{} cannot generate text: it has {} classes; a byte has 256", name.text, classes),
          "WITH (tokenizer = 'tokenizer.json') names the tokenizer it was trained with", name.span);
    if (tokens() > classes || classes - tokens() > kMostUnusedClasses)
      return user_error(
          fmt::format("the tokenizer has {} tokens, but {} has {} classes", tokens(), name.text, classes),
          "use the tokenizer that the model was trained with", name.span);
    return {};
  }

  // The tokens that the generated text continues; at least one.
  Result<Tokens> encode(std::string_view prompt) {
    if (!tokenizer_) {
      const std::string_view bytes = prompt.empty() ? "\n" : prompt;
      Tokens tokens;
      for (const char byte : bytes) tokens.push_back(static_cast<unsigned char>(byte));
      return tokens;
    }
    WEFT_TRY(tokens, tokenizer_->encode(prompt, text::SpecialTokens::add));
    if (!tokens.empty()) return tokens;
    return tokenizer_->encode("\n", text::SpecialTokens::add);
  }

  Status begin(const Tokens& prompt) {
    if (!tokenizer_) return {};
    WEFT_TRY(stream, text::TextStream::after(*tokenizer_, prompt));
    stream_.emplace(std::move(stream));
    return {};
  }

  Result<std::string> decode(std::int32_t token) {
    if (!tokenizer_) return std::string(1, static_cast<char>(token));
    return stream_->push(token);
  }

  Result<std::string> finish() { return stream_ ? stream_->finish() : std::string(); }

  bool bytes() const { return !tokenizer_; }

 private:
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::optional<text::TextStream> stream_;
};

}  // namespace

Answer run_generate(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(prepared, prepare(state, run, Purpose::run, context.interrupted));
  const RunOptions& running = prepared.settings.running;
  const std::string prompt(run.prompt ? run.prompt->text : std::string_view());
  WEFT_TRY(codec, Codec::open(running.tokenizer));
  WEFT_TRY(tokens, codec.encode(prompt));
  WEFT_TRY(model, Continuer::start(state, context, prepared, state.weights.at(std::string(run.model.text))));
  WEFT_TRY_STATUS(codec.check(model, run.model));
  if (!codec.bytes() && tokens.size() > model.window())
    return user_error(fmt::format("the prompt has {} tokens, but {} reads {}", tokens.size(), run.model.text,
                                  model.window()),
                      "shorten the prompt", run.prompt ? run.prompt->span : run.model.span);
  WEFT_TRY_STATUS(codec.begin(tokens));
  // With INTO, and in JSON, the answer comes at the end.
  const bool streams = context.on_text && !run.into && context.format == Format::text;
  if (streams && !prompt.empty()) context.on_text(printable(prompt));
  GeneratedText made(running.stop, streams ? context.on_text : nullptr);
  const Sampling sampling{running.temperature, running.top_k, running.top_p};
  const std::int64_t steps = run.steps ? run.steps->whole : kUsualTokens;
  Random random(static_cast<std::uint64_t>(running.seed));
  std::int64_t drawn = 0;
  for (; drawn < steps && !made.ended(); ++drawn) {
    if (context.interrupted && context.interrupted()) break;  // returns the text generated so far
    auto logits = model.next(tokens);
    if (!logits.ok()) return std::move(logits).error();
    const auto used = static_cast<std::size_t>(std::min(codec.tokens(), model.classes()));
    tokens.push_back(draw_token(std::span<const double>(*logits).first(used), sampling, random.uniform()));
    WEFT_TRY(text, codec.decode(tokens.back()));
    made.append(text);
  }
  WEFT_TRY(rest, codec.finish());
  made.append(rest);
  made.finish();
  if (run.into) {  // writes raw bytes, including the prompt
    const Status written = write_file_atomically(std::string(run.into->text), prompt + made.text());
    if (!written.ok()) return placed(Error(written.error()), run.into->span);
  }
  if (context.format == Format::json) {
    nlohmann::ordered_json json = {
        {"generated", run.model.text}, {"prompt", prompt}, {"text", made.text()}, {"tokens", drawn}};
    if (run.into) json["into"] = run.into->text;
    if (!model.unproven().empty()) json["unproven"] = model.unproven();
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  const std::string unproven = model.unproven().empty() ? "" : model.unproven() + "\n";
  if (run.into)
    return fmt::format("wrote {} bytes to {}\n{}", prompt.size() + made.text().size(), run.into->text,
                       unproven);
  return fmt::format("{}\n{}", streams ? "" : printable(prompt + made.text()), unproven);
}

}  // namespace weft::session
