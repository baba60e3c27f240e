#define PORTOLAN_EMU_WAVE 64
#define PORTOLAN_EMU_SUITE Emu64
#include "device/emu/emu_test_cases.h"  // NOLINT: the same cases for both wave sizes
