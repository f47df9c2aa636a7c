#include "weft/parallel/distribute/distribution.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/lexer.h"
#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/parallel/distribute/stage_meshes.h"
#include "weft/plan/graph/words.h"

namespace weft::distribute {
namespace {

constexpr std::array<std::string_view, 3> kShards = {"nothing", "optimizer", "parameters"};
constexpr std::string_view kExample =
    "node=4: slice b, shard parameters; gpu=8: slice h, f, s; replicate w on gpu";

// Sets the number of micro-batches; no mesh axis has this name.
constexpr std::string_view kMicro = "micro";

constexpr auto kSigns = std::to_array<Sign>(
    {{",", TokenKind::comma}, {";", TokenKind::semicolon}, {":", TokenKind::colon}, {"=", TokenKind::equal}});
constexpr auto kQuotes = std::to_array<Quote>({{.mark = '"',
                                                .kind = TokenKind::quoted,
                                                .escape = Escape::backslash,
                                                .not_closed = "a quoted name is not closed"}});
// Tensor names contain dots, and anything that is not a sign is a name.
constexpr Lexicon kLexicon =
    indexed({.signs = kSigns, .quotes = kQuotes, .numbers = Numbers::none, .wide_words = true});

// Per rank of an axis, where unequal: "micro-batches 5:3".
constexpr std::string_view kMicroBatches = "micro-batches", kFormerMicroBatches = "takes";

// Both words together; one alone is an index of that name.
constexpr std::string_view kRing = "ring", kAttention = "attention";

// Larger inputs are rejected: no sensible distribution has so many entries.
constexpr std::size_t kMostEntries = 10'000;
constexpr std::string_view kDigits = "0123456789-.";  // the first character of a number
constexpr std::int64_t kMostMicroBatches = 65'536;    // as in the setting micro_batches
constexpr std::int64_t kMostTaken = 1'000'000;        // micro-batches per rank: no sum of them overflows

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), lexer_(kLexicon, text) {
    ahead_ = next();
    advance();
  }

  Result<Distribution> read() && {
    while (!at_end()) {
      WEFT_TRY_STATUS(read_part());
      if (at_end()) break;
      if (!take(TokenKind::semicolon)) return expected("a semicolon between two parts of a distribution");
    }
    if (!own_.empty()) WEFT_TRY_STATUS(take_stage_meshes(made_, own_));
    WEFT_TRY_STATUS(check_in_stages(made_));
    // A single rank has no axes, so its distribution may consist of micro-batches alone.
    if (made_.mesh.axes.empty() && !has_micro_) return expected("a mesh axis and its ranks");
    return std::move(made_);
  }

  bool has_former_words() && {
    for (; !at_end(); advance())
      if (here_.text == kFormerMicroBatches && next_is_micro_batches()) return true;
    return false;
  }

 private:
  struct Piece {
    TokenKind kind = TokenKind::end;
    std::string text;  // without quotes
    Span span;
    std::optional<Error> wrong;

    bool is_word() const { return kind == TokenKind::word || kind == TokenKind::quoted; }
  };

  Piece next() {
    const Token token = lexer_.next();
    const std::string_view spelling = text_.substr(token.span.offset, token.span.length);
    Piece piece{token.kind, std::string(spelling), token.span, {}};
    if (token.kind == TokenKind::quoted) piece.text = unquoted(kLexicon, spelling);
    if (token.kind == TokenKind::bad) piece.wrong = lexer_.error();
    if (token.kind == TokenKind::end && !text_.empty())
      piece.span = {static_cast<std::uint32_t>(text_.size() - 1), 1};
    return piece;
  }
  void advance() {
    here_ = std::move(ahead_);
    ahead_ = next();
  }

