// weft/runtime/run/algorithm_list.h -- the algorithms of a program's collectives, in order, as text and back.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/program/tasks/program.h"

namespace weft::run {

std::string print_algorithms(std::span<const program::ChosenAlgorithm> algorithms);  // one line of JSON
Result<std::vector<program::ChosenAlgorithm>> read_algorithms(const std::string& text);

}  // namespace weft::run
