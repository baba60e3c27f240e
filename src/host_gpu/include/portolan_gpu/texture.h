#pragma once

// Textures, surfaces and arrays. An array is device memory without gaps, row by row; a texture reads it, or plain or
// pitched device memory, with the hardware's rules: addresses outside are clamped, wrapped, mirrored or 0, and the
// weights of a linear filter have 8 bits behind the point (CUDA C++ Programming Guide, "Texture Fetching").

#include <cmath>
#include <type_traits>

#include "portolan_gpu/runtime_api.h"

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits
  cudaChannelFormatKind f;
};
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
};
enum {
  cudaArrayDefault = 0,
  cudaArrayLayered = 1,
  cudaArraySurfaceLoadStore = 2,
  cudaArrayCubemap = 4,
  cudaArrayTextureGather = 8
};
enum { cudaTextureType1D = 1, cudaTextureType2D = 2, cudaTextureType3D = 3, cudaTextureType2DLayered = 0xf2 };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t x, size_t y) { return {p, pitch, x, y}; }

struct cudaArray {
  cudaChannelFormatDesc desc;
  size_t width, height, depth;  // elements; 0 for a dimension that there is not
  void* data;
};
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;

struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};
struct cudaResourceViewDesc;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;

namespace portolan::gpu {

struct Texture {
  const char* data = nullptr;
  cudaChannelFormatDesc desc{};
  size_t width = 0, height = 0, depth = 0, pitch = 0;
  cudaTextureDesc how{};
};

template <typename T, bool kClass = std::is_class_v<T>>
struct First {
  using type = std::remove_cv_t<T>;
};
template <typename T>
struct First<T, true> {
  using type = std::remove_cv_t<decltype(T::x)>;
};
template <typename T>
using FirstOf = typename First<T>::type;
template <typename T>
constexpr int kComponents = sizeof(T) / sizeof(FirstOf<T>);

inline int ElementBytes(const cudaChannelFormatDesc& d) { return (d.x + d.y + d.z + d.w) / 8; }

// Component `c` of the element at `p`; 0 for those that the format does not have.
PORTOLAN_INLINE double Component(const char* p, const cudaChannelFormatDesc& d, int c, bool normalized) {
  const int bits[4] = {d.x, d.y, d.z, d.w};
  if (bits[c] == 0) return 0;
  p += c * d.x / 8;
  switch (d.f) {
    case cudaChannelFormatKindFloat:
      if (d.x == 16) {
        _Float16 half;
        __builtin_memcpy(&half, p, 2);
        return static_cast<double>(half);
      }
      return *reinterpret_cast<const float*>(p);
    case cudaChannelFormatKindUnsigned: {
      const double v = d.x == 8    ? *reinterpret_cast<const unsigned char*>(p)
                       : d.x == 16 ? *reinterpret_cast<const unsigned short*>(p)
                                   : *reinterpret_cast<const unsigned*>(p);
      return normalized ? v / (d.x == 8 ? 255.0 : 65535.0) : v;
    }
    default: {
      const double v = d.x == 8    ? *reinterpret_cast<const signed char*>(p)
                       : d.x == 16 ? *reinterpret_cast<const short*>(p)
                                   : *reinterpret_cast<const int*>(p);
      return normalized ? std::fmax(v / (d.x == 8 ? 127.0 : 32767.0), -1.0) : v;
    }
  }
}

// The index that address `i` of `n` elements means; -1: the border's colour. Wrapping and mirroring need normalized
// coordinates; with others they clamp.
inline long AddressOf(long i, long n, cudaTextureAddressMode mode, bool normalized) {
  if (i >= 0 && i < n) return i;
  if (mode == cudaAddressModeBorder) return -1;
  if (normalized && mode == cudaAddressModeWrap) return ((i % n) + n) % n;
  if (normalized && mode == cudaAddressModeMirror) {
    const long at = ((i % (2 * n)) + 2 * n) % (2 * n);
    return at < n ? at : 2 * n - 1 - at;
  }
  return i < 0 ? 0 : n - 1;
}

template <typename T>
T FromComponents(const double* values) {
  T result{};
  auto* out = reinterpret_cast<FirstOf<T>*>(&result);
  for (int c = 0; c < kComponents<T>; ++c) out[c] = static_cast<FirstOf<T>>(values[c]);
  return result;
}

// An element as it is stored.
template <typename T>
PORTOLAN_INLINE T Stored(const Texture& t, size_t element_offset) {
  if (t.how.readMode == cudaReadModeElementType && static_cast<size_t>(ElementBytes(t.desc)) == sizeof(T)) {
    return *reinterpret_cast<const T*>(t.data + element_offset);
  }
  double values[4];
  for (int c = 0; c < 4; ++c) {
    values[c] = Component(t.data + element_offset, t.desc, c, t.how.readMode == cudaReadModeNormalizedFloat);
  }
  return FromComponents<T>(values);
}

template <typename T>
T Sample(const Texture& t, int dimensions, const float* coordinates, long layer) {
  const long size[3] = {static_cast<long>(t.width), static_cast<long>(t.height), static_cast<long>(t.depth)};
  const bool normalized = t.how.normalizedCoords != 0;
  const bool linear = t.how.filterMode == cudaFilterModeLinear;
  const auto bytes = static_cast<size_t>(ElementBytes(t.desc));
  long low[3] = {0, 0, 0};
  double weight[3] = {0, 0, 0};
  for (int d = 0; d < dimensions; ++d) {
    double x = coordinates[d] * (normalized ? static_cast<double>(size[d]) : 1.0);
    if (linear) {
      x -= 0.5;
      weight[d] = std::floor((x - std::floor(x)) * 256 + 0.5) / 256;
    }
    low[d] = static_cast<long>(std::floor(std::fmin(std::fmax(x, -1e15), 1e15)));
  }
  const auto at = [&](const long* index, double* values) {
    size_t offset = 0;
    for (int d = 0; d < dimensions; ++d) {
      const long i = AddressOf(index[d], size[d], t.how.addressMode[d], normalized);
      if (i < 0) {
        for (int c = 0; c < 4; ++c) values[c] = t.how.borderColor[c];
        return;
      }
      offset += static_cast<size_t>(i) * (d == 0 ? bytes : d == 1 ? t.pitch : t.pitch * t.height);
    }
    offset += static_cast<size_t>(layer) * t.pitch * (dimensions < 2 || t.height == 0 ? 1 : t.height);
    for (int c = 0; c < 4; ++c) {
      values[c] = Component(t.data + offset, t.desc, c, t.how.readMode == cudaReadModeNormalizedFloat);
    }
  };
  double values[4] = {0, 0, 0, 0};
  if (!linear) {
    at(low, values);
    return FromComponents<T>(values);
  }
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    long index[3];
    double share = 1;
    for (int d = 0; d < dimensions; ++d) {
      const int upper = (corner >> d) & 1;
      index[d] = low[d] + upper;
      share *= upper == 1 ? weight[d] : 1 - weight[d];
    }
    if (share == 0) continue;
    double part[4];
    at(index, part);
    for (int c = 0; c < 4; ++c) values[c] += share * part[c];
  }
  return FromComponents<T>(values);
}

