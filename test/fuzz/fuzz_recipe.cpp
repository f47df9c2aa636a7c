// Any text is a recipe or a user error, in each format. A printed recipe reads back.

#include "promise.h"
#include "weft/translate/recipe/language.h"

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
  for (const Language language : kLanguages)
    if (const auto recipe = read(language, text, 8); user(recipe)) {
      print(language, *recipe);
      Recipe better = *recipe;
      better.devices = 8;
      better.micro_batch = 1;
      rewrite(language, text, *recipe, better);
    }
  return 0;
}
