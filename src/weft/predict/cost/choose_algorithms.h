// weft/predict/cost/choose_algorithms.h -- selects each collective's algorithm (a planner stage).
//
//   before   all-reduce sum over rank [1048576] using the communicator's choice: b4 = b3
//   after    all-reduce sum over rank [1048576] using direct: b4 = b3
//
// StepCosts::exchange() returns a collective's time and the algorithm that has this time. The
// simulator uses the time; the executor runs the algorithm. An algorithm name that is already set
// is kept.
//
// All ranks must run the same algorithm, but some ranks move more bytes than others. So collective
// number i uses one algorithm on the whole mesh: the best one for the program that moves the most
// bytes in it.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {

// `programs` holds one program of each kind for all ranks of the mesh; they are returned with
// algorithm names set. Fails if they do not have the same collectives in the same order, or name an
// axis that the mesh lacks.
Result<std::vector<program::Program>> choose_algorithms(std::vector<program::Program> programs,
                                                        const plan::Mesh& mesh, const StepCosts& costs);

// The choice alone, for ranks that compile their own programs. Indexed by exchange number.
std::vector<program::ChosenAlgorithm> algorithms_of(const program::Program& program);
// Fails if the program has a different number of exchanges.
Result<program::Program> with_algorithms(program::Program program,
                                         std::span<const program::ChosenAlgorithm> algorithms);

}  // namespace weft::cost
