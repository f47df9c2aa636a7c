// Reads and prints meshes and layouts.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/graph/words.h"

namespace weft::plan {
namespace {

// Tokens of a layout: words, quoted or not, and punctuation.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : text_(text) { skip_blanks(); }

  bool at_end() const { return text_.empty(); }
  bool take(char sign) {
    if (text_.empty() || text_[0] != sign) return false;
    text_.remove_prefix(1);
    skip_blanks();
    return true;
  }
  // The next word; nullopt if there is none here.
  std::optional<std::string> word() {
    if (text_.empty()) return std::nullopt;
    std::optional<std::string> found = text_[0] == '"' ? quoted() : bare();
    skip_blanks();
    return found;
  }
  // The text at this position, shortened for an error message.
  std::string found() const {
    constexpr std::size_t kMost = 24;
    return at_end() ? "the end" : fmt::format("'{}'", text_.substr(0, kMost));
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  std::optional<std::string> bare() {
    std::size_t length = 0;
    while (length < text_.size() &&
           std::string_view(" \t,()=\"").find(text_[length]) == std::string_view::npos)
      ++length;
    if (length == 0) return std::nullopt;
    std::string word(text_.substr(0, length));
    text_.remove_prefix(length);
    return word;
  }
  std::optional<std::string> quoted() {
    std::string word;
    for (std::size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        text_.remove_prefix(i + 1);
        return word;
      }
      const bool escaped = text_[i] == '\\' && i + 1 < text_.size();
      if (escaped) ++i;
      word += escaped && text_[i] == 'n' ? '\n' : text_[i];
    }
    return std::nullopt;  // never closed
  }

  std::string_view text_;
};

struct NamedLayout {
  std::string axis;
  AxisLayout layout;
};

constexpr std::array<std::string_view, 4> kKinds = {"replicated", "sliced", "partial", "varying"};

Result<Symbol> read_index(const std::string& name, const Type& type, const Symbols& symbols) {
  for (const Dim& dim : type.dims)
    if (symbols.text(dim.index) == name) return dim.index;
  return user_error(
      fmt::format("layout slices index {}, which is not among {}", name, print_indices(type.dims, symbols)));
}

Result<std::uint16_t> read_border(Pieces& pieces) {
  const std::string before = pieces.found(), digits = pieces.word().value_or("");
  const auto border = read_number<std::uint16_t>(digits);
  if (!border)
    return user_error(
        fmt::format("expected a border of 0 to {} elements in a layout, found {}", kMaxBorder, before));
  return *border;
}

// Reads the part before "on".
Result<AxisLayout> read_kind(Pieces& pieces, const Type& type, const Symbols& symbols) {
  const auto expected = [&](std::string_view what) {
    return user_error(fmt::format("expected {} in a layout, found {}", what, pieces.found()),
                      "state a layout per mesh axis: \"sliced(b) on gpu, partial(sum) on node\"");
  };
  const std::string before = pieces.found();
  const std::optional<std::string> kind = pieces.word();
  if (!kind || std::ranges::find(kKinds, *kind) == kKinds.end())
    return user_error(
        fmt::format("expected replicated, sliced, partial or varying in a layout, found {}", before),
        kind ? did_you_mean(*kind, kKinds) : std::string());
  if (*kind == "replicated") return AxisLayout::replicated();
  if (*kind == "varying") return AxisLayout::varying();
  if (!pieces.take('(')) return expected(fmt::format("( after {}", *kind));
  const std::optional<std::string> argument = pieces.word();
  if (!argument) return expected(*kind == "sliced" ? "an index" : "sum, max or min");
  if (*kind == "sliced") {
    WEFT_TRY(index, read_index(*argument, type, symbols));
    AxisLayout layout = AxisLayout::sliced(index);
    if (pieces.take(',')) {
      WEFT_TRY(border_before, read_border(pieces));
      if (!pieces.take(',')) return expected("a comma and the border after the block");
      WEFT_TRY(border_after, read_border(pieces));
      layout = AxisLayout::sliced(index, border_before, border_after);
    }
    if (!pieces.take(')')) return expected(")");
    return layout;
  }
  if (!pieces.take(')')) return expected(")");
  const Monoid monoid = find_monoid(*argument);
  if (monoid == Monoid::none)
    return user_error(fmt::format(
        "layout must be partial(sum), partial(max) or partial(min), found partial({})", *argument));
  return AxisLayout::partial(monoid);
}

Status check_one_monoid(std::span<const NamedLayout> named) {
  Monoid first = Monoid::none;
  for (const NamedLayout& one : named) {
    if (!one.layout.is_partial()) continue;
    if (first != Monoid::none && one.layout.monoid != first)
      return user_error(
          fmt::format("a layout may have only one kind of partial, found partial({}) and partial({})",
                      name(first), name(one.layout.monoid)));
    first = one.layout.monoid;
  }
  return {};
}

// If two axes slice one index, neighbours of an inner block are not always along the inner axis.
Status check_borders(std::span<const NamedLayout> named, const Symbols& symbols) {
  for (const NamedLayout& one : named) {
    if (!one.layout.has_borders()) continue;
    const auto cuts = [&](const NamedLayout& other) { return other.layout.slices(one.layout.index); };
    if (std::ranges::count_if(named, cuts) > 1)
      return user_error(
          fmt::format("an index with borders may be sliced on one mesh axis only, found {} on {} and another",
                      print(one.layout, symbols), one.axis));
  }
  return {};
}

Result<std::vector<NamedLayout>> read_named(std::string_view text, const Type& type, const Symbols& symbols) {
  std::vector<NamedLayout> named;
  Pieces pieces(text);
  if (pieces.at_end()) return named;
  do {
    WEFT_TRY(layout, read_kind(pieces, type, symbols));
    if (named.empty() && layout.is_replicated() && pieces.at_end()) return named;
    const std::string before = pieces.found();
    if (pieces.word() != "on")
      return user_error(
          fmt::format("expected 'on' and a mesh axis after {}, found {}", print(layout, symbols), before));
    const std::optional<std::string> axis = pieces.word();
    if (!axis || axis->empty())
      return user_error(fmt::format("expected a mesh axis after 'on', found {}", pieces.found()));
    if (std::ranges::find(named, *axis, &NamedLayout::axis) != named.end())
      return user_error(fmt::format("layout names mesh axis {} twice", *axis));
    named.push_back({*axis, layout});
  } while (pieces.take(','));
  if (!pieces.at_end())
    return user_error(fmt::format("expected a comma between the axes of a layout, found {}", pieces.found()));
  WEFT_TRY_STATUS(check_one_monoid(named));
  WEFT_TRY_STATUS(check_borders(named, symbols));
  return named;
}

}  // namespace

