// weft/language/own_function.h -- functions that CREATE FUNCTION makes of others.
//
//   CREATE FUNCTION softplus(x) AS log(1 + exp(x));
//   ... SELECT softplus(sum(x * w)) ...        binds as log(1 + exp(sum(x * w)))
//
// A function sees its arguments and nothing else, and is computed element by element. As its expression stands
// wherever it is called, its gradient and its layouts are those of what it is made of.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/language/functions.h"

namespace weft::language {

// Fails where the name is taken by one of Weft's, an argument is declared twice, or the expression has a name
// that is no argument, a call of what does not exist, of itself, or of what is not computed element by element.
Status check_function(const Catalog& catalog, const syntax::CreateFunction& function);

std::string usage_of(const syntax::CreateFunction& function);  // "softplus(x)"

// The row it would have among Weft's functions; `own` must outlive it.
FunctionSpec spec_of(const FunctionDefinition& own);

// Whether a call gives what the function takes: how many, under which labels, with OVER or without.
Status check_arguments(const syntax::Call& call, const FunctionSpec& spec);

Error unknown_function(const Catalog& catalog, const syntax::Name& name);

}  // namespace weft::language
