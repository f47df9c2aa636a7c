#include "commands.h"

namespace weft::golden {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"parse", parse_command},
      {"session", session_command},
      {"bind", bind_command},
      {"explain", explain_command},
      {"same-plan", same_plan_command},
      {"plan", plan_command},
      {"verify", verify_command},
      {"hash", hash_command},
      {"signature", signature_command},
      {"work", work_command},
      {"run", run_command},
      {"rule", rule_command},
      {"distribute", distribute_command},
      {"program", program_command},
      {"pack", pack_command},
      {"trace", trace_command},
      {"chunk-program", chunk_program_command},
      {"check", check_command},
      {"compile", compile_command},
      {"cost", cost_command},
      {"choose", choose_command},
      {"import", import_command},
      {"schedule", schedule_command},
      {"synthesize", synthesize_command},
  };
  return kCommands;
}

}  // namespace weft::golden
