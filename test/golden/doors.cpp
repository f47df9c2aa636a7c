#include "doors.h"

namespace weft::golden {

std::span<const Door> doors() {
  static constexpr Door kDoors[] = {
      {"parse", parse_door},
      {"session", session_door},
      {"bind", bind_door},
      {"explain", explain_door},
      {"same-plan", same_plan_door},
      {"plan", plan_door},
      {"verify", verify_door},
      {"hash", hash_door},
      {"signature", signature_door},
      {"work", work_door},
      {"run", run_door},
      {"rule", rule_door},
      {"distribute", distribute_door},
      {"program", program_door},
      {"pack", pack_door},
      {"trace", trace_door},
      {"chunk-program", chunk_program_door},
      {"check", check_door},
      {"compile", compile_door},
      {"cost", cost_door},
      {"choose", choose_door},
      {"import", import_door},
      {"schedule", schedule_door},
      {"synthesize", synthesize_door},
  };
  return kDoors;
}

}  // namespace weft::golden
