#pragma once

// Texture and surface objects, texture references, and the fetches of kernels.

#include "portolan_gpu/texture.h"

inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                           const cudaTextureDesc* how, const cudaResourceViewDesc*) {
  portolan::gpu::Texture t;
  if (resource->resType == cudaResourceTypeArray) {
    t = portolan::gpu::TextureOfArray(resource->res.array.array);
  } else if (resource->resType == cudaResourceTypeLinear) {
    const auto& linear = resource->res.linear;
    t.data = static_cast<const char*>(linear.devPtr);
    t.desc = linear.desc;
    const auto bytes = static_cast<size_t>(portolan::gpu::ElementBytes(linear.desc));
    if (bytes == 0) return cudaErrorInvalidValue;
    t.width = linear.sizeInBytes / bytes;
  } else if (resource->resType == cudaResourceTypePitch2D) {
    const auto& pitched = resource->res.pitch2D;
    t.data = static_cast<const char*>(pitched.devPtr);
    t.desc = pitched.desc;
    t.width = pitched.width;
    t.height = pitched.height;
    t.pitch = pitched.pitchInBytes;
  } else {
    portolan::gpu::Unsupported("mipmapped textures");
  }
  t.how = *how;
  *object = reinterpret_cast<cudaTextureObject_t>(new portolan::gpu::Texture(t));
  return cudaSuccess;
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  delete reinterpret_cast<portolan::gpu::Texture*>(object);
  return cudaSuccess;
}
inline cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  if (resource->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
  *object = reinterpret_cast<cudaSurfaceObject_t>(resource->res.array.array);
  return cudaSuccess;
}
inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t) { return cudaSuccess; }

// Texture references of the time before CUDA 12.
struct textureReference {
  int normalized = 0;
  cudaTextureFilterMode filterMode = cudaFilterModePoint;
  cudaTextureAddressMode addressMode[3] = {cudaAddressModeClamp, cudaAddressModeClamp, cudaAddressModeClamp};
  cudaChannelFormatDesc channelDesc{};
  portolan::gpu::Texture bound;
};
template <typename T, int kKind = cudaTextureType1D, cudaTextureReadMode kMode = cudaReadModeElementType>
struct texture : textureReference {
  explicit texture(int is_normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                   cudaTextureAddressMode address = cudaAddressModeClamp) {
    normalized = is_normalized;
    filterMode = filter;
    for (cudaTextureAddressMode& mode : addressMode) mode = address;
    channelDesc = cudaCreateChannelDesc<T>();
  }
  // The settings may change after the binding.
  const portolan::gpu::Texture& Now() {
    bound.how.normalizedCoords = normalized;
    bound.how.filterMode = filterMode;
    bound.how.readMode = kMode;
    for (int d = 0; d < 3; ++d) bound.how.addressMode[d] = addressMode[d];
    return bound;
  }
};
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture(size_t* offset, texture<T, kKind, kMode>& t, const void* pointer,
                            const cudaChannelFormatDesc& desc, size_t bytes = UINT32_MAX) {
  if (offset != nullptr) *offset = 0;
  t.bound.data = static_cast<const char*>(pointer);
  t.bound.desc = desc;
  t.bound.width = bytes / static_cast<size_t>(portolan::gpu::ElementBytes(desc));
  return cudaSuccess;
}
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture(size_t* offset, texture<T, kKind, kMode>& t, const void* pointer,
                            size_t bytes = UINT32_MAX) {
  return cudaBindTexture(offset, t, pointer, t.channelDesc, bytes);
}
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture2D(size_t* offset, texture<T, kKind, kMode>& t, const void* pointer,
                              const cudaChannelFormatDesc& desc, size_t width, size_t height, size_t pitch) {
  if (offset != nullptr) *offset = 0;
  t.bound = {};
  t.bound.data = static_cast<const char*>(pointer);
  t.bound.desc = desc;
  t.bound.width = width;
  t.bound.height = height;
  t.bound.pitch = pitch;
  return cudaSuccess;
}
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture2D(size_t* offset, texture<T, kKind, kMode>& t, const void* pointer, size_t width,
                              size_t height, size_t pitch) {
  return cudaBindTexture2D(offset, t, pointer, t.channelDesc, width, height, pitch);
}
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaBindTextureToArray(texture<T, kKind, kMode>& t, cudaArray_const_t array) {
  t.bound = portolan::gpu::TextureOfArray(array);
  return cudaSuccess;
}
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaBindTextureToArray(texture<T, kKind, kMode>& t, cudaArray_const_t array, const cudaChannelFormatDesc&) {
  return cudaBindTextureToArray(t, array);
}
template <typename T, int kKind, cudaTextureReadMode kMode>
cudaError_t cudaUnbindTexture(texture<T, kKind, kMode>& t) {
  t.bound = {};
  return cudaSuccess;
}

