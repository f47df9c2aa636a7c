// weft/language/own_function.h -- functions that CREATE FUNCTION makes of others.
//
//   CREATE FUNCTION softplus(x) AS log(1 + exp(x));
//   ... SELECT softplus(sum(x * w)) ...        binds as log(1 + exp(sum(x * w)))
//
// The body is element-wise and sees only its arguments. Calls are expanded inline, so gradients and layouts are those
// of the operators in the body.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/language/functions.h"

namespace weft::language {

// Fails when the name is built in, an argument is declared twice, or the body has an unknown name, an unknown
// function, a recursive call, or a function that is not element-wise.
Status check_function(const Catalog& catalog, const syntax::CreateFunction& function);

std::string usage_of(const syntax::CreateFunction& function);  // "softplus(x)"

// Its signature as that of a built-in function; `own` must outlive it.
FunctionSpec spec_of(const FunctionDefinition& own);

// Whether a call gives what the function takes: how many, under which labels, with OVER or without.
Status check_arguments(const syntax::Call& call, const FunctionSpec& spec);

Error unknown_function(const Catalog& catalog, const syntax::Name& name);

}  // namespace weft::language
