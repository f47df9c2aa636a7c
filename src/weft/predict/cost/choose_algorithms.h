// weft/predict/cost/choose_algorithms.h -- the step of planning that says what runs each collective of a program.
//
//   before   all-reduce sum over rank [1048576] using the communicator's choice: b4 = b3
//   after    all-reduce sum over rank [1048576] using direct: b4 = b3
//
// StepCosts::exchange() gives a collective a time and the algorithm that takes it. The simulator adds up the
// time, the executor runs the algorithm. A name that is there already stays.
//
// All ranks must run the same algorithm, but some move more than others. So collective number i has one name
// on the whole mesh: the one for the program that moves the most in it.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {

// `programs` are those of all ranks of the mesh, one of each kind, and are returned with names. Fails where
// they do not have the same collectives in the same order, or name an axis that the mesh lacks.
Result<std::vector<program::Program>> choose_algorithms(std::vector<program::Program> programs,
                                                        const plan::Mesh& mesh, const StepCosts& costs);

// The choice by itself, to be handed to ranks that compile their own programs: by number of the exchange.
std::vector<program::ChosenAlgorithm> algorithms_of(const program::Program& program);
// Fails where the program has another number of exchanges.
Result<program::Program> with_algorithms(program::Program program,
                                         std::span<const program::ChosenAlgorithm> algorithms);

}  // namespace weft::cost
