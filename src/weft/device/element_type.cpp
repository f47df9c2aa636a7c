#include "weft/device/element_type.h"

#include <array>

namespace weft::device {
namespace {

struct TypeTraits {
  std::string_view name, nccl_name;
  std::size_t size;
};
constexpr std::array<TypeTraits, kElementTypes> kTypes = {{{"f64", "double", 8},
                                                           {"f32", "float", 4},
                                                           {"f16", "half", 2},
                                                           {"bf16", "bfloat16", 2},
                                                           {"i8", "int8", 1},
                                                           {"i32", "int32", 4},
                                                           {"i64", "int64", 8},
                                                           {"u8", "uint8", 1},
                                                           {"i16", "int16", 2},
                                                           {"u16", "uint16", 2},
                                                           {"u32", "uint32", 4},
                                                           {"u64", "uint64", 8}}};
constexpr std::array<std::string_view, kReduceOps> kOps = {"sum", "product", "min", "max",
                                                           "avg", "and",     "or",  "xor"};

}  // namespace

std::string_view name(ElementType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::string_view name(ReduceOp op) { return kOps[static_cast<std::size_t>(op)]; }
std::size_t size_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)].size; }
bool is_whole(ElementType type) { return type >= ElementType::i8; }
bool is_bitwise(ReduceOp op) { return op >= ReduceOp::bit_and; }

std::optional<ElementType> find_element_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (name == kTypes[i].name || name == kTypes[i].nccl_name) return static_cast<ElementType>(i);
  return std::nullopt;
}

std::optional<ReduceOp> find_reduce_op(std::string_view name) {
  if (name == "prod") return ReduceOp::product;
  if (name == "band" || name == "bor" || name == "bxor") name.remove_prefix(1);  // MPI's names
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (name == kOps[i]) return static_cast<ReduceOp>(i);
  return std::nullopt;
}

}  // namespace weft::device
