// weft/formats/safetensors.h -- checkpoints: named tensors in a file that other programs read too.
//
//   8 bytes      length of the header, little-endian
//   header       {"__metadata__":{"step":"100"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}
//   data         the elements, little-endian, tensor after tensor without holes
//
// The format is Hugging Face's (github.com/huggingface/safetensors, "Format"). Weft adds two words
// to the metadata: "writer": "weft" and "checksum", a digest of every name, type and shape and of the CRC-32C of
// every 4 MiB. Checksums of earlier versions ("weft:..", a digest of every byte) are verified too.
// A file that carries them is verified when it is loaded; one that does not is loaded all the same.
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
  std::vector<std::int64_t> shape;  // none for a scalar
  // Last dim fastest. Copy it out with memcpy: in files of other programs it may be unaligned.
  std::span<const std::byte> data;
};

struct Checkpoint {
  std::map<std::string, std::string> metadata;  // without "writer" and "checksum" of ours
  std::vector<TensorEntry> tensors;             // a loaded checkpoint's are in order of name
  // Tensors of types that Weft has none of, "U8" say: their types by name. Loading fills it,
  // saving leaves them out.
  std::map<std::string, std::string> foreign;
  // What the tensors of a loaded checkpoint point into; copies share it.
  std::shared_ptr<const void> storage;

  const TensorEntry* find(std::string_view name) const;  // null when there is none
};

// Writes the checkpoint in one step: killed at any moment, `path` is the old file or the new one.
// The same checkpoint gives the same bytes, whatever the order of its tensors.
Status save(const std::string& path, const Checkpoint& checkpoint);

// Maps and checks the whole file, which must stay as it is while the checkpoint is there: save() makes a new one. Values are not judged: a NaN is a value like any other.
Result<Checkpoint> load(const std::string& path);

// The same from memory; the tensors point into `bytes`. `path` is only for the errors.
Result<Checkpoint> parse_safetensors(std::string_view bytes, std::string_view path);

}  // namespace weft::formats
