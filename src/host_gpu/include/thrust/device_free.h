#pragma once
#include "thrust/portolan_more.h"
