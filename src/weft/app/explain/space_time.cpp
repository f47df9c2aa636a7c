#include "weft/app/explain/space_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "weft/app/explain/step_order.h"
#include "weft/app/explain/svg.h"
#include "weft/app/explain/ticks.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using collective::Op;
using collective::Program;
using collective::Slot;
using collective::Step;

constexpr double kLeft = 12, kLabels = 96, kTop = 92, kRankGap = 8, kRightMargin = 28;
constexpr double kMostBoard = 6000;  // pixels; boxes shrink to fit
constexpr std::string_view kGrey = "#4b5563", kPale = "#f3f4f6", kArrow = "#374151", kNever = "#dc2626";

constexpr Shape kNeverShape = {
    .fill = "#ffffff", .stroke = kNever, .stroke_width = 1.5, .dash = "3 2", .radius = 2};

struct OpLook {
  std::string_view fill, letters;
};

// By Op. Blue sends, green receives, orange adds, grey is local.
constexpr std::array<OpLook, collective::kOps> kLooks = {{{"#ffffff", "nop"},
                                                          {"#d1d5db", "copy"},
                                                          {"#fcd9b6", "add"},
                                                          {"#bfdbfe", "s"},
                                                          {"#bbf7d0", "r"},
                                                          {"#99e6e6", "rcs"},
                                                          {"#fde68a", "rrc"},
                                                          {"#fdba74", "rrs"},
                                                          {"#fb9a99", "rrcs"}}};

const OpLook& look(Op op) { return kLooks[static_cast<std::size_t>(op)]; }

std::string print_slot_shortly(Slot slot, std::int32_t count) {
  const char letter = name(slot.buffer)[0];
  return count == 1 ? fmt::format("{}{}", letter, slot.index)
                    : fmt::format("{}{}-{}", letter, slot.index, std::int64_t{slot.index} + count - 1);
}

// The chunk that a step writes, or if it writes none, the one it reads.
std::string chunk_label(const Step& step) {
  if (step.op == Op::nop) return {};
  return print_slot_shortly(writes_target(step.op) ? step.target : step.source, step.count);
}

class Drawing {
 public:
  Drawing(const Program& program, const SpaceTimeOptions& options)
      : program_(program), options_(options), order_(order_steps(program)) {}

  Result<std::string> draw() {
    ranks_ = std::min<std::size_t>(program_.ranks.size(),
                                   static_cast<std::size_t>(std::max(options_.most_ranks, 1)));
    WEFT_TRY_STATUS(check());
    place_lanes();
    place_steps();
    find_legend();
    Svg svg(std::max(kLabels + board_, legend_width_) + kRightMargin, bottom_ + (left_out() > 0 ? 24 : 8));
    draw_title(svg);
    draw_axis(svg);
    draw_lanes(svg);
    for (std::size_t id = 0; id < shown_; ++id) draw_box(svg, id);
    for (const StepMessage& message : order_.messages) draw_message(svg, message);
    if (left_out() > 0)
      svg.text(kLabels, bottom_ + 14,
               fmt::format("ranks {} to {} are not shown", ranks_, program_.ranks.size() - 1),
               {.fill = kGrey});
    return std::move(svg).finish();
  }

 private:
  struct Box {
    double x = 0, y = 0, width = 0, height = 0;
  };

  std::size_t left_out() const { return program_.ranks.size() - ranks_; }
  bool timed() const { return !options_.timeline.empty(); }

  Status check() {
    for (shown_ = 0; shown_ < order_.steps.size(); ++shown_)
      if (static_cast<std::size_t>(order_.steps[shown_].rank) >= ranks_) break;
    if (shown_ > static_cast<std::size_t>(std::max(options_.most_steps, 0)))
      return user_error(
          fmt::format("expected at most {} steps to draw, found {}", options_.most_steps, shown_),
          "draw fewer ranks");
    if (timed() && options_.timeline.size() != order_.steps.size())
      return user_error(fmt::format("expected a timeline of {} steps, found {}", order_.steps.size(),
                                    options_.timeline.size()));
    for (const StepTime& time : options_.timeline)
      if (!std::isfinite(time.begin) || !std::isfinite(time.end) || time.end < time.begin)
        return user_error(fmt::format("expected every step to end after it starts, found {} s to {} s",
                                      time.begin, time.end));
    return {};
  }

