// The software textures, compiled for the host with a runtime of three functions, against what the CUDA C++ Programming
// Guide says of nearest and linear filtering and of the address modes.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "porting/compat.h"
#include "porting/process.h"

namespace portolan {
namespace {

constexpr const char* kRuntime = R"cpp(
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define __device__
  struct __hip_texture;
  typedef __hip_texture* hipTextureObject_t;
  enum hipError_t { hipSuccess, hipErrorNotSupported, hipErrorInvalidValue };
  enum hipMemcpyKind { hipMemcpyHostToDevice };
  enum { hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder };
  enum { hipFilterModePoint, hipFilterModeLinear };
  enum { hipReadModeElementType, hipReadModeNormalizedFloat };
  enum { hipResourceTypeArray, hipResourceTypeMipmappedArray, hipResourceTypeLinear, hipResourceTypePitch2D };
  enum hipChannelFormatKind { hipChannelFormatKindSigned, hipChannelFormatKindUnsigned, hipChannelFormatKindFloat };
  struct hipChannelFormatDesc {
    int x, y, z, w;
    hipChannelFormatKind f;
  };
  struct hipTextureDesc {
    int addressMode[3];
    int filterMode, readMode, normalizedCoords;
  };
  struct hipResourceDesc {
    int resType;
    union Of {
      struct {
        void* devPtr;
        hipChannelFormatDesc desc;
        size_t sizeInBytes;
      } linear;
      struct {
        void* devPtr;
        hipChannelFormatDesc desc;
        size_t width, height, pitchInBytes;
      } pitch2D;
    } res;
  };
  inline hipError_t hipMalloc(void** p, size_t n) {
    *p = malloc(n);
    return hipSuccess;
  }
  inline hipError_t hipFree(void* p) {
    free(p);
    return hipSuccess;
  }
  inline hipError_t hipMemcpy(void* to, const void* from, size_t n, hipMemcpyKind) {
    memcpy(to, from, n);
    return hipSuccess;
  }
)cpp";

constexpr const char* kProgram = R"cpp(
  int failures = 0;
  void Expect(float found, float expected, const char* what) {
    if (fabsf(found - expected) < 1e-5f) return;
    printf("%s: %g, not %g\n", what, found, expected);
    ++failures;
  }
  struct Color {
    float x, y;
  };
  int main() {
    float data[2][4] = {{1, 2, 4, -9}, {10, 20, 40, -9}};  // three texels a row, one of padding
    hipResourceDesc plane;
    memset(&plane, 0, sizeof(plane));
    plane.resType = hipResourceTypePitch2D;
    plane.res.pitch2D = {data, {32, 0, 0, 0, hipChannelFormatKindFloat}, 3, 2, 16};
    hipTextureDesc how = {{hipAddressModeClamp, hipAddressModeClamp, 0}, hipFilterModePoint, hipReadModeElementType, 0};
    hipTextureObject_t t;
    if (portolan::create_texture_object(&t, &plane, &how, nullptr) != hipSuccess) return 1;
    Expect(portolan::tex2D<float>(t, 1.9f, 1.0f), 20, "nearest");
    Expect(portolan::tex2D<float>(t, 7.0f, -3.0f), 4, "clamped");
    portolan::destroy_texture_object(t);
    how.filterMode = hipFilterModeLinear;
    portolan::create_texture_object(&t, &plane, &how, nullptr);
    Expect(portolan::tex2D<float>(t, 1.5f, 0.5f), 2, "center of a texel");
    Expect(portolan::tex2D<float>(t, 1.0f, 0.5f), 1.5f, "half way");
    Expect(portolan::tex2D<float>(t, 1.0f, 1.0f), 8.25f, "between four");
    Expect(portolan::tex2D<float>(t, 0.0f, 0.5f), 1, "linear, clamped");
    portolan::destroy_texture_object(t);
    how.addressMode[0] = hipAddressModeBorder;
    portolan::create_texture_object(&t, &plane, &how, nullptr);
    Expect(portolan::tex2D<float>(t, 0.0f, 0.5f), 0.5f, "half of it outside the border");
    Expect(portolan::tex2D<float>(t, -2.0f, 0.5f), 0, "outside the border");
    portolan::destroy_texture_object(t);
    how = {{hipAddressModeMirror, hipAddressModeMirror, 0}, hipFilterModePoint, hipReadModeElementType, 1};
    portolan::create_texture_object(&t, &plane, &how, nullptr);
    Expect(portolan::tex2D<float>(t, 0.5f / 3, 0.25f), 1, "normalized");
    Expect(portolan::tex2D<float>(t, -0.5f / 3, 0.25f), 1, "mirrored at 0");
    Expect(portolan::tex2D<float>(t, -1.5f / 3, 0.25f), 2, "mirrored");
    Expect(portolan::tex2D<float>(t, 1 + 0.5f / 3, 1.25f), 40, "mirrored at 1");
    Expect(portolan::tex2D<float>(t, 2 + 0.5f / 3, 0.25f), 1, "mirrored twice");
    portolan::destroy_texture_object(t);
    how.addressMode[0] = hipAddressModeWrap;
    portolan::create_texture_object(&t, &plane, &how, nullptr);
    Expect(portolan::tex2D<float>(t, 1 + 1.5f / 3, 0.25f), 2, "wrapped");
    Expect(portolan::tex2D<float>(t, -0.5f / 3, 0.25f), 4, "wrapped below 0");
    portolan::destroy_texture_object(t);

    unsigned char bytes[6] = {0, 255, 51, 102, 153, 204};
    hipResourceDesc line;
    memset(&line, 0, sizeof(line));
    line.resType = hipResourceTypeLinear;
    line.res.linear = {bytes, {8, 8, 0, 0, hipChannelFormatKindUnsigned}, 6};
    how = {{hipAddressModeClamp, hipAddressModeClamp, 0}, hipFilterModePoint, hipReadModeNormalizedFloat, 0};
    portolan::create_texture_object(&t, &line, &how, nullptr);
    Expect(portolan::tex1Dfetch<Color>(t, 0).y, 1, "a channel as a float");
    Expect(portolan::tex1Dfetch<Color>(t, 2).x, 0.6f, "another texel");
    Expect(portolan::tex1Dfetch<Color>(t, 3).x, 0, "behind the last");
    how.filterMode = hipFilterModeLinear;
    portolan::destroy_texture_object(t);
    portolan::create_texture_object(&t, &line, &how, nullptr);
    Color between;
    portolan::tex1D(&between, t, 1.0f);
    Expect(between.y, 0.7f, "filtered channels");
    portolan::destroy_texture_object(t);

    line.resType = hipResourceTypeArray;
    Expect(portolan::create_texture_object(&t, &line, &how, nullptr), hipErrorNotSupported, "an array");
    return failures;
  }
)cpp";

TEST(SoftwareTextures, SampleAsTheGuideSays) {
  const TemporaryFolder folder;
  const std::string program = folder.path() + "/t";
  std::ofstream(program + ".cc") << kRuntime << CompatPartsText({"texture"}) << kProgram;
  const ProcessResult compiled =
      RunProcess({"c++", "-std=c++17", "-o", program, program + ".cc"}, std::chrono::seconds(60));
  ASSERT_TRUE(compiled.Succeeded()) << compiled.output;
  const ProcessResult run = RunProcess({program}, std::chrono::seconds(10));
  EXPECT_TRUE(run.Succeeded()) << run.output;
}

}  // namespace
}  // namespace portolan
