// Any text is a list of cases or a user error that names the file. A small case can be planned, its
// moves deliver every element, and its time is not below the lower bound.

#include "promise.h"
#include "weft/collectives/reshard/replay.h"
#include "weft/collectives/reshard/timing.h"
#include "weft/formats/reshard_cases.h"

using weft::fuzz::promise;
using namespace weft::formats;

namespace {

bool is_small(const ReshardCase& one) {
  std::int64_t elements = one.source.ranks() + one.destination.ranks();
  for (const std::int64_t size : one.sizes) {
    if (size > 10'000 / elements) return false;
    elements *= size;
  }
  return one.source.ranks() <= 64 && one.destination.ranks() <= 64;
}

void expect_moves(const ReshardCase& one) {
  const auto made = reshard_of(one);
  promise(made.ok(), "a case that was read can be placed");
  const auto plan = weft::reshard::plan_moves(*made, {}, {.least_chunk_bytes = 1, .most_moves = 10'000});
  promise(plan.ok(), "a small case can be planned");
  const weft::Status judged = weft::reshard::replay(*made, plan->moves);
  promise(judged.ok(), "every element arrives", judged.ok() ? "" : judged.error().message);
  promise(weft::reshard::time_moves(*made, plan->moves, {}).seconds >= plan->lower_bound_seconds * (1 - 1e-9),
          "the time is not below its bound", one.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cases = read_reshard_cases(text, "a.json");
  if (!cases.ok()) {
    promise(cases.error().fault == weft::Fault::user, "a bad file is a user error");
    promise(cases.error().message.starts_with("a.json: "), "an error names the file", cases.error().message);
    return 0;
  }
  for (std::size_t c = 0; c < cases->size() && c < 16; ++c)
    if (is_small((*cases)[c])) expect_moves((*cases)[c]);
  return 0;
}
