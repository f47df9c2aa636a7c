// weft/parallel/pipeline/torch_action.h -- the cells of a pipeline schedule in PyTorch's CSV.
//
//   0F0,0F1,,(0F2;1I0)OVERLAP_F_B,1W0      row 1: the actions of rank 0, in order
//   1F0,1SEND_F0,2RECV_B0                  row 2: of rank 1
//
// A cell is a stage, an action and, for most actions, a micro-batch. F is a forward pass, I the
// backward pass of activations, W of parameters and B both in one. The other actions move data:
// UNSHARD and RESHARD gather and free the parameters of a stage, REDUCE_GRAD reduces its gradients,
// and SEND_F, RECV_F, SEND_B and RECV_B exchange activations and their gradients with the
// neighbouring stage. An empty cell is a step of waiting. Two passes in parentheses may overlap.
//
// PyTorch's stages are Weft's positions: PyTorch numbers all parts of the model, Weft the ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::pipeline {

struct TorchAction {
  enum class Kind : std::uint8_t {
    forward,
    backward_input,
    weight,
    backward,
    unshard,
    reshard,
    reduce_grad,
    send_forward,
    receive_forward,
    send_backward,
    receive_backward,
  };
  Kind kind = Kind::forward;
  std::int32_t stage = 0;
  std::int32_t micro_batch = -1;  // -1: unshard, reshard and reduce_grad have none

  bool is_pass() const { return kind <= Kind::backward; }
  // I or B.
  bool is_backward() const { return kind == Kind::backward_input || kind == Kind::backward; }
  bool is_message() const { return kind >= Kind::send_forward; }
  friend bool operator==(const TorchAction&, const TorchAction&) = default;
};
std::string print(const TorchAction& action);  // 0F0, 1UNSHARD

// One action; two: passes that may overlap; none: an empty cell.
using TorchCell = std::vector<TorchAction>;
using TorchRows = std::vector<std::vector<TorchCell>>;

// "row 2, cell 5", counted from 1.
std::string print_place(std::size_t row, std::size_t cell);

// Reads cells, without checking that they form a schedule.
Result<TorchRows> parse_torch_cells(std::string_view text);
std::string print_torch_cells(const TorchRows& rows);

}  // namespace weft::pipeline
