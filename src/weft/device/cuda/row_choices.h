// weft/device/cuda/row_choices.h -- how threads share rows in a GPU's large loops: measured once,
// kept on disk.
//
// Where a sum over rows is split determines its bits, so a chosen shape is kept and always used.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "weft/device/cuda/row_source.h"
#include "weft/program/tasks/program.h"

namespace weft::device::cuda {

class Gpu;

class RowChoices {
 public:
  explicit RowChoices(Gpu& gpu) : gpu_(gpu) {}

  // The shape chosen for a loop, by row_key(); the default if none was chosen.
  RowShape find(const std::string& key);

  // Chooses shapes for a program's loops that move much memory. Uses stored choices; otherwise
  // measures row_shapes() for up to one second in all, the loops with the most traffic first, then
  // takes the default.
  void choose(const program::Program& program);

 private:
  RowShape fastest(const program::RowLoop& loop, std::span<const RowShape> shapes);

  Gpu& gpu_;
  std::mutex mutex_;                        // guards the member below
  std::map<std::string, RowShape> chosen_;  // by key
};

// What a loop's shape depends on besides the GPU: its default source and the number of rows.
std::string row_key(const RowSource& usual, const program::RowLoop& loop);

}  // namespace weft::device::cuda
