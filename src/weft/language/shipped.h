// weft/language/shipped.h -- the devices, clusters, layers and models that Weft comes with.
//
//   language::Catalog catalog;
//   language::load_shipped(catalog);   // gpt2, vgg16, ... as CREATE would have defined them
#pragma once
#include "weft/language/catalog.h"

namespace weft::language {

// Fills a catalog with the text of models/ and clusters/, which is inside the program.
void load_shipped(Catalog& catalog);

}  // namespace weft::language
