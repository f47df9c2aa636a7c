// weft/base/file.h -- whole files: read at once, written so that no crash leaves half of one.
//
//   write_file_atomically("model.safetensors", pieces)
//
//     .model.safetensors.partial   the pieces, one after the other, made durable (fsync)
//       -> model.safetensors       takes the old file's place in one step (rename)
//     the folder                   made durable too, so that the new name survives a power cut
//
// Killed at any moment, the name leads to the old file or to the new one, each whole. A killed writer leaves one
// .partial file behind, which the next writer of that name takes over unless its lock (flock) says that it lives.
// Where that file is a link or another user's, this writer's has a random end: .model.safetensors.partial.5f0c...
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/descriptor.h"
#include "weft/base/result.h"

namespace weft {

// Opens a file, or a pipe out of which something comes in time. Refuses folders and devices: some never end.
Result<Descriptor> open_to_read(const std::string& path,
                                std::chrono::milliseconds patience = std::chrono::seconds(30));

// The file's bytes. Fails when there are more than `most_bytes` of them.
Result<std::string> read_file(const std::string& path, std::int64_t most_bytes);

// Makes `path` a file of these pieces. On failure the old file is untouched and nothing is left
// behind. A symbolic link is followed; what is not a regular file is refused; permissions are kept.
Status write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);
Status write_file_atomically(const std::string& path, std::string_view text);

}  // namespace weft
