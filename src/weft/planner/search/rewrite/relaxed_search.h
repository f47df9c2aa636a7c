// weft/planner/search/rewrite/relaxed_search.h -- descent that looks ahead: a step may lose what the next ones win back.
//
//   price ^   x          From every match: take it, then the best few of what it makes possible, and so
//         |  / \         on to a depth. The sequence that ends lowest is what the match is worth (x
//   base  +-*---\---     pays only with its follower), and of all matches the one worth most is taken
//         |      *       first. Two that exclude each other are so compared by where they lead.
//
// Follow-ups share a value with what the move before changed, so parts of a plan that have nothing to do with
// each other do not multiply. Sequences are short first, longer where short ones find nothing any more.
#pragma once
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {

// Moves the bench to the cheapest plan found.
void relaxed_search(Workbench& bench);

}  // namespace weft::search
