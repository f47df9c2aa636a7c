// weft/app/explain/step_page.h -- a plan and its timelines as one HTML page.
//
//   TRAIN digits_mlp ON LOCAL 4
//   a step 248 us   exposed 157 us   memory 67 KiB          facts, mesh and alternatives, as tables
//
//             0        100 us      200 us
//   predicted ranks 0-3                                     all timelines share one time axis;
//     compute  ▇▇▇ ▇            ▇▇▇▇▇▇▇                     predicted ones are above measured ones
//     rank         ▇▇▇▇▇▇▇▇▇▇▇▇▇
//     memory  __/‾‾‾\______/‾‾‾‾‾\_
//   measured rank 0
//     compute  ▇▇ ▇        ▇▇▇▇▇▇▇
//
// The page is self-contained, with style, script and data; its tables are readable without the
// script. It supports zooming, panning and keyboard control, and draws tens of thousands of tasks.
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

// A pass of a micro-batch through a stage, or the stage's work after its passes: gradient sums and
// update.
struct PagePass {
  pipeline::Pass pass;
  double begin = 0, end = 0;
  bool updates = false;
};

// One rank, or a class of equal ranks, in one step.
struct PageTimeline {
  std::vector<std::int32_t> ranks;
  std::string place = {};  // "stage 1"; empty without stages
  bool measured = false;
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;
  std::vector<std::pair<double, double>> memory = {};  // time, and bytes allocated from then on
  std::vector<std::uint32_t> critical = {};            // tasks on the critical path
  std::vector<PagePass> passes = {};                   // if there are stages or micro-batches
};

struct PageFact {
  std::string name, value;
  std::string note = {};  // in small print: "computing 91 us, communicating 161 us"
};

struct StepPage {
  std::string title;                      // "TRAIN digits_mlp ON LOCAL 4"
  std::string subtitle = {};              // "b = 64, p = 64, precision f32, optimizer adam"
  std::vector<PageFact> facts = {};       // a few
  std::vector<std::string> remarks = {};  // one sentence each
  std::vector<Section> tables = {};
  std::vector<PageTimeline> timelines = {};
};

struct Report;
// The report's lines, sections and predicted timelines: one per class of ranks, or per pipeline
// stage.
StepPage step_page(const Report& report);

// The complete page. With very many ranks or tasks, draws only the first ranks and the longest
// tasks, with a note.
std::string print_html(const StepPage& page);

}  // namespace weft::explain
