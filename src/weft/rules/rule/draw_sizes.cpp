#include "weft/rules/rule/draw_sizes.h"

#include <algorithm>
#include <array>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestFitted = 4096;

std::size_t attribute_place(const plan::Operator& op, std::string_view name) {
  const auto specs = op.attributes();
  return static_cast<std::size_t>(std::ranges::find(specs, name, &plan::AttributeSpec::name) - specs.begin());
}

}  // namespace

IndexDraw::IndexDraw(const Rule& rule, std::span<const plan::Attribute> attributes, Random& random,
                     const InstanceOptions& options, const Breakpoints* wide,
                     std::span<const std::int64_t> ranks)
    : rule_(rule),
      attributes_(attributes),
      ranks_(ranks),
      random_(random),
      apart_(options.apart),
      wide_(wide) {
  draw_names();
  if (random_.below(3) == 0) share_names();
  draw_sizes(options.largest);
}

void IndexDraw::draw_names() {
  int next = 0;
  const auto many = std::ranges::count(rule_.indices, true, &IndexVariable::many);
  for (std::uint16_t index = 0; index < rule_.indices.size(); ++index) {
    const IndexVariable& variable = rule_.indices[index];
    // With many such variables, values would have too many indices.
    std::uint64_t count = variable.many ? random_.below(many > 4 ? 2 : 3) : 1;
    // An index whose sizes must differ has to exist.
    if (apart_ && apart_->index == index) count = std::max<std::uint64_t>(count, 1);
    std::vector<int>& names = names_.emplace_back();
    for (std::uint64_t k = 0; k < count; ++k) names.push_back(next++);
  }
  sizes_.resize(static_cast<std::size_t>(next));
}

bool IndexDraw::may_share(int name, std::uint16_t variable) const {
  for (std::uint16_t other = 0; other < rule_.indices.size(); ++other) {
    if (std::ranges::find(names_[other], name) == names_[other].end()) continue;
    if (other == variable) return false;
    for (std::size_t value = 0; value < rule_.left.values; ++value)
      if (has(rule_.left.lists[value], other) && has(rule_.left.lists[value], variable)) return false;
  }
  return true;
}

void IndexDraw::share_names() {
  std::vector<std::pair<std::uint16_t, std::uint16_t>> pairs;
  for (std::uint16_t a = 0; a < rule_.indices.size(); ++a)
    for (std::uint16_t b = 0; b < a; ++b)
      if (!names_[a].empty() && !names_[b].empty() && may_share(names_[b][0], a)) pairs.emplace_back(a, b);
  for (int times = 0; times < 2 && !pairs.empty(); ++times) {
    const auto [a, b] = pairs[random_.below(pairs.size())];
    const int name = names_[b][random_.below(names_[b].size())];
    if (may_share(name, a)) names_[a][random_.below(names_[a].size())] = name;
  }
}

std::int64_t IndexDraw::draw_size(std::int64_t largest) {
  if (random_.below(5) == 0) return 1;
  return random_.between(std::min<std::int64_t>(2, largest), largest);
}

void IndexDraw::draw_sizes(std::int64_t largest) {
  largest_ = std::max<std::int64_t>(1, random_.between(2, std::max<std::int64_t>(2, largest)));
  if (wide_ != nullptr) largest_ = 2;
  for (std::int64_t& size : sizes_) size = draw_size(largest_);
  if (wide_ != nullptr && !sizes_.empty()) widen(*wide_);
  varies_.resize(sizes_.size(), false);
  fixed_.resize(sizes_.size(), false);
  for (const PatternNode& node : rule_.left.nodes) fit(node);
  if (random_.below(8) != 0)
    for (const Condition& condition : rule_.when) fit(condition);
  for (std::size_t name = 0; name < sizes_.size(); ++name) order_.push_back(random_.next());
  one_order_ = random_.below(4) != 0;
}

std::int64_t IndexDraw::any_bound_integer() const {
  std::vector<std::int64_t> numbers;
  for (std::size_t k = 0; k < rule_.variables.size(); ++k)
    if (rule_.variables[k].kind == plan::AttributeKind::integer && attributes_[k].integer >= 1 &&
        attributes_[k].integer <= kLargestFitted)
      numbers.push_back(attributes_[k].integer);
  return numbers.empty() ? 0 : numbers[random_.below(numbers.size())];
}

// Makes one or two sizes large; or sets about half of them close to a number that the rule binds,
// as image sizes are close to a window's width.
void IndexDraw::widen(const Breakpoints& wide) {
  const std::int64_t number = random_.below(2) == 0 ? any_bound_integer() : 0;
  if (number > 0) {
    for (std::int64_t& size : sizes_)
      if (random_.below(2) == 0) size = std::max<std::int64_t>(1, number + random_.between(-1, 2));
    return;
  }
  for (std::uint64_t times = 1 + random_.below(2); times > 0; --times)
    sizes_[random_.below(sizes_.size())] = wide.size(random_);
}

