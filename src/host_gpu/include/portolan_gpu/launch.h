#pragma once

// kernel<<<grid, block, shared, stream>>>(arguments) becomes
// PORTOLAN_GPU_LAUNCH((kernel), (grid, block, shared, stream))(arguments).

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "portolan_gpu/core.h"

struct PortolanStream;
struct __half;
struct __nv_bfloat16;

// Reads of a kernel's arguments are no accesses of the kernel's.
#define PORTOLAN_GPU_UNSEEN __attribute__((no_sanitize("thread")))

namespace portolan::gpu {

int SetLastError(int error);

struct Configuration {
  Configuration(dim3 in_grid, dim3 in_block, size_t in_shared = 0, PortolanStream* = nullptr)
      : grid(in_grid), block(in_block), shared(in_shared) {}
  dim3 grid;
  dim3 block;
  size_t shared;
  bool cooperative = false;
};

template <typename T>
constexpr char TypeLetter() {
  if constexpr (std::is_same_v<T, float>) return 'f';
  if constexpr (std::is_same_v<T, double>) return 'd';
  if constexpr (std::is_same_v<T, __half>) return 'h';
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return 'b';
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return 'i';
  if constexpr (std::is_class_v<T>) {
    if constexpr (requires(T v) { v.x; }) {
      using X = std::remove_cvref_t<decltype(std::declval<T>().x)>;
      if constexpr (std::is_same_v<X, float>) return sizeof(T) % 4 == 0 ? 'f' : '?';
      if constexpr (std::is_same_v<X, double>) return sizeof(T) % 8 == 0 ? 'd' : '?';
    }
  }
  return '?';
}

template <typename T>
constexpr int ElementBytes() {
  if constexpr (std::is_void_v<T> || std::is_function_v<T>) {
    return 1;
  } else if constexpr (requires { sizeof(T); }) {
    constexpr char kLetter = TypeLetter<T>();
    return kLetter == 'f' ? 4 : kLetter == 'd' ? 8 : static_cast<int>(sizeof(T));
  } else {
    return 1;
  }
}

template <typename T>
constexpr char PointeeLetter() {
  if constexpr (requires { sizeof(T); } && !std::is_void_v<T> && !std::is_function_v<T>) {
    return TypeLetter<std::remove_cv_t<T>>();
  } else {
    return '?';
  }
}

template <typename T>
void AddPointer(const T& value, std::vector<PointerArgument>* pointers, bool* others) {
  using Value = std::remove_cvref_t<T>;
  if constexpr (std::is_pointer_v<Value>) {
    using Pointee = std::remove_pointer_t<Value>;
    pointers->push_back({reinterpret_cast<const void*>(const_cast<const std::remove_cv_t<Pointee>*>(value)),
                         PointeeLetter<Pointee>(), !std::is_const_v<Pointee>,
                         ElementBytes<std::remove_cv_t<Pointee>>()});
    if constexpr (std::is_pointer_v<std::remove_cv_t<Pointee>>) *others = true;
  } else if constexpr (!std::is_arithmetic_v<Value> && !std::is_enum_v<Value>) {
    *others = true;
  }
}

template <typename Body, typename... Values>
void RunBody(const char* kernel, const char* file, int line, const Configuration& configuration, Body& body,
             const Values&... values) {
  std::vector<PointerArgument> pointers;
  bool others = false;
  (AddPointer(values, &pointers, &others), ...);
  LaunchSpec launch{};
  launch.kernel = kernel;
  launch.file = file;
  launch.line = line;
  launch.grid = configuration.grid;
  launch.block = configuration.block;
  launch.dynamic_shared_bytes = configuration.shared;
  launch.cooperative = configuration.cooperative;
  launch.body = [](void* self) PORTOLAN_GPU_UNSEEN { (*static_cast<Body*>(self))(); };
  launch.argument = &body;
  launch.pointers = pointers.data();
  launch.pointer_count = static_cast<int>(pointers.size());
  launch.other_pointers = others;
  SetLastError(Run(launch));
}

// A kernel whose parameters are known: arguments convert to them at the call, once, as in C++. `Call` names the kernel
// as written, for launches that leave arguments to their defaults.
template <typename Call, typename... Parameters>
struct Launcher {
  const char* kernel;
  const char* file;
  int line;
  Configuration configuration;
  void (*function)(Parameters...);
  Call call;

