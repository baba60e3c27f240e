// Programs that use CUDA's textures and libraries. Each compares what it gets with a sum done by hand and ends with
// exit code 1 where it differs, which is no agreement.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "porting/process.h"
#include "porting/test_target.h"
#include "porting/verify/verify.h"

namespace portolan {
namespace {

namespace fs = std::filesystem;

VerifyReport RunSource(const std::string& file, const std::string& text) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() + "/program");
  std::ofstream(folder.path() + "/program/" + file) << text;
  VerifyOptions options;
  options.project = folder.path() + "/program";
  options.include_dir = PORTOLAN_HOST_GPU_INCLUDE;
  options.library = PORTOLAN_HOST_GPU_LIBRARY;
  options.boost_context = "-lboost_context";
  const Result<VerifyReport> report = Verify(options, TestTarget());
  EXPECT_TRUE(report) << (report ? "" : FormatError(report.error()));
  return report ? *report : VerifyReport();
}

std::string Why(const VerifyReport& report) {
  std::string text = std::string(VerifyVerdictName(report.verdict)) + " " + report.why;
  for (const std::string& line : report.why_details) text += "\n  " + line;
  for (const VerifyFinding& finding : report.findings)
    text += "\n  " + PlaceText(finding.place) + ": " + finding.message;
  return text;
}

TEST(VerifyLibraries, TexturesFilterAndClampAsTheHardwareDoes) {
  const VerifyReport report = RunSource("main.cu", R"(
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
__global__ void k(cudaTextureObject_t smooth, cudaTextureObject_t border, cudaTextureObject_t line, float* out) {
  if (threadIdx.x != 0) return;
  out[0] = tex2D<float>(smooth, 1.0f, 0.5f);    // between elements 0 and 1 of row 0
  out[1] = tex2D<float>(smooth, 1.25f, 1.0f);   // three quarters of element 1, between rows 0 and 1
  out[2] = tex2D<float>(smooth, -7.0f, 0.5f);   // clamped to element 0
  out[3] = tex2D<float>(border, 5.0f, 0.0f);    // outside
  out[4] = tex1Dfetch<float>(line, 3);
}
int main() {
  const float rows[2][4] = {{1, 2, 4, 8}, {10, 20, 40, 80}};
  cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
  float *plane, *linear, *out, host[5];
  size_t pitch;
  cudaMallocPitch((void**)&plane, &pitch, 16, 2);
  cudaMemcpy2D(plane, pitch, rows, 16, 16, 2, cudaMemcpyHostToDevice);
  cudaMalloc(&linear, 16);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(linear, rows[1], 16, cudaMemcpyHostToDevice);
  cudaResourceDesc of_plane, of_linear;
  memset(&of_plane, 0, sizeof of_plane);
  memset(&of_linear, 0, sizeof of_linear);
  of_plane.resType = cudaResourceTypePitch2D;
  of_plane.res.pitch2D.devPtr = plane;
  of_plane.res.pitch2D.desc = desc;
  of_plane.res.pitch2D.width = 4;
  of_plane.res.pitch2D.height = 2;
  of_plane.res.pitch2D.pitchInBytes = pitch;
  of_linear.resType = cudaResourceTypeLinear;
  of_linear.res.linear.devPtr = linear;
  of_linear.res.linear.desc = desc;
  of_linear.res.linear.sizeInBytes = 16;
  cudaTextureDesc how;
  memset(&how, 0, sizeof how);
  cudaTextureObject_t smooth, border, line;
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeBorder;
  cudaCreateTextureObject(&border, &of_plane, &how, nullptr);
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  cudaCreateTextureObject(&line, &of_linear, &how, nullptr);
  how.filterMode = cudaFilterModeLinear;
  cudaCreateTextureObject(&smooth, &of_plane, &how, nullptr);
  k<<<1, 64>>>(smooth, border, line, out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  // (1 + 2) / 2; 3/4 of (2 + 20) / 2 and 1/4 of (1 + 10) / 2
  const float expected[5] = {1.5f, 9.625f, 1, 0, 80};
  for (int i = 0; i < 5; ++i) {
    if (host[i] != expected[i]) return printf("%d: %f\n", i, host[i]), 1;
  }
  return 0;
}
)");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Why(report);
  EXPECT_EQ(report.launches, 1);
}

// Arrays have no image instructions on the target: what the audit says of them, the port shows.
TEST(VerifyLibraries, ATextureOfAnArrayIsNotThereOnTheTarget) {
  const VerifyReport report = RunSource("main.cu", R"(
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
__global__ void k(cudaTextureObject_t texture, float* out) { out[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 0); }
int main() {
  const float rows[4] = {1, 2, 4, 8};
  cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &desc, 4, 1);
  cudaMemcpy2DToArray(array, 0, 0, rows, 16, 16, 1, cudaMemcpyHostToDevice);
  float *out, host[4];
  cudaMalloc(&out, sizeof host);
  cudaResourceDesc of_array;
  memset(&of_array, 0, sizeof of_array);
  of_array.resType = cudaResourceTypeArray;
  of_array.res.array.array = array;
  cudaTextureDesc how;
  memset(&how, 0, sizeof how);
  cudaTextureObject_t texture = 0;
  if (cudaCreateTextureObject(&texture, &of_array, &how, nullptr) != cudaSuccess) return puts("no texture"), 1;
  k<<<1, 4>>>(texture, out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 4; ++i) printf("%g\n", host[i]);
  return 0;
}
)");
  EXPECT_EQ(report.verdict, VerifyVerdict::kDisagrees) << Why(report);
  EXPECT_NE(Why(report).find("exit"), std::string::npos) << Why(report);
}

