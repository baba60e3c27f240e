#pragma once
#include "thrust/portolan_thrust.h"