  bool at_end() const { return here_.kind == TokenKind::end; }
  bool next_is_axis() const { return here_.is_word() && ahead_.kind == TokenKind::equal; }
  bool take(TokenKind sign) {
    if (here_.kind != sign) return false;
    advance();
    return true;
  }
  bool at_word(std::string_view word) const { return here_.is_word() && here_.text == word; }
  bool take_word(std::string_view word) {
    if (!at_word(word)) return false;
    advance();
    return true;
  }
  Error expected(std::string_view what) const {
    constexpr std::size_t kMost = 24;
    if (here_.wrong) return *here_.wrong;
    return user_error(fmt::format("expected {}, found {}", what,
                                  at_end() ? "the end" : fmt::format("'{}'", here_.text.substr(0, kMost))),
                      std::string(kExample), here_.span);
  }
  Result<std::string> name(std::string_view what) {
    if (!here_.is_word() || here_.text.empty()) return expected(what);
    std::string text = std::move(here_.text);
    advance();
    return text;
  }

  Status read_part() {
    if (at_word(kMicro) && next_is_axis()) return read_micro();
    if (next_is_axis()) return read_axis();
    if (next_is_stages()) return read_own_axis();
    if (at_word("schedule")) return read_schedule();
    if (at_word("recompute")) return read_recompute();
    if (at_word("offload")) return read_offload();
    return read_exception();
  }

  // Reads a count of at least 1. The ranks of a mesh axis start from 0 here, since the mesh checks
  // them itself.
  template <class T>
  Result<T> count(std::string_view what, T least = 1, T most = std::numeric_limits<T>::max()) {
    const auto number = read_number<T>(here_.text, least, most);
    if (!here_.is_word() || !number) return expected(what);
    advance();
    return *number;
  }

  Status read_micro() {
    if (has_micro_) return expected("one number of micro-batches");
    has_micro_ = true;
    advance();
    take(TokenKind::equal);
    WEFT_TRY(number, count<std::int64_t>("the number of micro-batches, 1 to 65,536", 1, kMostMicroBatches));
    made_.micro_batches = number;
    return {};
  }

  Status read_schedule() {
    if (!made_.schedule.empty()) return expected("one schedule");
    advance();
    WEFT_TRY(schedule, name("the name of a schedule"));
    made_.schedule = std::move(schedule);
    return {};
  }

  Status read_offload() {
    if (made_.offload) return expected("one offload");
    advance();
    if (!take_word("optimizer")) return expected("optimizer to offload");
    made_.offload = true;
    return {};
  }

  Status read_recompute() {
    if (!made_.recompute.is_nothing()) return expected("one list of what to recompute");
    advance();
    bool none = false;
    do {
      const Span span = here_.span;
      const bool quoted = here_.kind == TokenKind::quoted;
      if (none) return expected("nothing after recompute none");
      WEFT_TRY(item, name("layers, selective, none or a name to recompute"));
      none = !quoted && item == "none";
      if (Status status = train::add_recompute(made_.recompute, item, quoted); !status.ok()) {
        Error wrong = std::move(status).error();
        wrong.span = span;
        return wrong;
      }
    } while (take(TokenKind::comma));
    return {};
  }

  Status read_axis() {
    const Span span = here_.span;
    WEFT_TRY(axis, name("a mesh axis"));
    take(TokenKind::equal);
    WEFT_TRY(ranks, count<std::int32_t>(fmt::format("the number of ranks of mesh axis {}", axis),
                                        std::numeric_limits<std::int32_t>::min()));
    made_.mesh.axes.push_back({std::move(axis), ranks});
    if (Status status = plan::check(made_.mesh); !status.ok()) {
      Error wrong = std::move(status).error();
      wrong.span = span;
      return wrong;
    }
    made_.axes.emplace_back();
    if (!take(TokenKind::colon)) return {};
    return at_word("stage") ? read_stage(made_.axes.back()) : read_use(made_.axes.back());
  }

  // "stage 1", "stages 2 to 5"; either word alone is a name.
  bool next_is_stages() const {
    return (at_word("stage") || at_word("stages")) && !ahead_.text.empty() &&
           kDigits.find(ahead_.text.front()) != std::string_view::npos;
  }
  Result<std::pair<std::int32_t, std::int32_t>> read_stages() {
    const bool several = at_word("stages");
    advance();
    const Span span = here_.span;
    WEFT_TRY(first, count<std::int32_t>("the number of a stage, from 0 on", 0));
    std::int32_t last = first;
    if (several) {
      if (!take_word("to")) return expected("'to' and the last of these stages");
      WEFT_TRY(end, count<std::int32_t>("the number of the last of these stages", 0));
      last = end;
    }
    if (last < first)
      return user_error(fmt::format("stages {} to {} is an empty range", first, last),
                        "write the lower number first", span);
    return std::pair(first, last);
  }