namespace portolan::gpu {
// What a fetch from a reference returns.
template <int kCount>
struct Floats {
  using type = float4;
};
template <>
struct Floats<1> {
  using type = float;
};
template <>
struct Floats<2> {
  using type = float2;
};
template <typename T, cudaTextureReadMode kMode>
using Fetched = std::conditional_t<kMode == cudaReadModeElementType, T, typename Floats<kComponents<T>>::type>;
template <typename T>
T FetchLinear(const Texture& t, long i) {
  if (i < 0 || static_cast<size_t>(i) >= t.width) return T{};
  return Stored<T>(t, static_cast<size_t>(i) * static_cast<size_t>(ElementBytes(t.desc)));
}
template <typename T, typename... C>
T SampleAt(const Texture& t, long layer, C... coordinate) {
  const float coordinates[] = {static_cast<float>(coordinate)...};
  return Sample<T>(t, sizeof...(C), coordinates, layer);
}
}  // namespace portolan::gpu

template <typename T>
T tex1Dfetch(cudaTextureObject_t t, int i) {
  return portolan::gpu::FetchLinear<T>(portolan::gpu::TextureOf(t), i);
}
template <typename T, int kKind, cudaTextureReadMode kMode>
portolan::gpu::Fetched<T, kMode> tex1Dfetch(texture<T, kKind, kMode>& t, int i) {
  return portolan::gpu::FetchLinear<portolan::gpu::Fetched<T, kMode>>(t.Now(), i);
}
#define PORTOLAN_TEXTURE(NAME, PARAMETERS, ...)                                                      \
  template <typename T>                                                                              \
  T NAME(cudaTextureObject_t t, PORTOLAN_GPU_NAME PARAMETERS) {                                      \
    return portolan::gpu::SampleAt<T>(portolan::gpu::TextureOf(t), __VA_ARGS__);                     \
  }                                                                                                  \
  template <typename T>                                                                              \
  void NAME(T* result, cudaTextureObject_t t, PORTOLAN_GPU_NAME PARAMETERS) {                        \
    *result = portolan::gpu::SampleAt<T>(portolan::gpu::TextureOf(t), __VA_ARGS__);                  \
  }                                                                                                  \
  template <typename T, int kKind, cudaTextureReadMode kMode>                                        \
  portolan::gpu::Fetched<T, kMode> NAME(texture<T, kKind, kMode>& t, PORTOLAN_GPU_NAME PARAMETERS) { \
    return portolan::gpu::SampleAt<portolan::gpu::Fetched<T, kMode>>(t.Now(), __VA_ARGS__);          \
  }
PORTOLAN_TEXTURE(tex1D, (float x), 0, x)
PORTOLAN_TEXTURE(tex2D, (float x, float y), 0, x, y)
PORTOLAN_TEXTURE(tex3D, (float x, float y, float z), 0, x, y, z)
PORTOLAN_TEXTURE(tex1DLayered, (float x, int layer), layer, x)
PORTOLAN_TEXTURE(tex2DLayered, (float x, float y, int layer), layer, x, y)
PORTOLAN_TEXTURE(tex2DLod, (float x, float y, float), 0, x, y)
#undef PORTOLAN_TEXTURE

namespace portolan::gpu {
// The element of a surface; nullptr outside. `x_bytes` counts bytes, as surf2Dread does.
inline char* SurfacePlace(cudaSurfaceObject_t surface, int x_bytes, int y, int z, size_t bytes) {
  const auto* array = reinterpret_cast<const cudaArray*>(surface);
  const auto height = static_cast<int>(array->height == 0 ? 1 : array->height);
  const auto depth = static_cast<int>(array->depth == 0 ? 1 : array->depth);
  if (x_bytes < 0 || y < 0 || z < 0 || y >= height || z >= depth ||
      static_cast<size_t>(x_bytes) + bytes > ArrayPitch(array)) {
    return nullptr;
  }
  return ArrayPlace(array, static_cast<size_t>(x_bytes), static_cast<size_t>(y), static_cast<size_t>(z));
}
}  // namespace portolan::gpu
#define PORTOLAN_SURFACE(DIMENSION, PARAMETERS, ...)                                              \
  template <typename T>                                                                           \
  T surf##DIMENSION##read(cudaSurfaceObject_t s, PORTOLAN_GPU_NAME PARAMETERS,                    \
                          cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) {                       \
    const char* place = portolan::gpu::SurfacePlace(s, __VA_ARGS__, sizeof(T));                   \
    return place == nullptr ? T{} : *reinterpret_cast<const T*>(place);                           \
  }                                                                                               \
  template <typename T>                                                                           \
  void surf##DIMENSION##read(T* result, cudaSurfaceObject_t s, PORTOLAN_GPU_NAME PARAMETERS,      \
                             cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) {                    \
    const char* place = portolan::gpu::SurfacePlace(s, __VA_ARGS__, sizeof(T));                   \
    *result = place == nullptr ? T{} : *reinterpret_cast<const T*>(place);                        \
  }                                                                                               \
  template <typename T>                                                                           \
  void surf##DIMENSION##write(T value, cudaSurfaceObject_t s, PORTOLAN_GPU_NAME PARAMETERS,       \
                              cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) {                   \
    if (char* place = portolan::gpu::SurfacePlace(s, __VA_ARGS__, sizeof(T)); place != nullptr) { \
      *reinterpret_cast<T*>(place) = value;                                                       \
    }                                                                                             \
  }
PORTOLAN_SURFACE(2D, (int x, int y), x, y, 0)
PORTOLAN_SURFACE(3D, (int x, int y, int z), x, y, z)
#undef PORTOLAN_SURFACE
