// weft/formats/msccl_xml.h -- chunk programs as MSCCL, its Azure executor and RCCL read them.
//
//   <algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
//     <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
//       <tb id="0" send="1" recv="1" chan="0">
//         <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" ... />
//
// A step that reduces what it receives adds the LOCAL chunk at srcbuf/srcoff: so the runtimes do, and so
// it is read. MSCCLang writes the sender's slot there instead; see XmlOperands. No file says who is root.
//
// The reader is stricter than the loaders, which let some mistakes through to the GPU: what it refuses
// would fail to load, or read and write memory that is not the program's.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"

namespace weft::formats {

inline constexpr std::int32_t kMaxXmlRanks = 65536;
inline constexpr std::int32_t kMaxXmlChunks = 1 << 24;               // of a buffer
inline constexpr std::int64_t kMaxXmlSteps = std::int64_t{1} << 25;  // of a program

// Which attributes and collective names a file has. `azure`, which RCCL shares, adds outofplace, minBytes
// and maxBytes and requires them. Automatic on writing: msccl if it can say all of the program, else azure.
enum class XmlDialect : std::uint8_t { automatic, msccl, azure };

// Whose slot srcbuf/srcoff of rrc, rrs and rrcs is.
enum class XmlOperands : std::uint8_t {
  runtime,   // the receiver's own, which is what runs
  sender,    // the sender's, as MSCCLang writes it: the local operand is taken to be the target
  automatic  // the sender's in a file where some operand cannot be the receiver's, else runtime
};

struct XmlReadOptions {
  XmlOperands operands = XmlOperands::runtime;
  std::int32_t root = 0;  // of a broadcast, reduce, gather, scatter or send
  std::int32_t peer = 1;  // of a send
};

struct XmlProgram {
  collective::Program program;
  std::string coll;                 // as the file spells it, which a loader may not know
  bool azure = false;               // it has outofplace, minBytes and maxBytes
  bool operands_rewritten = false;  // its operands were the sender's
  std::vector<std::string> notes;   // what is odd, though not wrong; each a sentence without a period
};

// An error of the user begins with the place where it has one: "gpu 4 tb 11 step 0: ...".
Result<XmlProgram> read_msccl_xml(std::string_view text, const XmlReadOptions& options = {});

// The same program gives the same bytes, and reading them the same program (but for a root other than
// 0 and what a custom collective wants, which no file can say). Fails where the dialect lacks the
// collective or the placement, or where blocks or buffer sizes differ from what loaders accept.
Result<std::string> write_msccl_xml(const collective::Program& program,
                                    XmlDialect dialect = XmlDialect::automatic);

}  // namespace weft::formats
