#include <cublas.h>  //+ #define HIPBLAS_V2 //-> #include <hipblas/hipblas.h>
double dot(int n, const double* x) { return cublasDdot(n, x, 1, x, 1); }  //! error unavailable-api
cublasStatus status = CUBLAS_STATUS_SUCCESS;  //-> hipblasStatus_t status = HIPBLAS_STATUS_SUCCESS;
