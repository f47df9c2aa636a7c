// weft/formats/msccl_xml.h -- chunk programs as MSCCL, its Azure executor and RCCL read them.
//
//   <algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
//     <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
//       <tb id="0" send="1" recv="1" chan="0">
//         <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" ... />
//
// A step that reduces what it receives adds the LOCAL chunk at srcbuf/srcoff, as the runtimes do.
// MSCCLang writes the sender's slot there instead; see XmlOperands. The format does not record the
// root.
//
// The reader is stricter than the loaders, which let some mistakes through to the GPU. What it
// rejects would fail to load, or access memory outside the program's buffers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::formats {

inline constexpr std::int32_t kMaxXmlRanks = 65536;
inline constexpr std::int32_t kMaxXmlChunks = 1 << 24;               // per buffer
inline constexpr std::int64_t kMaxXmlSteps = std::int64_t{1} << 25;  // per program

// The attributes and collective names of a file. `azure`, which RCCL shares, adds and requires
// outofplace, minBytes and maxBytes. `automatic` writes msccl if it can represent the whole
// program, else azure.
enum class XmlDialect : std::uint8_t { automatic, msccl, azure };

// Which rank's slot srcbuf/srcoff of rrc, rrs and rrcs names.
enum class XmlOperands : std::uint8_t {
  runtime,   // the receiver's own, which is what executes
  sender,    // the sender's, as MSCCLang writes it: the local operand is assumed to be the target
  automatic  // sender if some operand in the file cannot be the receiver's, else runtime
};

struct XmlReadOptions {
  XmlOperands operands = XmlOperands::runtime;
  std::int32_t root = 0;  // for broadcast, reduce, gather, scatter and send
  std::int32_t peer = 1;  // for send
};

struct XmlProgram {
  collective::Program program;
  std::string coll;                 // spelled as in the file; a loader may not know it
  bool azure = false;               // has outofplace, minBytes and maxBytes
  bool operands_rewritten = false;  // operands were the sender's
  std::vector<std::string> notes;   // oddities that are not errors; one sentence each, without a period
};

// User errors begin with the location if there is one: "gpu 4 tb 11 step 0: ...".
Result<XmlProgram> read_msccl_xml(std::string_view text, const XmlReadOptions& options = {});

// Deterministic, and reading the result gives the same program, except for a root other than 0 and
// the postcondition of a custom collective, which the format cannot represent. Fails if the dialect
// lacks the collective or the placement, or if blocks or buffer sizes differ from what loaders
// accept.
Result<std::string> write_msccl_xml(const collective::Program& program,
                                    XmlDialect dialect = XmlDialect::automatic);

}  // namespace weft::formats
