// Any text is a table of training runs or a user error with a message; so is each of its rows.

#include "promise.h"
#include "weft/translate/runs/run.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* path : {"x.csv", "x.json", "x.jsonl"}) {
    const auto rows = weft::runs::read_run_table(text, path);
    if (!rows.ok()) {
      promise(rows.error().fault == weft::Fault::user && !rows.error().message.empty(),
              "an error is a user error with a message");
      continue;
    }
    for (const weft::runs::RunRow& row : *rows) {
      const auto run = weft::runs::run_of(row);
      if (!run.ok()) {
        promise(!run.error().message.empty(), "a row that is left out has a reason");
        continue;
      }
      promise(run->cluster.devices >= run->cluster.devices_per_node && run->cluster.devices_per_node >= 1,
              "a node has devices");
      promise(run->recipe.micro_batch > 0 && run->recipe.global_batch > 0, "a run has batches");
    }
  }
  return 0;
}
