// Any text is a recipe or an error of the user, in each of four languages; a recipe that is printed is read again.

#include "promise.h"
#include "weft/translate/recipe/languages.h"

using weft::fuzz::promise;
using namespace weft::recipe;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto user = [](const auto& recipe) {
    if (!recipe.ok()) promise(recipe.error().fault == weft::Fault::user, "a wrong text is the user's");
    return recipe.ok();
  };
  if (const auto recipe = read_megatron(text); user(recipe)) {
    const auto again = read_megatron(print_megatron(*recipe).text);
    promise(!again.ok() || same_plan(*recipe, *again), "flags that are printed mean the same", text);
  }
  if (const auto recipe = read_deepspeed(text, 8); user(recipe)) print_deepspeed(*recipe);
  if (const auto recipe = read_torchtitan(text); user(recipe)) print_torchtitan(*recipe);
  if (const auto recipe = read_dtensor(text); user(recipe)) {
    const auto again = read_dtensor(print_dtensor(*recipe).text);
    promise(again.ok(), "placements that are printed are read", text);
  }
  return 0;
}