  // A mesh axis that only some stages have: "stage 1 on gpu=2: slice h".
  Status read_own_axis() {
    const Span span = here_.span;
    WEFT_TRY(stages, read_stages());
    if (!take_word("on") || !next_is_axis()) return expected("'on' and a mesh axis of these stages");
    WEFT_TRY(axis, name("a mesh axis"));
    take(TokenKind::equal);
    WEFT_TRY(ranks, count<std::int32_t>(fmt::format("the number of ranks of mesh axis {}, 1 or more", axis)));
    OwnAxis own{stages.first, stages.second, {std::move(axis), ranks}, {}, span};
    if (take(TokenKind::colon)) WEFT_TRY_STATUS(read_use(own.use));
    if (!own.use.takes.empty() || !own.use.in_stages.empty())
      return user_error(
          fmt::format("only these stages have axis {}: it cannot describe other stages", own.axis.name),
          "use `micro-batches` and `in stage` only on axes that all stages have", span);
    if (own_.size() == kMostEntries) return expected("fewer axes");
    own_.push_back(std::move(own));
    return {};
  }

  // How some stages use the axis instead: "in stage 1 slice h, f", "in stages 1 to 3 nothing".
  bool next_is_in_stages() const {
    return at_word("in") && (ahead_.text == "stage" || ahead_.text == "stages");
  }
  Status read_in_stages(AxisUse& use) {
    advance();
    WEFT_TRY(stages, read_stages());
    AxisUse own;
    if (!take_word("nothing")) WEFT_TRY_STATUS(read_use_of(own));
    if (!own.takes.empty()) return expected("micro-batches before `in stage`");
    if (use.in_stages.size() == kMostEntries) return expected("fewer stages");
    use.in_stages.push_back({stages.first, stages.second, std::move(own.slice), own.shard, own.ring});
    return {};
  }

  Status read_stage(AxisUse& use) {
    if (stage_axis(made_)) return expected("one axis of stages");
    advance();
    use.stage = true;
    if (!take(TokenKind::comma)) return {};
    if (!take_word("chunks") || !take(TokenKind::equal)) return expected("chunks=N after stage");
    WEFT_TRY(chunks, count<std::int32_t>("the number of chunks of a stage, 1 or more"));
    use.chunks = chunks;
    return {};
  }

  // First for all stages, then overrides for some of them.
  Status read_use(AxisUse& use) {
    if (!next_is_in_stages()) WEFT_TRY_STATUS(read_use_of(use));
    while (next_is_in_stages()) {
      WEFT_TRY_STATUS(read_in_stages(use));
      if (here_.kind == TokenKind::comma && ahead_.text == "in") advance();
    }
    return {};
  }

