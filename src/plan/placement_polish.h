#pragma once

#include "plan/step_pricer.h"

namespace portolan {

// Improves a placement under the step itself, not under weights: moves and swaps of single shards, other splits of
// single tables (kSingle) and of two at once (kPairs), one after the other as long as one of them shortens the step or
// makes it fit, or until so many were tried as a second is good for. Deterministic.
enum class PolishSplits { kNo, kSingle, kPairs };
void PolishPlacement(StepPricer& pricer, PolishSplits splits, PricedPlacement* best);

// The best of all placements where the tables are few enough: every split of every table whose step at even ranks
// would beat `best`, and every way to deal its shards, ranks that hold the same counting as one. Deals of more tables
// are left after a fixed number of trials; `best` is never made worse. Deterministic.
void TryAllPlacements(StepPricer& pricer, PricedPlacement* best);

}  // namespace portolan
