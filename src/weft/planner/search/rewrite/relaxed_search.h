// weft/planner/search/rewrite/relaxed_search.h -- descent with lookahead: a step may raise the cost first.
//
//   cost  ^   x          For every match: apply it, then the best few of its follow-ups, and so on up
//         |  / \         to a depth. The lowest cost reached is the value of the match (x pays only
//   base  +-*---\---     with its follow-up). The match with the best value is applied first, so two
//         |      *       that exclude each other are compared by their outcomes.
//
// Follow-ups share a value with what the previous move changed, so independent parts of a plan do
// not multiply. Sequences are short at first, and longer once short ones find nothing.
#pragma once
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

// Moves the bench to the cheapest plan found.
void relaxed_search(Workbench& bench);

}  // namespace weft::search
