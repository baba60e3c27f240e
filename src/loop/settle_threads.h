#pragma once

namespace portolan {

// OpenMP's waiting threads spin for milliseconds by default, which halts a step whenever another thread wants a core,
// or sleep at once (OMP_WAIT_POLICY=passive), which makes every parallel loop a hundred times as dear. Starts the
// program again, with the same arguments, with a spin of tens of microseconds, and where `placing` says so with every
// thread on a core of its own, unless the environment says otherwise: libgomp reads it before main. Returns where
// nothing is to be changed.
enum class ThreadPlacing { kFree, kOneACore };
void SettleThreads(char** argv, ThreadPlacing placing);

}  // namespace portolan
