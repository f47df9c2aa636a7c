#include "weft/formats/msccl_xml_step.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/number.h"
#include "weft/formats/msccl_keywords.h"
#include "weft/formats/msccl_xml.h"

namespace weft::formats {
namespace {

using namespace collective;

constexpr std::int64_t kAnyStepNumber = std::numeric_limits<std::int32_t>::max();

// In the usual order; all are required.
constexpr std::array<std::string_view, 10> kStepAttributes = {"s",      "type", "srcbuf", "srcoff", "dstbuf",
                                                              "dstoff", "cnt",  "depid",  "deps",   "hasdep"};
// clang-format off
enum StepAttribute { kPosition, kType, kSourceBuffer, kSourceOffset, kTargetBuffer, kTargetOffset, kCount,
                 kWaitBlock, kWaitStep, kPublishes };
// clang-format on

struct Range {
  StepAttribute attribute;
  std::int64_t low, high;
};
constexpr std::array<Range, 7> kStepNumbers = {{{kPosition, 0, kAnyStepNumber},
                                                {kSourceOffset, -1, kMaxXmlChunks},
                                                {kTargetOffset, -1, kMaxXmlChunks},
                                                {kCount, 0, kMaxXmlChunks},
                                                {kWaitBlock, -1, kAnyStepNumber},
                                                {kWaitStep, -1, kAnyStepNumber},
                                                {kPublishes, 0, 1}}};

std::optional<Op> find_op(std::string_view type) {
  const auto at = std::ranges::find(kStepTypes, type);
  if (at == kStepTypes.end()) return std::nullopt;
  return static_cast<Op>(at - kStepTypes.begin());
}

std::optional<Buffer> find_buffer(std::string_view letter) {
  const std::size_t at = letter.size() == 1 ? kBufferLetters.find(letter[0]) : kBufferLetters.npos;
  if (at == kBufferLetters.npos) return std::nullopt;
  return static_cast<Buffer>(at);
}

}  // namespace

Status read_msccl_step(const XmlElement& element, std::int32_t position, Step& step) {
  std::array<std::string_view, kStepAttributes.size()> values;
  element.find_all(kStepAttributes, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].data() == nullptr) return element.missing(kStepAttributes[i]);
  std::array<std::int32_t, kStepAttributes.size()> numbers{};
  for (const auto& [attribute, low, high] : kStepNumbers) {
    const auto number = read_number<std::int64_t>(values[attribute], low, high);
    if (!number) return element.not_in_range(kStepAttributes[attribute], low, high);
    numbers[attribute] = static_cast<std::int32_t>(*number);
  }
  if (numbers[kPosition] != position)
    return element.unexpected("s", fmt::format("its place among the steps, {}", position));
  const auto op = find_op(values[kType]);
  if (!op) return element.unexpected("type", fmt::format("one of {}", fmt::join(kStepTypes, " ")));
  const auto source = find_buffer(values[kSourceBuffer]);
  if (!source) return element.unexpected("srcbuf", "one of i o s");
  const auto target = find_buffer(values[kTargetBuffer]);
  if (!target) return element.unexpected("dstbuf", "one of i o s");

  step.op = *op;
  step.wait_block = numbers[kWaitBlock];
  step.wait_step = step.wait_block == -1 ? -1 : numbers[kWaitStep];
  step.publishes = numbers[kPublishes] == 1;
  if (step.op == Op::nop) return {};
  step.count = numbers[kCount];
  step.source = {*source, numbers[kSourceOffset]};
  step.target = {*target, numbers[kTargetOffset]};
  if (!writes_target(step.op) && step.op != Op::receive_reduce_send) step.target = step.source;
  if (!reads_source(step.op)) step.source = step.target;
  return {};
}

}  // namespace weft::formats
