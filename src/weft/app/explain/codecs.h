// weft/app/explain/codecs.h -- how codecs reduce the communication of a step.
//
//   codecs: gradients int4: 392 of 392 exchanges, 475 MiB as 136 MiB, off by at most m / 14 each of
//   2 times
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "weft/planner/search/codec/place_codecs.h"

namespace weft::explain {

std::string codecs_lines(std::span<const search::CodedExchanges> coded, std::size_t width);
nlohmann::ordered_json codecs_json(std::span<const search::CodedExchanges> coded);

}  // namespace weft::explain
