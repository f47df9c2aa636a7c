// Any text is a recipe or a user error, in each of four formats. A printed recipe reads back.

#include "promise.h"
#include "weft/translate/recipe/languages.h"

using weft::fuzz::promise;
using namespace weft::recipe;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto user = [](const auto& recipe) {
    if (!recipe.ok()) promise(recipe.error().fault == weft::Fault::user, "a bad text is a user error");
    return recipe.ok();
  };
  if (const auto recipe = read_megatron(text); user(recipe)) {
    const auto again = read_megatron(print_megatron(*recipe).text);
    promise(!again.ok() || same_plan(*recipe, *again), "printed flags mean the same", text);
  }
  if (const auto recipe = read_deepspeed(text, 8); user(recipe)) print_deepspeed(*recipe);
  if (const auto recipe = read_torchtitan(text); user(recipe)) print_torchtitan(*recipe);
  if (const auto recipe = read_dtensor(text); user(recipe)) {
    const auto again = read_dtensor(print_dtensor(*recipe).text);
    promise(again.ok(), "printed placements read back", text);
  }
  return 0;
}