inline const Texture& TextureOf(cudaTextureObject_t object) { return *reinterpret_cast<const Texture*>(object); }
inline Texture TextureOfArray(const cudaArray* array) {
  Texture t;
  t.data = static_cast<const char*>(array->data);
  t.desc = array->desc;
  t.width = array->width;
  t.height = array->height;
  t.depth = array->depth;
  t.pitch = array->width * static_cast<size_t>(ElementBytes(array->desc));
  return t;
}

}  // namespace portolan::gpu

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
template <typename T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Component = portolan::gpu::FirstOf<T>;
  constexpr int kBits = 8 * sizeof(Component);
  constexpr int kCount = portolan::gpu::kComponents<T>;
  const cudaChannelFormatKind kind =
      std::is_integral_v<Component>
          ? (std::is_signed_v<Component> ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned)
          : cudaChannelFormatKindFloat;
  return {kBits, kCount > 1 ? kBits : 0, kCount > 2 ? kBits : 0, kCount > 3 ? kBits : 0, kind};
}

inline cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                                     unsigned = 0) {
  auto* made = new cudaArray{*desc, extent.width, extent.height, extent.depth, nullptr};
  const size_t elements =
      extent.width * (extent.height == 0 ? 1 : extent.height) * (extent.depth == 0 ? 1 : extent.depth);
  *array = made;
  return cudaMalloc(&made->data, elements * static_cast<size_t>(portolan::gpu::ElementBytes(*desc)));
}
inline cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width,
                                   size_t height = 0, unsigned flags = 0) {
  return cudaMalloc3DArray(array, desc, {width, height, 0}, flags);
}
inline cudaError_t cudaFreeArray(cudaArray_t array) {
  if (array == nullptr) return cudaSuccess;
  const cudaError_t error = cudaFree(array->data);
  delete array;
  return error;
}

