// Any text is a program or a user error. A program that can be written reads back the same.

#include "promise.h"
#include "weft/formats/msccl_target.h"
#include "weft/formats/msccl_xml.h"

using weft::fuzz::promise;
using namespace weft::formats;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const XmlOperands operands : {XmlOperands::runtime, XmlOperands::automatic}) {
    const auto read = read_msccl_xml(text, {.operands = operands});
    if (!read.ok()) {
      promise(!read.error().message.empty(), "an error has a message");
      continue;
    }
    promise(!read->program.ranks.empty(), "a program has ranks");
    for (const Target target : {Target::msccl, Target::azure, Target::rccl}) check_target(*read, target);
    const auto written = write_msccl_xml(read->program);
    if (!written.ok()) continue;
    const auto again = read_msccl_xml(*written);
    promise(again.ok(), "a written program can be read", *written);
    promise(again->program == read->program, "a written program reads back the same", *written);
    promise(*write_msccl_xml(again->program) == *written, "writing is deterministic", *written);
  }
  return 0;
}
