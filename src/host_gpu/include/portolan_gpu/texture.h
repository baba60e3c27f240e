#pragma once

// Arrays, and how textures read them. An array is device memory without gaps, row by row; a texture reads it, or plain
// or pitched device memory, with the hardware's rules: addresses outside are clamped, wrapped, mirrored or 0, and the
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