  void operator()(Parameters... values) const {
    auto body = [&]() PORTOLAN_GPU_UNSEEN { function(values...); };
    RunBody(kernel, file, line, configuration, body, values...);
  }
  template <typename... Values>
  requires(sizeof...(Values) < sizeof...(Parameters)) void operator()(Values... values) const {
    auto body = [&]() PORTOLAN_GPU_UNSEEN { call(values...); };
    RunBody(kernel, file, line, configuration, body, values...);
  }
};

// A kernel template whose arguments are deduced from the call.
template <typename Function>
struct DeducingLauncher {
  const char* kernel;
  const char* file;
  int line;
  Configuration configuration;
  Function function;

  template <typename... Values>
  void operator()(Values... values) const {
    auto body = [&]() PORTOLAN_GPU_UNSEEN { function(values...); };
    RunBody(kernel, file, line, configuration, body, values...);
  }
};

template <typename Tag, typename Call, typename... Parameters>
Launcher<Call, Parameters...> MakeLauncher(Tag, const char* kernel, const char* file, int line,
                                           Configuration configuration, Call call, void (*function)(Parameters...)) {
  return {kernel, file, line, configuration, function, call};
}
template <typename Function>
DeducingLauncher<Function> MakeDeducingLauncher(const char* kernel, const char* file, int line,
                                                Configuration configuration, Function function) {
  return {kernel, file, line, configuration, function};
}

// A kernel whose address is taken, as cudaLaunchKernel does: arguments come as pointers.
template <typename... Parameters, size_t... kIndex>
void LaunchPacked(void (*function)(Parameters...), void** arguments, const Configuration& configuration,
                  const char* kernel, const char* file, int line, std::index_sequence<kIndex...>) {
  const auto call = [&](auto&... values) { function(values...); };
  Launcher<decltype(call), Parameters...>{kernel, file, line, configuration, function, call}(
      *static_cast<std::remove_reference_t<Parameters>*>(arguments[kIndex])...);
}

}  // namespace portolan::gpu

#define PORTOLAN_GPU_NAME(...) __VA_ARGS__
#define PORTOLAN_GPU_TEXT(...) #__VA_ARGS__
#define PORTOLAN_GPU_LAUNCH(KERNEL, CONFIGURATION)                                                                \
  [&](auto portolan_tag, ::portolan::gpu::Configuration portolan_configuration) {                                 \
    const auto portolan_call = [&](auto&... portolan_value) { PORTOLAN_GPU_NAME KERNEL(portolan_value...); };     \
    if constexpr (requires {                                                                                      \
                    ::portolan::gpu::MakeLauncher(portolan_tag, "", "", 0, portolan_configuration, portolan_call, \
                                                  PORTOLAN_GPU_NAME KERNEL);                                      \
                  }) {                                                                                            \
      return ::portolan::gpu::MakeLauncher(portolan_tag, PORTOLAN_GPU_TEXT KERNEL, __FILE__, __LINE__,            \
                                           portolan_configuration, portolan_call, PORTOLAN_GPU_NAME KERNEL);      \
    } else {                                                                                                      \
      return ::portolan::gpu::MakeDeducingLauncher(PORTOLAN_GPU_TEXT KERNEL, __FILE__, __LINE__,                  \
                                                   portolan_configuration, portolan_call);                        \
    }                                                                                                             \
  }(0, ::portolan::gpu::Configuration CONFIGURATION)
