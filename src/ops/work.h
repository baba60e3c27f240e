#pragma once

#include "units/dtype.h"
#include "units/quantity.h"

namespace portolan {

// What an op must do, whatever the device: compulsory arithmetic and traffic. Caches and tiles are the cost model's
// business.
struct Work {
  Flops matrix_flops;  // done by matrix units, in matrix_dtype
  DType matrix_dtype = DType::kFp32;
  Flops vector_flops;            // everything else, fp32
  double transcendentals = 0.0;  // exp, tanh, sigmoid ... results
  Bytes read;                    // each input once
  Bytes written;                 // each output once
  double parallelism = 1.0;      // independent output elements
};

}  // namespace portolan
