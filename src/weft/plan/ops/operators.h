// weft/plan/ops/operators.h -- includes the headers below, for a file that needs most of them.
//
// Each declares the operators of one kind. Give a new operator its own header, <name>.h, and do not
// add it here: then only its own file, all.cpp and its users are recompiled.
#pragma once
#include "weft/plan/ops/all.h"
#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/codes.h"
#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/moves.h"
#include "weft/plan/ops/optimizers.h"
#include "weft/plan/ops/routing.h"
#include "weft/plan/ops/rows.h"
#include "weft/plan/ops/sequences.h"
#include "weft/plan/ops/sources.h"
#include "weft/plan/ops/sums.h"
