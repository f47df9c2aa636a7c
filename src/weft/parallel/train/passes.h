// weft/parallel/train/passes.h -- assigns nodes to pipeline passes: F, B, W, U.
//
//   F   forward     the phase
//   B   backward    needed for gradients of several parameters: earlier layers wait for it
//   W   weight      needed for the gradient of one parameter only: it may run any time later
//   U   update      the phase, once per step, whatever the micro-batches
//
//   dy ──▶ contract dy, w ──▶ dx ──▶ ..          B: all gradients of earlier layers depend on it
//    └───▶ contract dy, x ──▶ dw ──▶ update      W
//
// Derived from the graph: a backward node is W if, of the values that leave the phase to the update
// or remain unread, only one depends on it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::train {

enum class Pass : std::uint8_t { forward, backward, weight, update };

std::string_view name(Pass pass);

// By node; sources belong to the forward pass. For plans of a single device, of a mesh, and of a
// rank.
std::vector<Pass> passes_of(const plan::Graph& graph);

}  // namespace weft::train
