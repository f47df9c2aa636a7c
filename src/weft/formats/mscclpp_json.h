// weft/formats/mscclpp_json.h -- execution plans of MSCCL++, as JSON.
//
//   {"name": "allreduce", "collective": "allreduce", "protocol": "Simple", "inplace": true, ...,
//    "gpus": [{"id": 0, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 0,
//              "threadblocks": [{"id": 0, "ops": [{"name": "put", "src_buff": [...], "dst_buff": [...]}],
//                                "channels": [...], "remote_buffer_refs": [...]}],
//              "channels": [...], "remote_buffers": [...], "semaphores": []}]}
//
// Files have no version number. The layout of 2025-08 and later is written. It and the previous
// one, from 2024-04 on, are read (see mscclpp_json_v1.cpp). Errors give the path:
// "gpus[2].threadblocks[0].ops[5].name".
//
// A threadblock numbers the channels and remote buffers it uses; a plan in memory names them
// directly. The writer numbers them in order of use. So another tool's file may come back with
// other numbers and without unused entries; a file that Weft wrote comes back byte for byte.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::formats {

Result<collective::OneSided> read_mscclpp_json(std::string_view text);

// REQUIRES: check_form(plan) found nothing.
Result<std::string> write_mscclpp_json(const collective::OneSided& plan);

}  // namespace weft::formats
