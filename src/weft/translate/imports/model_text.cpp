#include "weft/translate/imports/model_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/language/print.h"

namespace weft::imports {
namespace {

constexpr std::size_t kTextWidth = 120;
constexpr std::int64_t kMostElements = std::int64_t{1} << 54;  // per parameter
constexpr std::int64_t kMostCalls = 100'000;                   // per layer; the planner rejects more

// Prints items after `head`, wrapped into lines that align with the first item.
std::string in_lines(std::string_view head, const std::vector<std::string>& items,
                     std::string_view tail = {}) {
  std::string out(head);
  std::size_t at = head.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : std::string(tail));
    if (i > 0 && at + 1 + item.size() > kTextWidth) {
      out += "\n" + std::string(head.size(), ' ');
      at = head.size();
    } else if (i > 0) {
      out += ' ';
      ++at;
    }
    out += item;
    at += item.size();
  }
  return out + "\n";
}

// Prints a query after `head`. If it is too long, it is continued on a second line from FROM or
// GROUP BY on.
std::string query_lines(const std::string& head, std::string_view query, std::string_view tail) {
  if (head.size() + query.size() + tail.size() <= kTextWidth || query.find('\n') != std::string_view::npos)
    return fmt::format("{}{}{}\n", head, query, tail);
  const std::size_t from = query.rfind(" FROM ");
  if (from == std::string_view::npos) return fmt::format("{}{}{}\n", head, query, tail);
  return fmt::format("{}{}\n{}{}{}\n", head, query.substr(0, from), std::string(head.size(), ' '),
                     query.substr(from + 1), tail);
}

std::string with_number(std::string text, std::int64_t number) {
  const std::size_t at = text.find("{}");
  return at == std::string::npos ? text : text.replace(at, 2, std::to_string(number));
}

}  // namespace

Stored same(std::string tensor) {
  Stored stored;
  stored.tensor = std::move(tensor);
  return stored;
}

Stored turned(std::string tensor, std::size_t inputs) {
  Stored stored = same(std::move(tensor));
  stored.inputs = inputs;
  return stored;
}

Stored transposed_experts(std::string tensor) {
  Stored stored = turned(std::move(tensor));
  stored.stacked = true;
  return stored;
}

LayerText::LayerText(std::string name, std::string arguments, std::string comment)
    : name_(std::move(name)), arguments_(std::move(arguments)), comment_(std::move(comment)) {}

void LayerText::size(std::string name, std::int64_t value, std::string text) {
  sizes_.push_back({std::move(name), value, std::move(text)});
}

void LayerText::parameter(std::string name, std::vector<std::string> indices, std::string init,
                          Stored stored) {
  parameters_.push_back({std::move(name), std::move(indices), std::move(init), std::move(stored)});
}

void LayerText::state(std::string name, std::vector<std::string> indices, Stored stored) {
  parameters_.push_back({std::move(name), std::move(indices), {}, std::move(stored), true});
}

void LayerText::with(std::string name, std::string query, std::string prefix) {
  entries_.push_back({std::move(name), std::move(query), std::move(prefix)});
}

void LayerText::select(std::string query) { select_ = std::move(query); }

std::int64_t LayerText::value(std::string_view size) const {
  const auto found = std::ranges::find(sizes_, size, &TextSize::name);
  WEFT_CHECK(found != sizes_.end(), fmt::format("{} has no size {}", name_, size));
  return found->value;
}