// No kernel of its own: what it prints is compared.
TEST(VerifyLibraries, ThrustCusparseCufftAndSolversAlone) {
  const VerifyReport report = RunSource("main.cu", R"(
#include <cublas_v2.h>
#include <cuComplex.h>
#include <cufft.h>
#include <cusparse.h>
#include <thrust/device_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>
#include <thrust/unique.h>
#include <cmath>
#include <cstdio>
#define CHECK(x) if (!(x)) return printf("%s\n", #x), 1
int main() {
  const int keys[] = {3, 1, 1, 2}, values[] = {30, 10, 11, 20};
  thrust::device_vector<int> k(keys, keys + 4), v(values, values + 4);
  auto both = thrust::make_zip_iterator(thrust::make_tuple(k.begin(), v.begin()));
  thrust::sort(both, both + 4);
  auto end = thrust::unique_by_key(k.begin(), k.end(), v.begin());
  CHECK(end.first - k.begin() == 3 && v[0] == 10 && v[1] == 20 && v[2] == 30);

  // The transform of 1, 0, 0, 0, 0, 0 shifted by one: exp(-2 pi i k / 6).
  cufftComplex line[6] = {};
  line[1].x = 1;
  cufftHandle plan;
  cufftPlan1d(&plan, 6, CUFFT_C2C, 1);
  cufftExecC2C(plan, line, line, CUFFT_FORWARD);
  CHECK(std::fabs(line[1].x - 0.5f) < 1e-6f && std::fabs(line[1].y + 0.8660254f) < 1e-6f);
  cufftDestroy(plan);

  // (2 1; 0 4) transposed, times (1, 2).
  int offsets[] = {0, 2, 3}, columns[] = {0, 1, 1};
  float entries[] = {2, 1, 4}, x[] = {1, 2}, y[] = {100, 100}, one = 1, zero = 0;
  cusparseHandle_t sparse;
  cusparseSpMatDescr_t a;
  cusparseDnVecDescr_t vx, vy;
  cusparseCreate(&sparse);
  cusparseCreateCsr(&a, 2, 2, 3, offsets, columns, entries, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                    CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseCreateDnVec(&vx, 2, x, CUDA_R_32F);
  cusparseCreateDnVec(&vy, 2, y, CUDA_R_32F);
  cusparseSpMV(sparse, CUSPARSE_OPERATION_TRANSPOSE, &one, a, vx, &zero, vy, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
               nullptr);
  CHECK(y[0] == 2 && y[1] == 9);

  // Least squares of i x = b: x = -i b.
  cublasHandle_t blas;
  cublasCreate(&blas);
  cuComplex left = make_cuComplex(0, 1), right = make_cuComplex(3, 0);
  cuComplex *lefts[] = {&left}, *rights[] = {&right};
  int info, infos[1];
  cublasCgelsBatched(blas, CUBLAS_OP_N, 1, 1, 1, lefts, 1, rights, 1, &info, infos, 1);
  CHECK(std::fabs(cuCrealf(right)) < 1e-6f && std::fabs(cuCimagf(right) + 3) < 1e-6f);
  printf("all right\n");
  return 0;
}
)");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Why(report);
  EXPECT_EQ(report.launches, 0);
}

TEST(VerifyLibraries, AProgramInC) {
  const VerifyReport report = RunSource("main.c", R"(
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
static int sum(const int* restrict a, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += a[i];
  return s;
}
int main(void) {
  int* host = malloc(4 * sizeof *host);
  int* device;
  for (int i = 0; i < 4; ++i) host[i] = i;
  if (cudaMalloc((void**)&device, 16) != cudaSuccess) return 1;
  cudaMemcpy(device, host, 16, cudaMemcpyHostToDevice);
  cudaMemset(device, 0, 4);
  cudaMemcpy(host, device, 16, cudaMemcpyDeviceToHost);
  printf("%d\n", sum(host, 4));
  return 0;
}
)");
  EXPECT_EQ(report.verdict, VerifyVerdict::kAgrees) << Why(report);
  EXPECT_EQ(report.compared_copies, 1);
}

}  // namespace
}  // namespace portolan
