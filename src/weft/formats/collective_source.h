// weft/formats/collective_source.h -- loads a chunk program from any supported source.
//
//   ring.xml                              MSCCL XML
//   plan.json                             MSCCL++ execution plan
//   ring.program                          Weft's text form of a program
//   ring.algorithm(ranks=8)               an algorithm, with the parameters it needs
//   all_reduce_ring(ranks=8, chunks=4)    a shipped algorithm
//   all_reduce_trees(ranks=8, shape=ring) synthesized trees (synthesis/named_trees.h)
//
// A file's format is detected from its first characters, not from its name.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/one_sided/one_sided.h"
#include "weft/formats/msccl_xml.h"

namespace weft::formats {

// Exactly one of the first three is set.
struct CollectiveSource {
  std::optional<formats::XmlProgram> program;  // from XML, or from Weft's text form
  std::optional<collective::OneSided> one_sided;
  std::optional<collective::Moves> moves;
  bool is_xml = false;

  const collective::Collective& collective() const;
};

struct CollectiveReading {
  formats::XmlOperands operands = formats::XmlOperands::runtime;
  // Fills in parameters that an algorithm's reference left open, before it is traced.
  std::function<void(const collective::Algorithm&, collective::Arguments&)> complete = {};
  std::int32_t ranks = 0;  // for synthesized trees whose name lacks it; 0: the name must have it
  // Limits the work of reading and checking: see one_sided/check_work.h. 0: the default limits of a
  // trace.
  std::int64_t effort = 0;
};
Result<CollectiveSource> read_collective(std::string_view reference, const CollectiveReading& reading = {});

// Checks the program as another collective: see chunks/restate.h. Does nothing if `as` is empty.
Status check_as(CollectiveSource& source, std::string_view as);

// The source as threadblocks that send and receive. An algorithm is compiled; a one-sided plan is
// compiled again from its moves. Compiled programs are checked.
Result<collective::Program> to_program(const CollectiveSource& source,
                                       const collective::CompileOptions& options = {});

// Fails if the report has a finding: "{what} incorrect (race): gpu 1 tb 0 step 2: ...".
Status expect_correct(const collective::Report& report, std::string_view what);

Result<collective::Protocol> find_protocol(std::string_view name);  // empty: Simple

}  // namespace weft::formats
