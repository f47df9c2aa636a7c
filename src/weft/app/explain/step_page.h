// weft/app/explain/step_page.h -- a plan and its timelines as one HTML page, to look at in a browser.
//
//   TRAIN digits_mlp ON LOCAL 4
//   a step 248 us   exposed 157 us   memory 67 KiB          facts, mesh and alternatives, as tables
//
//             0        100 us      200 us
//   predicted ranks 0-3                                     one time axis for all of them: what was
//     compute  ▇▇▇ ▇            ▇▇▇▇▇▇▇                     predicted lies above what was measured
//     rank         ▇▇▇▇▇▇▇▇▇▇▇▇▇
//     memory  __/‾‾‾\______/‾‾‾‾‾\_
//   measured rank 0
//     compute  ▇▇ ▇        ▇▇▇▇▇▇▇
//
// The page needs nothing from outside: style, script and data are inside it, and without the script its
// tables still tell the story. It zooms, pans and is worked by keys; it draws tens of thousands of tasks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/app/explain/table.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::explain {

// A pass of a micro-batch through a stage; or what a stage does after its passes: sums of gradients and the update.
struct PagePass {
  pipeline::Pass pass;
  double begin = 0, end = 0;
  bool updates = false;
};

// One rank, or ranks that are alike, in one step.
struct PageTimeline {
  std::vector<std::int32_t> ranks;
  std::string place = {};  // "stage 1"; empty where there are none
  bool measured = false;
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;
  std::vector<std::pair<double, double>> memory = {};  // when, and bytes alive from then on
  std::vector<std::uint32_t> critical = {};            // tasks that the end of the step waited for
  std::vector<PagePass> passes = {};                   // where steps are cut in time
};

struct PageFact {
  std::string name, value;
  std::string note = {};  // in smaller letters: "computing 91 us, communicating 161 us"
};

struct StepPage {
  std::string title;                      // "TRAIN digits_mlp ON LOCAL 4"
  std::string subtitle = {};              // "b = 64, p = 64, precision f32, optimizer adam"
  std::vector<PageFact> facts = {};       // a few
  std::vector<std::string> remarks = {};  // a sentence each
  std::vector<Section> tables = {};
  std::vector<PageTimeline> timelines = {};
};

struct Report;
// Its lines, its sections and its predicted timelines: one per class of ranks, or per pipeline stage.
StepPage step_page(const Report& report);

// The whole page. Of very many ranks or tasks the first ranks and the longest tasks are drawn, and
// it says so.
std::string print_html(const StepPage& page);

}  // namespace weft::explain