  Status read_use_of(AxisUse& use) {
    bool slices = false, shards = false;
    do {
      if (next_is_in_stages()) break;  // after a comma
      if (next_is_shard()) {
        if (shards) return expected("one shard on an axis");
        shards = true;
        advance();
        const auto found = std::ranges::find(kShards, here_.text);
        if (found == kShards.end()) {
          Error wrong = expected("nothing, optimizer or parameters to shard");
          if (std::string hint = did_you_mean(here_.text, kShards); !hint.empty())
            wrong.hint = std::move(hint);
          return wrong;
        }
        use.shard = static_cast<Shard>(found - kShards.begin());
        advance();
        continue;
      }
      if (at_word(kRing) && ahead_.is_word()) {
        if (use.ring) return expected("ring attention once on an axis");
        advance();
        if (!take_word(kAttention)) return expected("attention after ring");
        use.ring = true;
        continue;
      }
      if (next_is_micro_batches()) {
        if (!use.takes.empty()) return expected("one list of micro-batches per axis");
        advance();
        WEFT_TRY_STATUS(read_takes(use));
        continue;
      }
      if (!slices && !take_word("slice"))
        return expected(take_word("shard") ? "nothing, optimizer or parameters to shard" : "slice or shard");
      slices = true;
      const Span span = here_.span;
      WEFT_TRY(index, name("an index"));
      if (std::ranges::find(use.slice, index) != use.slice.end())
        return user_error(fmt::format("index {} is listed twice", index), "", span);
      if (use.slice.size() == kMostEntries) return expected("fewer indices");
      use.slice.push_back(std::move(index));
    } while (take(TokenKind::comma));
    if (use.ring && use.slice.empty())
      return user_error("ring attention needs an axis that slices the sequence, but this axis slices nothing",
                        "name its index before: slice s, ring attention", here_.span);
    return {};
  }
  Status read_takes(AxisUse& use) {
    constexpr std::string_view kWanted = "a number of micro-batches per rank, 1 to a million";
    const Span span = here_.span;
    do {
      WEFT_TRY(number, count<std::int64_t>(kWanted, 1, kMostTaken));
      if (use.takes.size() == kMostEntries) return expected("fewer numbers of micro-batches");
      use.takes.push_back(number);
    } while (take(TokenKind::colon));
    const plan::MeshAxis& axis = made_.mesh.axes.back();
    if (use.takes.size() == static_cast<std::size_t>(axis.ranks)) return {};
    return user_error(fmt::format("{} has {} ranks, but micro-batches has {} numbers", axis.name, axis.ranks,
                                  use.takes.size()),
                      "one number per rank: micro-batches 5:3", span);
  }
  // Before a number; otherwise it is an index of that name. Older texts write `takes`.
  bool next_is_micro_batches() const {
    return (at_word(kMicroBatches) || at_word(kFormerMicroBatches)) && !ahead_.text.empty() &&
           kDigits.find(ahead_.text.front()) != std::string_view::npos;
  }
  // `shard` before another word; alone it is an index of that name.
  bool next_is_shard() const { return at_word("shard") && ahead_.is_word(); }

  Status read_exception() {
    Exception exception;
    if (take_word("slice")) {
      WEFT_TRY(index, name("an index"));
      exception.index = std::move(index);
      if (!take_word("of")) return expected("'of' and a tensor");
    } else if (!take_word("replicate")) {
      return expected("a mesh axis and its ranks, or an exception: slice or replicate");
    }
    WEFT_TRY(tensor, name("a tensor"));
    exception.tensor = std::move(tensor);
    if (!take_word("on")) return expected("'on' and a mesh axis");
    WEFT_TRY(axis, name("a mesh axis"));
    exception.axis = std::move(axis);
    if (made_.exceptions.size() == kMostEntries) return expected("fewer exceptions");
    made_.exceptions.push_back(std::move(exception));
    return {};
  }

  std::string_view text_;
  Lexer lexer_;
  Piece here_, ahead_;
  Distribution made_;
  std::vector<OwnAxis> own_;  // of single stages
  bool has_micro_ = false;
};

// Names with dots need no quotes here, unlike names that could not be read back.
std::string word(std::string_view name) {
  const auto plain = [](char c) { return is_in_word(c) || c == '.'; };
  if (!name.empty() && std::ranges::all_of(name, plain)) return std::string(name);
  return plan::quote_unless_plain(name);
}

}  // namespace

namespace {

// "slice b, c, ring attention, shard optimizer"; empty if the axis is unused.
std::string print_use(const std::vector<std::string>& slice, bool ring, Shard shard) {
  std::string text;
  for (const std::string& index : slice) text += (text.empty() ? "slice " : ", ") + word(index);
  const auto add = [&](std::string_view more) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", more);
  };
  if (ring) add(fmt::format("{} {}", kRing, kAttention));
  if (shard != Shard::nothing) add(fmt::format("shard {}", name(shard)));
  return text;
}

}  // namespace

std::string print_use(const AxisUse& use) { return print_use(use.slice, use.ring, use.shard); }

std::string_view name(Shard shard) { return kShards[static_cast<std::size_t>(shard)]; }

