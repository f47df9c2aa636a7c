#include "weft/distribute/distribution.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/words.h"

namespace weft::distribute {
namespace {

constexpr std::array<std::string_view, 3> kShards = {"nothing", "optimizer", "parameters"};
constexpr std::string_view kExample =
    "node=4: slice b, shard parameters; gpu=8: slice h, f, s; replicate w on gpu";
constexpr std::string_view kSigns = ",;:=";

// More of anything than this is no distribution that anyone means.
constexpr std::size_t kMostEntries = 10'000;

struct Token {
  std::string text;
  Span span;
  bool is_word = false;  // else a single sign, or, empty, the end
};

Result<std::vector<Token>> tokens_of(std::string_view text) {
  const auto span = [](std::size_t begin, std::size_t end) {
    return Span{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)};
  };
  if (text.size() > std::size_t{1} << 24) return user_error("a distribution of more than 16 MiB");
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at;
    } else if (kSigns.find(c) != std::string_view::npos) {
      tokens.push_back({std::string(1, c), span(at, at + 1), false});
      ++at;
    } else if (c == '"') {
      std::string word;
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size()) {
          ++at;
          word += text[at] == 'n' ? '\n' : text[at];
        } else {
          word += text[at];
        }
      }
      if (at == text.size()) return user_error("a quoted name is not closed", "", span(begin, begin + 1));
      tokens.push_back({std::move(word), span(begin, ++at), true});
    } else {
      while (at < text.size() && std::string_view(" \t\n\r\",;:=").find(text[at]) == std::string_view::npos)
        ++at;
      tokens.push_back({std::string(text.substr(begin, at - begin)), span(begin, at), true});
    }
  }
  const std::size_t end = text.size();
  tokens.push_back({"", end == 0 ? Span{} : span(end - 1, end), false});
  return tokens;
}

class Reader {
 public:
  explicit Reader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Distribution> read() && {
    while (!at_end()) {
      WEFT_TRY_STATUS(next_is_axis() ? read_axis() : read_exception());
      if (at_end()) break;
      if (!take(";")) return expected("a semicolon between two parts of a distribution");
    }
    if (made_.mesh.axes.empty()) return expected("a mesh axis and its ranks");
    return std::move(made_);
  }

 private:
  const Token& here() const { return tokens_[at_]; }
  bool at_end() const { return at_ + 1 == tokens_.size(); }
  bool next_is_axis() const { return here().is_word && !at_end() && tokens_[at_ + 1].text == "="; }
  bool take(std::string_view sign) {
    if (here().is_word || here().text != sign) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!here().is_word || here().text != word) return false;
    ++at_;
    return true;
  }
  Error expected(std::string_view what) const {
    constexpr std::size_t kMost = 24;
    return user_error(fmt::format("expected {}, found {}", what,
                                  at_end() ? "the end" : fmt::format("'{}'", here().text.substr(0, kMost))),
                      std::string(kExample), here().span);
  }
  Result<std::string> name(std::string_view what) {
    if (!here().is_word || here().text.empty()) return expected(what);
    return tokens_[at_++].text;
  }

  Status read_axis() {
    const Span span = here().span;
    WEFT_TRY(axis, name("a mesh axis"));
    take("=");
    const std::string& count = here().text;
    std::int32_t ranks = 0;
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), ranks);
    if (!here().is_word || error != std::errc() || end != count.data() + count.size())
      return expected(fmt::format("the number of ranks of mesh axis {}", axis));
    ++at_;
    made_.mesh.axes.push_back({std::move(axis), ranks});
    if (Status status = plan::check(made_.mesh); !status.ok()) {
      Error wrong = std::move(status).error();
      wrong.span = span;
      return wrong;
    }
    made_.axes.emplace_back();
    return take(":") ? read_use(made_.axes.back()) : Status();
  }

  Status read_use(AxisUse& use) {
    bool slices = false, shards = false;
    do {
      if (next_is_shard()) {
        if (shards) return expected("one shard on an axis");
        shards = true;
        ++at_;
        const auto found = std::ranges::find(kShards, here().text);
        if (found == kShards.end()) {
          Error wrong = expected("nothing, optimizer or parameters to shard");
          if (std::string hint = did_you_mean(here().text, kShards); !hint.empty())
            wrong.hint = std::move(hint);
          return wrong;
        }
        use.shard = static_cast<Shard>(found - kShards.begin());
        ++at_;
        continue;
      }
      if (!slices && !take_word("slice"))
        return expected(take_word("shard") ? "nothing, optimizer or parameters to shard" : "slice or shard");
      slices = true;
      const Span span = here().span;
      WEFT_TRY(index, name("an index"));
      if (std::ranges::find(use.slice, index) != use.slice.end())
        return user_error(fmt::format("index {} is listed twice", index), "", span);
      if (use.slice.size() == kMostEntries) return expected("fewer indices");
      use.slice.push_back(std::move(index));
    } while (take(","));
    return {};
  }
  // `shard` before another word; by itself it is an index of that name.
  bool next_is_shard() const {
    return here().is_word && here().text == "shard" && !at_end() && tokens_[at_ + 1].is_word;
  }

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

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Distribution made_;
};

// Names of tensors have dots: they need no quotes here, unlike what would not be read back.
std::string word(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  if (!name.empty() && std::ranges::all_of(name, plain)) return std::string(name);
  return plan::quote_unless_plain(name);
}

}  // namespace

std::string_view name(Shard shard) { return kShards[static_cast<std::size_t>(shard)]; }

std::string print(const Distribution& distribution) {
  std::string text;
  for (std::size_t axis = 0; axis < distribution.mesh.axes.size(); ++axis) {
    const plan::MeshAxis& on = distribution.mesh.axes[axis];
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", word(on.name), on.ranks);
    if (axis >= distribution.axes.size()) continue;
    const AxisUse& use = distribution.axes[axis];
    std::string_view before = ": slice ";
    for (const std::string& index : use.slice) {
      text += before;
      text += word(index);
      before = ", ";
    }
    if (use.shard != Shard::nothing)
      text += fmt::format("{}shard {}", use.slice.empty() ? ": " : ", ", name(use.shard));
  }
  for (const Exception& exception : distribution.exceptions)
    text += exception.index.empty()
                ? fmt::format("; replicate {} on {}", word(exception.tensor), word(exception.axis))
                : fmt::format("; slice {} of {} on {}", word(exception.index), word(exception.tensor),
                              word(exception.axis));
  return text;
}

Result<Distribution> read_distribution(std::string_view text) {
  WEFT_TRY(tokens, tokens_of(text));
  return Reader(std::move(tokens)).read();
}

}  // namespace weft::distribute
