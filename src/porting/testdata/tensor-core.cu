#include <mma.h>  //! error tensor-core //-> #include <rocwmma/rocwmma.hpp>
using namespace nvcuda;  //-> namespace wmma = rocwmma;
nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> f;  //-> rocwmma::fragment<rocwmma::matrix_a, 16, 16, 16, half, rocwmma::row_major> f;
wmma::fill_fragment(f, 0.0f);
int mma = 3;
#include "mma.h"
