// weft/app/explain/step_page_data.h -- timelines as data for a page's script.
//
//   {"strings": ["contract", "h", ..],
//    "timelines": [{"name": "ranks 0-3", "lanes": ["compute", "rank", "passes"], "passes": 2,
//                   "units": {"name": [0, ..], "where": [1, ..], "kind": [0, ..], ..},      columns, by unit
//                   "unit": [0, ..], "begin": [0, 1200, ..], "length": [1200, ..], ..}]}    columns, by task
//
// Times are integer nanoseconds. Included by the code that writes the page and by
// session/trace.cpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/explain/step_page.h"

namespace weft::explain {

// Determines the colour of a bar.
enum class BarKind : std::uint8_t {
  product,
  rows,
  call,
  copy,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  permute,
  forward,  // this and the next: passes of micro-batches
  backward,
  weight,
  update,
};
constexpr std::size_t kBarKinds = 14;

std::string_view name(BarKind kind);  // "matrix product", "all-reduce"
BarKind kind_of(const program::Unit& unit);
BarKind kind_of(const PagePass& pass);

// "ranks 0-3, stage 1"
std::string name_of(const PageTimeline& timeline);
// "rank 2", "ranks 0-3", "ranks 0, 8, 16, 24 and 124 more".
std::string name_ranks(std::span<const std::int32_t> ranks);

// "gpt_block.3.scores": the unit's location in the model; empty if it has none.
std::string where(const program::Program& program, const program::Unit& unit);

// Bytes moved by a task: the message size of a collective; otherwise an upper bound on reads and
// writes.
double bytes_of(const program::Program& program, const program::Task& task);

// The number of tasks that are in both the program and its timeline.
std::size_t task_count(const PageTimeline& timeline);

// The `most` longest tasks, in program order.
std::vector<std::uint32_t> drawn_tasks(const PageTimeline& timeline, std::size_t most);

// JSON that is safe inside a script element.
std::string print_data(std::span<const PageTimeline> timelines, std::size_t most_tasks_each);

}  // namespace weft::explain