// Adjusts sizes to guards that fix, divide or bound a size.
void IndexDraw::fit(const Condition& condition) {
  using enum Condition::Kind;
  const auto single = [&](const Number& number) -> std::int64_t* {
    if (number.kind != Number::Kind::size || names_[number.index].size() != 1) return nullptr;
    return &sizes_[static_cast<std::size_t>(names_[number.index][0])];
  };
  const auto set = [&](std::int64_t* size, std::int64_t wanted) {
    if (wanted >= 1 && wanted <= kLargestFitted) *size = wanted;
  };
  std::int64_t *left = single(condition.left), *right = single(condition.right);
  const auto random_more = [&] { return static_cast<std::int64_t>(random_.below(3)); };
  switch (condition.kind) {
    case equal:
      if (left != nullptr) set(left, value_of(condition.right));
      return;
    case divides: {
      const std::int64_t parts = value_of(condition.left);
      if (right != nullptr && parts > 1) set(right, (*right + parts - 1) / parts * parts);
      return;
    }
    case even:
      if (left != nullptr) *left += *left % 2;
      return;
    case odd:
      if (left != nullptr) *left += 1 - *left % 2;
      return;
    case less:
    case less_equal: {
      const std::int64_t gap = condition.kind == less ? 1 : 0;
      const std::int64_t a = value_of(condition.left), b = value_of(condition.right);
      if (a + gap <= b) return;
      if (right != nullptr && (left == nullptr || random_.below(2) == 0))
        set(right, a + gap + random_more());
      else if (left != nullptr)
        set(left, b - gap);
      return;
    }
    default: return;
  }
}

int IndexDraw::name_at(std::uint16_t value, std::size_t place) const {
  const IndexList& list = rule_.left.lists[value];
  if (place >= list.size() || names_[list[place]].size() != 1) return -1;
  return names_[list[place]][0];
}

std::int64_t IndexDraw::value_of(const Number& number) const {
  if (number.kind == Number::Kind::literal) return number.literal;
  if (number.kind == Number::Kind::variable) return attributes_[number.variable].integer;
  if (number.kind == Number::Kind::ranks)
    return number.variable < ranks_.size() ? ranks_[number.variable] : 0;
  if (number.kind == Number::Kind::size && names_[number.index].size() == 1)
    return sizes_[names_[number.index][0]];
  if (number.parts.size() != 2) return 0;
  return combine(number.kind, value_of(number.parts[0]), value_of(number.parts[1])).value_or(0);
}

std::int64_t IndexDraw::most_fitted() const { return wide_ != nullptr ? kLargestFitted : largest_; }

void IndexDraw::fit(const PatternNode& node) {
  if (node.op == nullptr) return;
  const auto term = [&](std::string_view name) -> const AttributeTerm& {
    return node.attributes[attribute_place(*node.op, name)];
  };
  if (node.op == &ops::concat() || node.op == &ops::slice() || node.op == &ops::pad()) {
    for (const int name : names_[term("along").indices[0]]) varies_[name] = true;
  } else if (node.op == &ops::conv2d()) {
    const int channels = name_at(node.operands[0], 1), outputs = name_at(node.operands[1], 0),
              inputs = name_at(node.operands[1], 1);
    const AttributeTerm& groups = term("groups");
    const std::int64_t count = groups.kind == AttributeTerm::Kind::variable
                                   ? attributes_[groups.variable].integer
                               : groups.kind == AttributeTerm::Kind::number ? value_of(groups.number)
                                                                            : 1;
    if (channels < 0 || outputs < 0 || inputs < 0 || count < 1 || count > most_fitted()) return;
    // If another convolution has already fixed the channels, adjust this one's weight.
    if (channels != inputs && !fixed_[channels])
      sizes_[channels] = count * sizes_[inputs];
    else if (channels != inputs)
      sizes_[inputs] = std::max<std::int64_t>(1, sizes_[channels] / count);
    fixed_[channels] = true;
    sizes_[outputs] = (sizes_[outputs] + count - 1) / count * count;
  } else if (node.op == &ops::split()) {
    std::int64_t product = 1;
    for (std::size_t k = 0; k < term("into").indices.size(); ++k) {
      const std::int64_t stated = value_of(term("into").sizes[k]);
      for (const int name : names_[term("into").indices[k]]) {
        if (stated > 0 && stated <= most_fitted()) sizes_[name] = stated;
        product *= std::min(sizes_[name], kLargestFitted);
      }
    }
    if (product <= (wide_ != nullptr ? kLargestFitted : 64))
      for (const int name : names_[term("along").indices[0]]) sizes_[name] = product;
  }
}

std::vector<std::pair<int, std::int64_t>> IndexDraw::dims(std::size_t input) {
  std::vector<std::pair<int, std::int64_t>> result;
  const RuleInput& given = rule_.inputs[input];
  for (const std::uint16_t variable : given.list) {
    const bool apart = apart_ && apart_->input == input && apart_->index == variable;
    for (const int name : names_[variable]) {
      const bool own = apart || (varies_[name] && random_.below(2) == 0);
      const std::int64_t other = own ? draw_size(largest_) : sizes_[name];
      result.emplace_back(name, apart && other == sizes_[name] ? other + 1 : other);
    }
  }
  if (given.in_order) return result;
  if (one_order_) {
    std::ranges::sort(result, {},
                      [&](const auto& dim) { return order_[static_cast<std::size_t>(dim.first)]; });
    return result;
  }
  for (std::size_t k = result.size(); k > 1; --k) std::swap(result[k - 1], result[random_.below(k)]);
  return result;
}

}  // namespace weft::rule
