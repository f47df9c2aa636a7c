// weft/device/cpu/phased_plane.h -- a plane as one line of floats with room for a border, for windows that slide.
//
//   stride 2:  a b c d        phases   (0, 0) a c i k    (0, 1) b d j l      of every second row and column each:
//              e f g h                 (1, 0) e g m o    (1, 1) f h n p      neighbouring places of a window read
//              i j k l                                                       neighbouring elements
//              m n o p
#pragma once
#include <cstdint>

namespace weft::device::cpu {

struct PhasedPlane {
  std::int64_t height = 0, width = 0, padding = 0, padding_width = 0, stride = 1;
  std::int64_t columns = 0, phase = 0;  // from row to row of a phase, and from phase to phase
};

// Writes the plane into the middle of its border, which stays as it is.
void split_plane(const PhasedPlane& plane, const float* x, float* line);
// And back, without the border.
void join_plane(const PhasedPlane& plane, const float* line, float* x);

}  // namespace weft::device::cpu
