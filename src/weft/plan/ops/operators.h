// weft/plan/ops/operators.h -- the headers below together, for a file that needs most of them.
//
// Each declares the operators of one kind. A new operator has a header of its own, <name>.h, which is not among
// these: then nothing is compiled again but its own file, all.cpp and whoever calls it.
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