  void place_lanes() {
    std::size_t lanes = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      lanes += std::max<std::size_t>(1, program_.ranks[rank].blocks.size());
    lanes_ = static_cast<double>(lanes);
    lane_ = lanes <= 48 ? 26 : lanes <= 160 ? 18 : 11;
    double y = kTop;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      rank_tops_.push_back(y);
      y += lane_ * static_cast<double>(std::max<std::size_t>(1, program_.ranks[rank].blocks.size())) +
           kRankGap;
    }
    bottom_ = y;
  }

  void place_steps() {
    if (timed())
      place_by_time();
    else
      place_by_depth();
    for (std::size_t id = 0; id < shown_; ++id) {
      const PlacedStep& step = order_.steps[id];
      boxes_[id].y = rank_tops_[static_cast<std::size_t>(step.rank)] + lane_ * step.block + 2;
      boxes_[id].height = lane_ - 4;
    }
  }

  void place_by_depth() {
    std::int32_t deepest = 0;
    for (const std::int32_t depth : order_.depths) deepest = std::max(deepest, depth);
    // Steps that never run are placed after all others, in the order of their threadblock.
    std::int32_t last = deepest;
    std::vector<std::int32_t> columns(shown_);
    for (std::size_t id = 0; id < shown_; ++id) {
      const bool follows = id > 0 && order_.steps[id].step > 0;
      columns[id] =
          order_.depths[id] >= 0 ? order_.depths[id] : std::max(deepest, follows ? columns[id - 1] : 0) + 1;
      last = std::max(last, columns[id]);
    }
    depths_ = deepest + 1;
    double widest = 40;
    for (std::size_t id = 0; id < shown_; ++id) widest = std::max(widest, text_width(label(id), 10) + 8);
    // With many lanes the arrows are steep and need more room to be distinguishable.
    const double room = std::clamp(16 + lanes_, 18.0, 44.0);
    column_ = std::clamp(kMostBoard / (last + 1), 12.0, std::min(widest, 96.0) + room);
    gap_ = std::min(room, column_ * 0.4);
    for (const std::int32_t column : columns)
      boxes_.push_back({.x = kLabels + column_ * column, .width = column_ - gap_});
    board_ = column_ * (last + 1);
  }

  void place_by_time() {
    double begin = options_.timeline[0].begin, end = begin, shortest = 0;
    for (const StepTime& time : options_.timeline) {
      begin = std::min(begin, time.begin);
      end = std::max(end, time.end);
      const double length = time.end - time.begin;
      if (length > 0 && (shortest == 0 || length < shortest)) shortest = length;
    }
    begin_ = begin;
    span_ = end > begin ? end - begin : 1;
    // Wide enough to fit the label of the shortest step, within limits.
    board_ = std::clamp(shortest > 0 ? span_ / shortest * 40 : 0, 900.0, 2400.0);
    for (std::size_t id = 0; id < shown_; ++id) {
      const StepTime& time = options_.timeline[id];
      boxes_.push_back({.x = at(time.begin), .width = std::max(at(time.end) - at(time.begin), 1.5)});
    }
  }

  double at(double seconds) const { return kLabels + (seconds - begin_) / span_ * board_; }

  const Step& step_of(std::size_t id) const {
    const PlacedStep& place = order_.steps[id];
    return program_.ranks[static_cast<std::size_t>(place.rank)]
        .blocks[static_cast<std::size_t>(place.block)]
        .steps[static_cast<std::size_t>(place.step)];
  }

  std::string label(std::size_t id) const {
    const Step& step = step_of(id);
    return step.op == Op::nop ? "nop" : fmt::format("{} {}", look(step.op).letters, chunk_label(step));
  }

  struct LegendEntry {
    std::string text;
    Shape shape;
    double x = 0;
  };

  void find_legend() {
    std::array<bool, collective::kOps> used{};
    bool never = false;
    for (std::size_t id = 0; id < shown_; ++id) {
      used[static_cast<std::size_t>(step_of(id).op)] = true;
      never = never || order_.depths[id] < 0;
    }
    title_ = fmt::format("{}: {}, {} ranks, {}", program_.name, name(program_.collective.kind),
                         program_.ranks.size(), name(program_.protocol));
    double x = kLeft;
    const auto add = [&](std::string text, const Shape& shape) {
      legend_.push_back({std::move(text), shape, x});
      x += 19 + text_width(legend_.back().text, 11) + 18;
    };
    for (std::size_t op = 0; op < used.size(); ++op)
      if (used[op])
        add(fmt::format("{} {}", kLooks[op].letters, name(static_cast<Op>(op))),
            {.fill = kLooks[op].fill, .stroke = kArrow, .radius = 2});
    if (never) add("can never run", kNeverShape);
    legend_width_ = std::max(x, kLeft + text_width(title_, 16));
  }

  void draw_title(Svg& svg) const {
    svg.text(kLeft, 24, title_, {.size = 15, .bold = true});
    for (const LegendEntry& entry : legend_) {
      svg.rect(entry.x, 38, 14, 14, entry.shape);
      svg.text(entry.x + 19, 49, entry.text, {.size = 11});
    }
  }

  void draw_axis(Svg& svg) const {
    const Lettering small = {.size = 10, .anchor = Anchor::middle, .fill = kGrey};
    svg.text(kLabels - 8, kTop - 12, timed() ? "time" : "depth",
             {.size = 10, .anchor = Anchor::end, .fill = kGrey});
    if (timed()) {
      for (const double tick : round_ticks(span_, 8)) {
        const double x = kLabels + tick / span_ * board_;
        svg.line({x, kTop - 6}, {x, bottom_}, {.stroke = "#e5e7eb"});
        svg.text(x, kTop - 12, tick == 0 ? "0" : print_seconds(tick), small);
      }
      return;
    }
    const int every = std::max(1, static_cast<int>(std::ceil(24 / column_)));
    for (int column = 0; column < depths_; column += every)
      svg.text(kLabels + column_ * column + (column_ - gap_) / 2, kTop - 12, fmt::format("{}", column),
               small);
  }

  void draw_lanes(Svg& svg) const {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto& blocks = program_.ranks[rank].blocks;
      const double height = lane_ * static_cast<double>(std::max<std::size_t>(1, blocks.size()));
      svg.rect(kLabels - 4, rank_tops_[rank], board_ + 8, height, {.fill = kPale});
      svg.text(kLeft, rank_tops_[rank] + height / 2 + 4, fmt::format("rank {}", rank),
               {.size = 11, .bold = true});
      for (std::size_t block = 0; block < blocks.size(); ++block) {
        const double y = rank_tops_[rank] + lane_ * static_cast<double>(block);
        if (block > 0) svg.line({kLabels - 4, y}, {kLabels + board_ + 4, y}, {.stroke = "#ffffff"});
        if (lane_ > 11 || blocks.size() == 1)
          svg.text(kLabels - 8, y + lane_ / 2 + 3.5, fmt::format("tb {}", block),
                   {.size = 9, .anchor = Anchor::end, .fill = kGrey});
      }
    }
  }

  void draw_box(Svg& svg, std::size_t id) const {
    const Box& box = boxes_[id];
    const Step& step = step_of(id);
    const PlacedStep& place = order_.steps[id];
    const bool never = order_.depths[id] < 0;
    std::string title = fmt::format("gpu {} tb {} step {}: {} {}", place.rank, place.block, place.step,
                                    name(step.op), chunk_label(step));
    if (step.wait_block >= 0) title += fmt::format(", after {}.{}", step.wait_block, step.wait_step);
    if (timed())
      title += fmt::format(", {} to {}", print_seconds(options_.timeline[id].begin),
                           print_seconds(options_.timeline[id].end));
    Shape shape =
        never ? kNeverShape
              : Shape{.fill = look(step.op).fill, .stroke = kArrow, .stroke_width = 0.75, .radius = 2};
    shape.title = title;
    svg.rect(box.x, box.y, box.width, box.height, shape);
    const double size = std::min(10.0, box.height - 3);
    for (const std::string& text : {label(id), chunk_label(step)}) {
      if (size < 7 || text_width(text, size) + 2 > box.width) continue;
      svg.text(box.x + box.width / 2, box.y + box.height / 2 + size * 0.36, text,
               {.size = size, .anchor = Anchor::middle});
      break;
    }
  }

  void draw_message(Svg& svg, const StepMessage& message) const {
    const auto sender = static_cast<std::size_t>(message.sender),
               receiver = static_cast<std::size_t>(message.receiver);
    if (sender >= shown_ || receiver >= shown_) return;
    const Box &from = boxes_[sender], &to = boxes_[receiver];
    const bool never = order_.depths[sender] < 0 || order_.depths[receiver] < 0;
    // If the receiver's box includes its wait, the arrow points to the box's end, when the message
    // arrived.
    const double end = timed() && to.x < from.x + from.width ? to.x + to.width : to.x;
    const Position source{from.x + from.width, from.y + from.height / 2}, target{end, to.y + to.height / 2};
    svg.line(source, target,
             {.stroke = never ? kNever : kArrow,
              .stroke_width = 0.9,
              .opacity = crowded() ? 0.35 : 0.7,
              .arrow = true});
  }

  bool crowded() const { return order_.messages.size() > 200; }

  const Program& program_;
  const SpaceTimeOptions& options_;
  StepOrder order_;
  std::size_t ranks_ = 0, shown_ = 0;
  std::vector<Box> boxes_;
  std::vector<double> rank_tops_;
  double lanes_ = 0, lane_ = 0, bottom_ = 0, board_ = 0, column_ = 0, gap_ = 0;
  std::int32_t depths_ = 0;
  std::string title_;
  std::vector<LegendEntry> legend_;
  double legend_width_ = 0;
  double begin_ = 0, span_ = 1;
};

}  // namespace

Result<std::string> draw_space_time(const Program& program, const SpaceTimeOptions& options) {
  return Drawing(program, options).draw();
}

}  // namespace weft::explain
