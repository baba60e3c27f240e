#pragma once

#include <string>

#include "porting/rule.h"

namespace portolan {

// "gfx950 (AMD Instinct MI350X) has 64 lanes a wave": the number that a wave-width finding rests on.
std::string WaveText(const PortTarget& target);

// Whether every launch of the kernel around token `i` that the project shows has at most 32 threads a block: half a
// wave, in which 32-lane code is right. False when nothing is known.
bool RunsInHalfAWave(const RuleInput& input, size_t i);

// Whether the token calls a builtin that acts on the warp: a shuffle, a vote, a match or a mask.
bool IsBallot(std::string_view name);
bool IsShuffle(std::string_view name);
// A shuffle with _sync has its mask first.
inline bool TakesMask(std::string_view name) { return name.size() > 5 && name.substr(name.size() - 5) == "_sync"; }

// Whether tokens [begin, end) name a lane-like quantity: an identifier with "lane" in it, threadIdx or tid.
bool NamesLane(const SourceFile& source, size_t begin, size_t end);

// Whether an if around token `i` lets one thread of a block or of a warp in (threadIdx.x == 0, lane == 0).
bool RunsInOneThread(const SourceFile& source, size_t i);

// Whether the value of tokens [begin, end) at token `at` is known to be another one in each 32-lane team: it, or an
// assignment that it comes from in the function around, names the thread's or the warp's index, an atomic, a shuffle or
// one of CUB's collectives. False when it may be the same in all: a constant, a parameter, what all threads read.
bool DiffersByTeam(const SourceFile& source, size_t at, size_t begin, size_t end);

}  // namespace portolan
