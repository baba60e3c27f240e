#include <cuda/std/atomic>  //! error libcudacxx
#include <cuda/barrier>  //! error libcudacxx
#include "cuda/std/atomic"  //! error libcudacxx
#include "cuda/helper.h"
#include <cudax/std>
