// weft/device/cpu/phased_plane.h -- a plane with a border as one line of floats, for sliding
// windows.
//
//   stride 2:  a b c d        phases   (0, 0) a c i k    (0, 1) b d j l      every second row and column:
//              e f g h                 (1, 0) e g m o    (1, 1) f h n p      neighbouring window positions
//              i j k l                                                       read neighbouring elements
//              m n o p
#pragma once
#include <cstdint>

namespace weft::device::cpu {

struct PhasedPlane {
  std::int64_t height = 0, width = 0, padding = 0, padding_width = 0, stride = 1;
  std::int64_t columns = 0, phase = 0;  // stride of rows within a phase, and of phases
};

// Writes the plane inside its border, which is left unchanged.
void split_plane(const PhasedPlane& plane, const float* x, float* line);
// The inverse, without the border.
void join_plane(const PhasedPlane& plane, const float* line, float* x);

}  // namespace weft::device::cpu
