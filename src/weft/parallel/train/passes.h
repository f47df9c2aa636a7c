// weft/parallel/train/passes.h -- the passes of a step: what a schedule orders (pipeline/schedule.h).
//
//   F   forward     the phase
//   B   backward    what gradients of several parameters need: it must run before earlier layers can
//   W   weight      what the gradient of one parameter alone needs: it may run any time later
//   U   update      the phase, once a step, whatever the micro-batches
//
//   dy ──▶ contract dy, w ──▶ dx ──▶ ..          B: all gradients of earlier layers come from it
//    └───▶ contract dy, x ──▶ dw ──▶ update      W
//
// Told by the graph alone: a backward node is W when a single value that leaves the phase for the update, or
// for nobody, depends on it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::train {

enum class Pass : std::uint8_t { forward, backward, weight, update };

std::string_view name(Pass pass);

// By node; sources are of the forward pass. Works on plans of one device, of a mesh, and of a rank alike.
std::vector<Pass> passes_of(const plan::Graph& graph);

}  // namespace weft::train
