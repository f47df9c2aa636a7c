// weft/device/cuda/row_choices.h -- how threads share the rows of a GPU's large loops: measured once, kept on disk.
//
// Where a sum over rows is cut decides its bits: so a shape that was chosen is kept and taken ever after.
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

  // The shape that was chosen for a loop, by row_key(); the usual one where none was.
  RowShape find(const std::string& key);

  // Chooses for a program's loops that move much memory: what was kept; else the fastest of row_shapes(), measured for a
  // second in all, where the step moves most first; when that is over the usual one.
  void choose(const program::Program& program);

 private:
  RowShape fastest(const program::RowLoop& loop, std::span<const RowShape> shapes);

  Gpu& gpu_;
  std::mutex mutex_;                        // of what follows
  std::map<std::string, RowShape> chosen_;  // by key
};

// What a loop's shape depends on beside the GPU: its usual text, and how many rows there are.
std::string row_key(const RowSource& usual, const program::RowLoop& loop);

}  // namespace weft::device::cuda
