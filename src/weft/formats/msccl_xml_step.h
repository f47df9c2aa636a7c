// weft/formats/msccl_xml_step.h -- reads one <step> of MSCCL XML, of which most of a file consists.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {

// Reads the step at `position` of its tb. Operands that its type does not have are only informative
// and dropped, except for the target of an rrs: in a file that names senders' slots it is the
// receiver's chunk. Whether slots, peers and waits exist is checked by msccl_rules.h.
Status read_msccl_step(const XmlElement& element, std::int32_t position, collective::Step& step);

}  // namespace weft::formats
