// weft/formats/msccl_xml_step.h -- one <step> of MSCCL XML, which is what most of a file is.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {

// Reads the step that stands at `position` of its tb. Operands that its type does not have are information
// for people and left out, but for the target of an rrs: a file that names senders' slots says there which
// chunk is the receiver's. Whether slots, peers and waits exist is for msccl_rules.h.
Status read_msccl_step(const XmlElement& element, std::int32_t position, collective::Step& step);

}  // namespace weft::formats