std::string LayerText::print(std::string_view kind) const {
  std::string out;
  if (!comment_.empty()) out += fmt::format("-- {}\n", comment_);
  const bool is_model = kind == "MODEL";
  out += fmt::format("CREATE OR REPLACE {} {}", kind, language::print_name(name_));
  out += is_model ? "\n" : fmt::format("({})\n", arguments_);
  std::vector<std::string> items;
  for (const TextSize& size : sizes_)
    items.push_back(
        fmt::format("{} = {}", size.name, size.text.empty() ? std::to_string(size.value) : size.text));
  if (!items.empty()) out += in_lines("  (", items, ")");
  if (is_model) out += fmt::format("  INPUT     {}\n", arguments_);
  for (const bool state : {false, true}) {
    items.clear();
    for (const TextParameter& parameter : parameters_) {
      if (parameter.state != state) continue;
      std::string item = parameter.name;
      if (!parameter.indices.empty()) item += fmt::format("[{}]", fmt::join(parameter.indices, ", "));
      if (!parameter.init.empty()) item += fmt::format(" INIT {}", parameter.init);
      items.push_back(std::move(item));
    }
    if (!items.empty()) out += in_lines(state ? "  STATE     " : "  PARAMETER ", items);
  }
  if (entries_.empty()) return out + query_lines("AS ", select_, ";");
  std::size_t widest = 0;
  for (const Entry& entry : entries_)
    if (entry.prefix.empty()) widest = std::max(widest, entry.name.size());
  out += "AS WITH\n";
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string head = entry.prefix.empty() ? fmt::format("  {:<{}} AS (", entry.name, widest)
                                                  : fmt::format("  {}{} AS (", entry.prefix, entry.name);
    out += query_lines(head, entry.query, i + 1 < entries_.size() ? ")," : ")");
  }
  return out + query_lines("", select_, ";");
}

ModelText::ModelText(std::string name, std::string inputs, std::string comment)
    : comment_(std::move(comment)), body_(std::move(name), std::move(inputs)) {}

void ModelText::place(const LayerText& of, const TextParameter& parameter, std::string name,
                      std::string tensor) {
  WeightSource source;
  std::int64_t elements = 1;
  for (const std::string& index : parameter.indices) {
    source.shape.push_back(of.value(index));
    if (__builtin_mul_overflow(elements, source.shape.back(), &elements)) too_many_ = true;
  }
  if (elements > kMostElements || (!parameter.state && __builtin_add_overflow(count_, elements, &count_)))
    too_many_ = true;
  if (too_many_ || parameter.stored.tensor.empty()) return;
  const Stored& stored = parameter.stored;
  source.parameter = std::move(name);
  source.state = parameter.state;
  source.tensor = std::move(tensor);
  source.stacked = stored.stacked ? source.shape.front() : 0;
  source.axis = stored.axis;
  source.begin = stored.begin;
  source.pairs = stored.pairs;
  const std::size_t skipped = stored.stacked ? 1 : 0;
  const auto product = [&](std::size_t begin, std::size_t end) {
    std::int64_t result = 1;
    for (std::size_t i = begin; i < end; ++i) result *= source.shape[i];
    return result;
  };
  if (!stored.view.empty()) {
    source.view = stored.view;
    source.order = stored.order;
    std::int64_t others = 1;
    for (std::size_t i = 0; i < source.view.size(); ++i)
      if (i != stored.axis) others *= source.view[i];
    source.count = product(skipped, source.shape.size()) / others;
  } else if (stored.inputs > 0) {
    const std::size_t split = skipped + stored.inputs;
    source.view = {product(split, source.shape.size()), product(skipped, split)};
    source.count = source.view.front();
    source.order = {1, 0};
  } else {
    source.view = {product(skipped, source.shape.size())};
    source.count = source.view.front();
    source.order = {0};
  }
  weights_.push_back(std::move(source));
}

void ModelText::call(const LayerText& layer, const std::string& as, const std::string& prefix,
                     std::int64_t times, std::int64_t first, std::int64_t stride) {
  if (times > kMostCalls) too_many_ = true;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(times, 1) && !too_many_; ++i)
    for (const TextParameter& parameter : layer.parameters())
      place(layer, parameter,
            times == 0 ? fmt::format("{}.{}", as, parameter.name)
                       : fmt::format("{}.{}.{}", as, i, parameter.name),
            with_number(prefix, first + i * stride) + parameter.stored.tensor);
}

Result<Imported> ModelText::finish(std::string architecture, std::vector<std::string> notes) {
  for (const TextParameter& parameter : body_.parameters())
    place(body_, parameter, parameter.name, parameter.stored.tensor);
  if (too_many_) return user_error("the model has more parameters than can be counted");
  std::string text = fmt::format("-- {}\n", comment_);
  for (const std::string& note : notes) text += fmt::format("-- {}\n", note);
  text += "\n";
  for (const std::string& layer : layers_) text += layer + "\n";
  text += body_.print("MODEL");
  return Imported{body_.name(), std::move(architecture), std::move(text),
                  count_,       std::move(notes),        std::move(weights_)};
}

}  // namespace weft::imports
