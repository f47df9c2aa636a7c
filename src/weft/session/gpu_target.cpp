#include "weft/session/gpu_target.h"

#include <cstdlib>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/session/prepare.h"

namespace weft::session {

bool is_gpu(const language::Catalog& catalog, const language::syntax::Target& target) {
  return !target.local && same_word(target.cluster.text, "GPU") &&
         !catalog.clusters.contains(target.cluster.text) && !catalog.devices.contains(target.cluster.text);
}

Result<GpuTarget> find_gpu(const language::Catalog& catalog, const language::syntax::Target& target) {
  // TF32 is what everyone trains f32 with on these devices; WEFT_TF32=0 is for comparisons.
  const char* const tf32 = std::getenv("WEFT_TF32");
  const bool exact = tf32 != nullptr && std::string_view(tf32) == "0";
  auto opened = device::open_device(exact ? "cuda:0 exact" : "cuda:0");
  if (!opened.ok()) {
    Error error = std::move(opened).error();
    error.span = target.span;
    return error;
  }
  // "NVIDIA H200" is an h200; of several names that fit, the longest says most.
  const std::string model = lower((*opened)->model());
  const cluster::Device* best = nullptr;
  for (const auto& [name, device] : catalog.devices)
    if (model.find(lower(name)) != std::string::npos && (best == nullptr || name.size() > best->name.size()))
      best = &device;
  if (best == nullptr)
    return user_error(fmt::format("no device of the catalog describes this GPU: {}", (*opened)->model()),
                      "CREATE DEVICE with a part of that name", target.span);
  cluster::Cluster alone = one_of(*best);
  alone.name = "GPU";
  return GpuTarget{std::move(*opened), std::move(alone)};
}

}  // namespace weft::session
