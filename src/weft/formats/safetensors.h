// weft/formats/safetensors.h -- checkpoints: named tensors in a file that other programs can read.
//
//   8 bytes      length of the header, little-endian
//   header       {"__metadata__":{"step":"100"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}
//   data         the elements, little-endian, tensor after tensor without gaps
//
// The format is Hugging Face's (github.com/huggingface/safetensors, "Format"). Weft adds two keys
// to the metadata: "writer": "weft" and "checksum", a digest of every name, type and shape and of
// the CRC-32C of every 4 MiB. Checksums of earlier versions ("weft:..", a digest of every byte) are
// verified too. A file with these keys is verified when it is loaded; other files are loaded
// without verification.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/dtype.h"

namespace weft::formats {

struct TensorEntry {
  std::string name;
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;  // empty for a scalar
  // Last dim fastest. Use memcpy to read it: in files of other programs it may be unaligned.
  std::span<const std::byte> data;
};

struct Checkpoint {
  std::map<std::string, std::string> metadata;  // without Weft's "writer" and "checksum"
  std::vector<TensorEntry> tensors;             // sorted by name in a loaded checkpoint
  // Type names of tensors with dtypes that Weft does not support, such as "U8". Set by loading; not
  // saved.
  std::map<std::string, std::string> foreign;
  // Owns the memory of a loaded checkpoint's tensors; copies share it.
  std::shared_ptr<const void> storage;

  const TensorEntry* find(std::string_view name) const;  // null if missing
};

// Atomic: if killed at any moment, `path` is either the old file or the new one. The same
// checkpoint gives the same bytes, whatever the order of its tensors.
Status save(const std::string& path, const Checkpoint& checkpoint);

// Maps and checks the whole file, which must not change while the checkpoint exists; save() makes a
// new file. Values are not checked: NaN is allowed.
Result<Checkpoint> load(const std::string& path);

// The same from memory; tensors point into `bytes`. `path` is only for error messages.
Result<Checkpoint> parse_safetensors(std::string_view bytes, std::string_view path);

}  // namespace weft::formats