namespace portolan::gpu {
inline char* ArrayPlace(cudaArray_const_t array, size_t x_bytes, size_t y, size_t z = 0) {
  const size_t pitch = array->width * static_cast<size_t>(ElementBytes(array->desc));
  return static_cast<char*>(array->data) + x_bytes + pitch * (y + z * (array->height == 0 ? 1 : array->height));
}
inline size_t ArrayPitch(cudaArray_const_t array) {
  return array->width * static_cast<size_t>(ElementBytes(array->desc));
}
}  // namespace portolan::gpu

inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  return cudaMemcpy(portolan::gpu::ArrayPlace(to, x, y), from, bytes, kind);
}
inline cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                       cudaMemcpyKind kind) {
  return cudaMemcpy(to, portolan::gpu::ArrayPlace(from, x, y), bytes, kind);
}
inline cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                       size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2D(portolan::gpu::ArrayPlace(to, x, y), portolan::gpu::ArrayPitch(to), from, pitch, width, height,
                      kind);
}
inline cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2DToArray(to, x, y, from, pitch, width, height, kind);
}
inline cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                         size_t width, size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2D(to, pitch, portolan::gpu::ArrayPlace(from, x, y), portolan::gpu::ArrayPitch(from), width, height,
                      kind);
}

struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;  // elements where an array takes part, else bytes
  cudaMemcpyKind kind;
};
inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  const cudaArray* array = p->srcArray != nullptr ? p->srcArray : p->dstArray;
  const size_t unit = array == nullptr ? 1 : static_cast<size_t>(portolan::gpu::ElementBytes(array->desc));
  const auto place = [&](cudaArray_const_t a, const cudaPitchedPtr& pointer, const cudaPos& pos, size_t z) {
    return a != nullptr
               ? portolan::gpu::ArrayPlace(a, pos.x * unit, pos.y, pos.z + z)
               : static_cast<char*>(pointer.ptr) + pos.x + pointer.pitch * (pos.y + pointer.ysize * (pos.z + z));
  };
  const size_t to_pitch = p->dstArray != nullptr ? portolan::gpu::ArrayPitch(p->dstArray) : p->dstPtr.pitch;
  const size_t from_pitch = p->srcArray != nullptr ? portolan::gpu::ArrayPitch(p->srcArray) : p->srcPtr.pitch;
  for (size_t z = 0; z < p->extent.depth; ++z) {
    const cudaError_t error =
        cudaMemcpy2D(place(p->dstArray, p->dstPtr, p->dstPos, z), to_pitch, place(p->srcArray, p->srcPtr, p->srcPos, z),
                     from_pitch, p->extent.width * unit, p->extent.height, p->kind);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t = nullptr) { return cudaMemcpy3D(p); }
inline cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  *pointer = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
}
inline cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent extent) {
  for (size_t z = 0; z < extent.depth; ++z) {
    cudaMemset2D(static_cast<char*>(p.ptr) + z * p.pitch * p.ysize, p.pitch, value, extent.width, extent.height);
  }
  return cudaSuccess;
}

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
