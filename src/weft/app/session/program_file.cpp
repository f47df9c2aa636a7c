#include "weft/app/session/program_file.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weft/app/explain/space_time.h"
#include "weft/base/file.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/one_sided/lower_one_sided.h"
#include "weft/formats/collective_source.h"
#include "weft/formats/msccl_xml.h"
#include "weft/formats/mscclpp_json.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/simulate_collective.h"

namespace weft::session {

Result<std::string> in_format_of(const std::string& path, const collective::Program& program) {
  if (path.ends_with(".program")) return collective::print(program);
  if (path.ends_with(".graph.xml"))
    return user_error(
        "an NCCL graph holds rings, but this program does not use rings",
        "weft collective synthesize all_gather --optimal bandwidth -o FILE.graph.xml finds rings");
  if (path.ends_with(".xml")) return formats::write_msccl_xml(program, formats::XmlDialect::automatic);
  if (path.ends_with(".json")) {
    WEFT_TRY(lowered, collective::lower_one_sided(program));
    WEFT_TRY_STATUS(formats::expect_correct(collective::check(lowered), "not written, because it is"));
    return formats::write_mscclpp_json(lowered);
  }
  return user_error(fmt::format("unknown file format: {}", path),
                    ".xml (MSCCL), .json (MSCCL++) or .program (Weft's text)");
}

Status write_program(const std::string& path, const collective::Program& program) {
  WEFT_TRY(text, in_format_of(path, program));
  return write_file_atomically(path, text);
}

Result<double> simulated_seconds(const collective::Program& program, const cluster::Topology& topology,
                                 std::int64_t bytes) {
  const collective::Actions actions =
      collective::to_actions(program, single_placement(program.placement), collective::Grain::step);
  WEFT_TRY(run, sim::simulate(actions, topology, bytes, sim::run_parameters(program.protocol)));
  return run.seconds;
}

Result<std::string> draw_program(const collective::Program& program, const cluster::Topology& topology,
                                 std::int64_t bytes) {
  const collective::Actions actions =
      collective::to_actions(program, single_placement(program.placement), collective::Grain::step);
  WEFT_TRY(run, sim::simulate(actions, topology, bytes, sim::run_parameters(program.protocol),
                              sim::Timeline::yes));
  std::vector<explain::StepTime> times(actions.actions.size(), {-1, -1});
  for (const sim::Stretch& stretch : run.timeline) {
    explain::StepTime& time = times[stretch.action];
    if (time.begin < 0) time.begin = stretch.begin;
    time.end = std::max(time.end, stretch.end);
  }
  for (explain::StepTime& time : times) time.begin = std::max(time.begin, 0.0);
  explain::SpaceTimeOptions options;
  options.timeline = times;
  return explain::draw_space_time(program, options);
}

}  // namespace weft::session
