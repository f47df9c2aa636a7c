// weft/app/explain/step_page_data.h -- timelines as the data that the script of a page reads.
//
//   {"strings": ["contract", "h", ..],
//    "timelines": [{"name": "ranks 0-3", "lanes": ["compute", "rank", "passes"], "passes": 2,
//                   "units": {"name": [0, ..], "where": [1, ..], "kind": [0, ..], ..},      columns, by unit
//                   "unit": [0, ..], "begin": [0, 1200, ..], "length": [1200, ..], ..}]}    columns, by task
//
// Times are whole nanoseconds. Included by the files of explain/ that make the page.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/explain/step_page.h"

namespace weft::explain {

// What a bar is coloured by.
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
  forward,  // passes of micro-batches
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

// "gpt_block.3.scores": where in the model a unit belongs; empty for what belongs nowhere.
std::string where(const program::Program& program, const program::Unit& unit);

// What a task moves: of a collective the size of its message, of others what they read and write at most.
double bytes_of(const program::Program& program, const program::Task& task);

// How many tasks both the program and its timeline have.
std::size_t task_count(const PageTimeline& timeline);

// Those that are drawn, in the program's order: the longest `most`.
std::vector<std::uint32_t> drawn_tasks(const PageTimeline& timeline, std::size_t most);

// JSON that may stand inside a script element.
std::string print_data(std::span<const PageTimeline> timelines, std::size_t most_tasks_each);

}  // namespace weft::explain