std::string print(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", quote_unless_plain(axis.name), axis.ranks);
  return text;
}

Result<Mesh> read_mesh(std::string_view text) {
  Mesh mesh;
  Pieces pieces(text);
  if (pieces.at_end()) return mesh;
  do {
    const std::string before = pieces.found();
    const std::optional<std::string> axis = pieces.word();
    if (!axis || !pieces.take('='))
      return user_error(fmt::format("expected a mesh axis and its ranks, found {}", before), "node=2, gpu=4");
    const std::string count = pieces.word().value_or("");
    const auto ranks = read_number<std::int32_t>(count);
    if (!ranks)
      return user_error(
          fmt::format("expected the number of ranks of mesh axis {}, found '{}'", *axis, count));
    mesh.axes.push_back({*axis, *ranks});
    WEFT_TRY_STATUS(check(mesh));
  } while (pieces.take(','));
  if (!pieces.at_end())
    return user_error(fmt::format("expected a comma between mesh axes, found {}", pieces.found()));
  return mesh;
}

std::string print(const AxisLayout& layout, const Symbols& symbols) {
  switch (layout.kind) {
    case AxisLayout::Kind::replicated: return "replicated";
    case AxisLayout::Kind::sliced:
      return layout.has_borders()
                 ? fmt::format("sliced({}, {}, {})", quote_unless_plain(symbols.text(layout.index)),
                               layout.before, layout.after)
                 : fmt::format("sliced({})", quote_unless_plain(symbols.text(layout.index)));
    case AxisLayout::Kind::partial: return fmt::format("partial({})", name(layout.monoid));
    case AxisLayout::Kind::varying: return "varying";
  }
  return "";
}

std::string print(const Layout& layout, const Mesh& mesh, const Symbols& symbols) {
  std::string text;
  for (std::size_t i = 0; i < layout.axes.size(); ++i)
    if (!layout.axes[i].is_replicated())
      text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", print(layout.axes[i], symbols),
                          quote_unless_plain(mesh.axes[i].name));
  return text.empty() ? "replicated" : text;
}

Monoid find_monoid(std::string_view word) {
  for (const Monoid monoid : {Monoid::sum, Monoid::max, Monoid::min})
    if (name(monoid) == word) return monoid;
  return Monoid::none;
}

Result<Layout> read_layout(std::string_view text, const Mesh& mesh, const Type& type,
                           const Symbols& symbols) {
  WEFT_TRY(named, read_named(text, type, symbols));
  Layout layout = Layout::replicated(mesh);
  for (const NamedLayout& one : named) {
    const int axis = mesh.find(one.axis);
    if (axis < 0) return user_error(fmt::format("the mesh has no axis {}: it is {}", one.axis, print(mesh)));
    layout.axes[static_cast<std::size_t>(axis)] = one.layout;
  }
  return layout;
}

Status check_layout(std::string_view text, const Type& type, const Symbols& symbols) {
  WEFT_TRY_STATUS(read_named(text, type, symbols));
  return {};
}

}  // namespace weft::plan