std::string print(const Distribution& distribution) {
  std::string text;
  for (std::size_t axis = 0; axis < distribution.mesh.axes.size(); ++axis) {
    const plan::MeshAxis& on = distribution.mesh.axes[axis];
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", word(on.name), on.ranks);
    if (axis >= distribution.axes.size()) continue;
    const AxisUse& use = distribution.axes[axis];
    if (use.stage) text += use.chunks == 1 ? ": stage" : fmt::format(": stage, chunks={}", use.chunks);
    std::string does = print_use(use.slice, use.ring, use.shard);
    const auto add = [&](std::string_view more) {
      does += fmt::format("{}{}", does.empty() ? "" : ", ", more);
    };
    if (!use.takes.empty()) add(fmt::format("{} {}", kMicroBatches, fmt::join(use.takes, ":")));
    for (const StageUse& own : use.in_stages) {
      const std::string instead = print_use(own.slice, own.ring, own.shard);
      add(fmt::format("in {} {}", print_stages(own.first, own.last), instead.empty() ? "nothing" : instead));
    }
    if (!does.empty()) text += ": " + does;
  }
  for (const Exception& exception : distribution.exceptions)
    text += exception.index.empty()
                ? fmt::format("; replicate {} on {}", word(exception.tensor), word(exception.axis))
                : fmt::format("; slice {} of {} on {}", word(exception.index), word(exception.tensor),
                              word(exception.axis));
  if (distribution.micro_batches != 1)
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", kMicro, distribution.micro_batches);
  if (!distribution.recompute.is_nothing())
    text += fmt::format("{}recompute {}", text.empty() ? "" : "; ", train::print(distribution.recompute));
  if (distribution.offload) text += fmt::format("{}offload optimizer", text.empty() ? "" : "; ");
  if (!distribution.schedule.empty()) text += fmt::format("; schedule {}", word(distribution.schedule));
  return text;
}

std::optional<std::size_t> stage_axis(const Distribution& distribution) {
  const auto found = std::ranges::find_if(distribution.axes, &AxisUse::stage);
  if (found == distribution.axes.end()) return {};
  return static_cast<std::size_t>(found - distribution.axes.begin());
}

bool is_pipelined(const Distribution& distribution) {
  return distribution.micro_batches != 1 || stage_axis(distribution).has_value() ||
         std::ranges::any_of(distribution.axes, [](const AxisUse& use) { return !use.takes.empty(); });
}

bool has_stage_meshes(const Distribution& distribution) {
  return std::ranges::any_of(distribution.axes, [](const AxisUse& use) { return !use.in_stages.empty(); });
}

Distribution as_in_stage(const Distribution& distribution, std::int32_t stage) {
  Distribution made = distribution;
  for (AxisUse& use : made.axes) {
    for (const StageUse& own : use.in_stages)
      if (own.first <= stage && stage <= own.last) {
        use.slice = own.slice;
        use.shard = own.shard;
        use.ring = own.ring;
      }
    use.in_stages.clear();
  }
  return made;
}

std::vector<std::size_t> axes_within_stage(const Distribution& distribution) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < distribution.axes.size(); ++axis)
    if (!distribution.axes[axis].stage) axes.push_back(axis);
  std::stable_partition(axes.begin(), axes.end(),
                        [&](std::size_t axis) { return distribution.axes[axis].takes.empty(); });
  return axes;
}

Distribution within_stage(const Distribution& distribution) {
  Distribution inner = distribution;
  inner.micro_batches = 1;
  inner.schedule.clear();
  inner.mesh.axes.clear();
  inner.axes.clear();
  for (const std::size_t axis : axes_within_stage(distribution)) {
    inner.mesh.axes.push_back(distribution.mesh.axes[axis]);
    inner.axes.push_back(distribution.axes[axis]);
    inner.axes.back().takes.clear();
  }
  return inner;
}

bool has_former_words(std::string_view text) { return Reader(text).has_former_words(); }

Result<Distribution> read_distribution(std::string_view text) {
  if (text.size() > std::size_t{1} << 24) return user_error("expected at most 16 MiB of distribution text");
  return Reader(text).read();
}

}  // namespace weft::distribute
