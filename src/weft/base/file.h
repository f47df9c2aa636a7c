// weft/base/file.h -- reads whole files, and writes files atomically.
//
//   write_file_atomically("model.safetensors", pieces)
//
//     .model.safetensors.partial   the pieces, concatenated and made durable (fsync)
//       -> model.safetensors       replaces the old file atomically (rename)
//     the folder                   made durable too, so that the new name survives a power failure
//
// After a crash at any point, the name refers to the complete old or the complete new file. A
// killed writer leaves a .partial file. The next writer of that name reuses it, unless its lock
// (flock) shows that the writer is alive. If that file is a link or belongs to another user, a
// random suffix is added: .model.safetensors.partial.5f0c...
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/descriptor.h"
#include "weft/base/result.h"

namespace weft {

// Opens a file, or a pipe that delivers data within `patience`. Rejects folders and devices, since
// some devices never end.
Result<Descriptor> open_to_read(const std::string& path,
                                std::chrono::milliseconds patience = std::chrono::seconds(30));

// Reads the whole file. Fails if it has more than `most_bytes` bytes.
Result<std::string> read_file(const std::string& path, std::int64_t most_bytes);

// Writes the concatenated pieces to `path`. On failure the old file is unchanged and no other file
// is left. Follows symbolic links, rejects non-regular files, and keeps permissions.
Status write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);
Status write_file_atomically(const std::string& path, std::string_view text);

}  // namespace weft
