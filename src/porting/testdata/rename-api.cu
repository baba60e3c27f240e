cudaError_t error = cudaMalloc(&pointer, size);  //+ #ifndef USE_ROCM|#define USE_ROCM 1|#endif //-> hipError_t error = hipMalloc(&pointer, size);
if (cudaSuccess != cudaGetLastError()) return;           //-> if (hipSuccess != hipGetLastError()) return;
cudaDeviceProp properties;                               //-> hipDeviceProp_t properties;
struct cudaDeviceProp more;                              //-> hipDeviceProp_t more;
cudaThreadSynchronize();                                 //-> hipDeviceSynchronize();
cudaMallocHost((void**)&host, size);                     //-> hipHostMalloc((void**)&host, size, hipHostMallocDefault);
cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);  //-> hipDeviceGetAttribute(&n, hipDeviceAttributeMultiprocessorCount, 0);
cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k);  //-> hipblasSgemm(handle, HIPBLAS_OP_N, HIPBLAS_OP_T, m, n, k);
CUdeviceptr address; cuMemAlloc(&address, 4);            //-> hipDeviceptr_t address; hipMalloc(&address, 4);
auto type = CUDA_R_16BF;                                 //-> auto type = HIP_R_16BF;
curandState state; curand_init(1, 2, 3, &state);         //-> hiprandState state; hiprand_init(1, 2, 3, &state);
::cudaFree(pointer);                                     //-> ::hipFree(pointer);
#define CHECK(x) do { if ((x) != cudaSuccess) abort(); } while (0)  //-> #define CHECK(x) do { if ((x) != hipSuccess) abort(); } while (0)
kernel<<<grid, block, 0, stream>>>(a, b);
ns::kernel<float, 4><<<dim3(a < b ? c : d, 1), 256>>>(x);
CHECKED cudaFree(pointer);                               //-> CHECKED hipFree(pointer);
cudaStreamAttributeAccessPolicyWindow;                   //! error unavailable-api
CubDebugExit(cudaDeviceSynchronize());                    //-> HipcubDebug(hipDeviceSynchronize());
const char* name = "cudaMalloc";
// cudaMalloc
/* cudaMalloc */
object.cudaMalloc(1);
object->cudaMalloc(1);
int cudaStat = 0; cudaStat++;
void cudaHelper(int a) { }
cudaHelper(3);
#define cudaCheck(x) x
cudaCheck(1);
#define CUDA_CHECK(x) x
CUDA_CHECK(1);
cuda_helper(); cudaify(); culprit(); cube(); current();
namespace cuda { int x; }
class cuSolver { };
cuSolver mine;
#ifndef USE_ROCM
cudaMalloc(&p, 1);
#else
hipMalloc(&p, 1);
#endif
cublasCgemm_v2(h, a, b);  //-> hipblasCgemm_v2(h, a, b);
cublasSgemm_v2_64(h, a, b); cublasCreate(&h);  //-> hipblasSgemm_64(h, a, b); hipblasCreate(&h);
cudaError_t cudaStat1, *cudaStat2 = 0, cudaStat3[2];  //-> hipError_t cudaStat1, *cudaStat2 = 0, cudaStat3[2];
cudaStat2 = f(cudaStat3, cudaSuccess);  //-> cudaStat2 = f(cudaStat3, hipSuccess);
