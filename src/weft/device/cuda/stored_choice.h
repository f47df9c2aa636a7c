// weft/device/cuda/stored_choice.h -- measured choices, kept on disk beside compiled kernels.
//
//   weft choice 1
//   768x16384x3072 .. on NVIDIA H200 by cuBLASLt 130000      the key: all that the choice depends on
//   000000000000002a                                         eight numbers, interpreted by the caller
//   ..
//   9c3f..                                                   a checksum of both
//
// A stored choice is used from then on, so that every run gives the same bits. A file with another
// key, or one that is truncated or altered, is ignored.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::device::cuda {

using ChoiceWords = std::array<std::uint64_t, 8>;

std::string print_choice(std::string_view key, const ChoiceWords& words);
std::optional<ChoiceWords> read_choice(std::string_view key, std::string_view text);

// Reads from and writes to the folder of compiled kernels; without it nothing is kept.
std::optional<ChoiceWords> stored_choice(std::string_view key);
void keep_choice(std::string_view key, const ChoiceWords& words);

}  // namespace weft::device::cuda
