// Any text is a topology or a user error. Every link joins two existing elements and has a finite
// bandwidth.

#include <cmath>

#include "promise.h"
#include "weft/formats/nccl_topology_xml.h"

using weft::fuzz::promise;
using namespace weft::formats;

namespace {

std::size_t elements(const NcclSystem& system, NcclVertex::Kind kind) {
  switch (kind) {
    case NcclVertex::Kind::gpu: return system.gpus.size();
    case NcclVertex::Kind::pci: return system.pcis.size();
    case NcclVertex::Kind::nvswitch:
    case NcclVertex::Kind::cpu: return system.cpus.size();
    case NcclVertex::Kind::nic: return system.nics.size();
    case NcclVertex::Kind::net: return system.nets.size();
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto system = read_nccl_topology(text);
  if (!system.ok()) {
    promise(!system.error().message.empty(), "an error has a message");
    return 0;
  }
  for (const NcclLink& link : links(*system)) {
    for (const NcclVertex& end : {link.from, link.to})
      promise(end.index >= 0 && static_cast<std::size_t>(end.index) < elements(*system, end.kind),
              "a link joins existing elements");
    promise(std::isfinite(link.bandwidth) && link.bandwidth >= 0, "a bandwidth is finite and not negative");
    promise(link.from != link.to, "a link has two ends");
  }
  return 0;
}
