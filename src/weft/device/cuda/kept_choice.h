// weft/device/cuda/kept_choice.h -- what was measured once, kept on disk beside compiled kernels.
//
//   weft choice 1
//   768x16384x3072 .. on NVIDIA H200 by cuBLASLt 130000      the key: all that the choice depends on
//   000000000000002a                                         eight numbers, whatever they mean to whoever asks
//   ..
//   9c3f..                                                   a checksum of both
//
// A choice that is kept is taken ever after, so that the same bits come out of every run. One that is of another key, cut
// or changed is none.
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

// From and to the folder of compiled kernels; where there is none, nothing is kept.
std::optional<ChoiceWords> kept_choice(std::string_view key);
void keep_choice(std::string_view key, const ChoiceWords& words);

}  // namespace weft::device::cuda
