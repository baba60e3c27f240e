#pragma once

// nvcc includes this before every source, and it includes much of the C library.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "portolan_gpu/qualifiers.h"
// Qualifiers first: what follows is plain C++ all the same.
#include "portolan_gpu/atomics.h"
#include "portolan_gpu/launch.h"
#include "portolan_gpu/math.h"
#include "portolan_gpu/runtime_api.h"
#include "portolan_gpu/shared.h"
#include "portolan_gpu/texture_objects.h"
#include "portolan_gpu/warp.h"
