#define PORTOLAN_EMU_WAVE 32
#define PORTOLAN_EMU_SUITE Emu32
#include "device/emu/emu_test_cases.h"  // NOLINT: the same cases for both wave sizes
