// weft/formats/mscclpp_json.h -- execution plans of MSCCL++, as JSON.
//
//   {"name": "allreduce", "collective": "allreduce", "protocol": "Simple", "inplace": true, ...,
//    "gpus": [{"id": 0, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 0,
//              "threadblocks": [{"id": 0, "ops": [{"name": "put", "src_buff": [...], "dst_buff": [...]}],
//                                "channels": [...], "remote_buffer_refs": [...]}],
//              "channels": [...], "remote_buffers": [...], "semaphores": []}]}
//
// A file has no version. The layout of 2025-08 and later is written; it and the one before it, of 2024-04
// and later, are read (see mscclpp_json_v1.cpp). Errors say where: "gpus[2].threadblocks[0].ops[5].name".
//
// A threadblock numbers the channels and remote buffers it uses; a plan in memory names them directly. What
// is written numbers them in the order of use, so a file that another tool wrote may come back with other
// numbers, and with nothing that no operation uses; a file that Weft wrote comes back byte for byte.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::formats {

Result<collective::OneSided> read_mscclpp_json(std::string_view text);

// REQUIRES: check_form(plan) has found nothing.
Result<std::string> write_mscclpp_json(const collective::OneSided& plan);

}  // namespace weft::formats
