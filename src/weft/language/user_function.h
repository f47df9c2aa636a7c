// weft/language/user_function.h -- user-defined functions (CREATE FUNCTION).
//
//   CREATE FUNCTION softplus(x) AS log(1 + exp(x));
//   ... SELECT softplus(sum(x * w)) ...        binds as log(1 + exp(sum(x * w)))
//
// The body is element-wise and sees only its arguments. Calls are expanded inline, so gradients and
// layouts are those of the operators in the body.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/language/catalog.h"
#include "weft/language/functions.h"

namespace weft::language {

// Fails if the name is a built-in function, an argument is declared twice, or the body has an
// unknown name, an unknown function, a recursive call, or a function that is not element-wise.
Status check_function(const Catalog& catalog, const syntax::CreateFunction& function);

std::string usage_of(const syntax::CreateFunction& function);  // "softplus(x)"

// The function's signature in the form of a built-in function's; `own` must outlive it.
FunctionSpec spec_of(const FunctionDefinition& own);

// Checks a call against the signature: number of arguments, labels, OVER.
Status check_arguments(const syntax::Call& call, const FunctionSpec& spec);

Error unknown_function(const Catalog& catalog, const syntax::Name& name);

}  // namespace weft::language
