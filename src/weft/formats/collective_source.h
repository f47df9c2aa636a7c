// weft/formats/collective_source.h -- a chunk program, from wherever it is written.
//
//   ring.xml                              MSCCL XML
//   plan.json                             MSCCL++ execution plan
//   ring.program                          Weft's text of a program
//   ring.algorithm(ranks=8)               an algorithm, with the parameters it needs
//   all_reduce_ring(ranks=8, chunks=4)    a shipped algorithm
//   all_reduce_trees(ranks=8, shape=ring) synthesized trees (synthesis/named_trees.h)
//
// What a file holds is seen by its first characters, not by its name.
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

// One of the first three is there.
struct CollectiveSource {
  std::optional<formats::XmlProgram> program;  // XML, or a program in Weft's text as if it were
  std::optional<collective::OneSided> one_sided;
  std::optional<collective::Moves> moves;
  bool is_xml = false;

  const collective::Collective& collective() const;
};

struct CollectiveReading {
  formats::XmlOperands operands = formats::XmlOperands::runtime;
  // Gives an algorithm what its reference left open, before it is traced.
  std::function<void(const collective::Algorithm&, collective::Arguments&)> complete = {};
  std::int32_t ranks = 0;  // of synthesized trees whose name does not say; 0: it must
  // What reading and checking may cost: see one_sided/check_work.h. 0: what a trace is allowed by itself.
  std::int64_t effort = 0;
};
Result<CollectiveSource> read_collective(std::string_view reference, const CollectiveReading& reading = {});

// Holds the program to another collective: see chunks/restate.h. Nothing where `as` is empty.
Status hold_to(CollectiveSource& source, std::string_view as);

// The source as threadblocks that send and receive: compiled if it is an algorithm, compiled again from its
// moves if it is one-sided. Whatever is compiled was checked.
Result<collective::Program> to_program(const CollectiveSource& source,
                                       const collective::CompileOptions& options = {});

// Fails where the report found something: "{what} wrong (race): gpu 1 tb 0 step 2: ...".
Status expect_right(const collective::Report& report, std::string_view what);

Result<collective::Protocol> find_protocol(std::string_view name);  // empty: Simple

}  // namespace weft::formats
