// weft/language/shipped.h -- the devices, clusters, layers and models shipped with Weft.
//
//   language::Catalog catalog;
//   language::load_shipped(catalog);   // gpt2, vgg16, ... as if defined by CREATE
#pragma once
#include "weft/language/catalog.h"

namespace weft::language {

// Loads the definitions of models/ and clusters/, which are embedded in the program, into a
// catalog.
void load_shipped(Catalog& catalog);

}  // namespace weft::language
