// weft/formats/msccl_target.h -- limits of each MSCCL runtime that a correct program may still
// exceed, and the message size from which its connections have too few slots.
//
//   runtime   steps per tb    tbs per gpu    its own collectives                   needs
//   msccl     256             216            reduce_scatter custom                 one placement
//   azure     64              1024           reducescatter gather scatter send     outofplace, min-, maxBytes
//   rccl      64              64             as azure                              as azure
//
// All of them: 32 channels, 32 peers per channel, 71 chunks per transfer, offsets of 16 bits,
// dependencies on tbs 0 to 127, nops followed by a step that waits itself, files of 4096 nodes per
// gpu.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program.h"
#include "weft/formats/msccl_xml.h"

namespace weft::formats {

enum class Target : std::uint8_t { msccl, azure, rccl };

std::string_view name(Target target);  // "msccl"
std::optional<Target> find_target(std::string_view name);

struct TargetFinding {
  collective::Where where;
  std::string text;  // without the location: "257 steps, but msccl allows 256"
  friend bool operator==(const TargetFinding&, const TargetFinding&) = default;
};

std::string print(const TargetFinding& finding);  // "gpu 0 tb 3: 257 steps, but msccl allows 256"

// Why `target` would not load the program, or load it wrongly: one finding per kind, at the first
// location.
std::vector<TargetFinding> check_target(const collective::Program& program, Target target);
// The same for a file; also reports missing attributes.
std::vector<TargetFinding> check_target(const XmlProgram& file, Target target);

// The first step without a wait that follows nops with waits, which every loader rejects.
std::optional<collective::Where> broken_nop_chain(const collective::Program& program);

// Slots per connection, and data bytes per slot, with default settings.
std::int32_t fifo_slots(collective::Protocol protocol, Target target);
std::int64_t slot_bytes(collective::Protocol protocol, Target target);

// The message size in bytes from which the program deadlocks for lack of slots. `slots` is what it
// needs if every chunk fills a slot, `slots_small` what it needs if every transfer fits one (see
// Report in check.h). 0: at any size. Nothing: never.
std::optional<std::int64_t> hang_size(const collective::Program& program, std::int32_t slots,
                                      std::int32_t slots_small, Target target);

}  // namespace weft::formats
