#include "kernels/gemm/cpu_bf16.h"

#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <map>
#include <memory>

#include "base/check.h"
#include "base/cpu_clones.h"
#include "kernels/number_formats.h"

namespace portolan::kernels::cpu {
namespace {

void Check(dnnl_status_t status) { PORTOLAN_CHECK(status == dnnl_success, "oneDNN refused a bf16 product"); }

PORTOLAN_CPU_CLONES void ConvertRow(int64_t count, const float* __restrict from, uint16_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = FloatToBf16(from[i]);
}

uint16_t* Converted(int64_t rows, int64_t columns, int64_t stride, const float* values,
                    std::unique_ptr<uint16_t[]>* memory, int64_t* held) {
  if (rows * columns > *held) {
    memory->reset(new uint16_t[static_cast<size_t>(rows * columns)]);
    *held = rows * columns;
  }
  uint16_t* to = memory->get();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) ConvertRow(columns, values + r * stride, to + r * columns);
  return to;
}

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    Check(dnnl_engine_create(&made, dnnl_cpu, 0));
    return made;
  }();
  return engine;
}

// A product of one shape, made once a thread.
struct Product {
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t a = nullptr, b = nullptr, d = nullptr;
};

// m, n, k, then the strides of A, B and D; a stride of rows of D is never 1 for the others' sake.
using Shape = std::array<int64_t, 8>;

const Product& ProductOf(const Shape& shape) {
  static thread_local std::map<Shape, Product> products;
  const auto [place, fresh] = products.try_emplace(shape);
  Product& product = place->second;
  if (!fresh) return product;
  const auto& [m, n, k, a_row, a_column, b_row, b_column, ldd] = shape;
  const auto describe = [](dnnl_data_type_t type, int64_t rows, int64_t columns, int64_t row, int64_t column) {
    dnnl_memory_desc_t description;
    const dnnl_dims_t extents = {rows, columns}, strides = {row, column};
    Check(dnnl_memory_desc_init_by_strides(&description, 2, extents, type, strides));
    return description;
  };
  const dnnl_memory_desc_t a = describe(dnnl_bf16, m, k, a_row, a_column),
                           b = describe(dnnl_bf16, k, n, b_row, b_column), d = describe(dnnl_f32, m, n, ldd, 1);
  dnnl_matmul_desc_t matmul;
  Check(dnnl_matmul_desc_init(&matmul, &a, &b, nullptr, &d));
  dnnl_primitive_desc_t description = nullptr;
  Check(dnnl_primitive_desc_create(&description, &matmul, nullptr, Engine(), nullptr));
  Check(dnnl_primitive_create(&product.primitive, description));
  Check(dnnl_primitive_desc_destroy(description));
  Check(dnnl_memory_create(&product.a, &a, Engine(), nullptr));
  Check(dnnl_memory_create(&product.b, &b, Engine(), nullptr));
  Check(dnnl_memory_create(&product.d, &d, Engine(), nullptr));
  return product;
}

dnnl_stream_t Stream() {
  static thread_local const dnnl_stream_t stream = [] {
    dnnl_stream_t made = nullptr;
    Check(dnnl_stream_create(&made, Engine(), dnnl_stream_default_flags));
    return made;
  }();
  return stream;
}

}  // namespace

bool HasBf16Products() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
#else
  return false;
#endif
}

Bf16Operands::Bf16Operands(const GemmProblem& problem, const float* a, const float* b)
    : a_transposed_(problem.a_transposed == Transpose::kYes),
      b_transposed_(problem.b_transposed == Transpose::kYes),
      a_columns_(a_transposed_ ? problem.m : problem.k),
      b_columns_(b_transposed_ ? problem.k : problem.n) {
  static thread_local std::unique_ptr<uint16_t[]> left, right;
  static thread_local int64_t left_held = 0, right_held = 0;
  a_ = Converted(a_transposed_ ? problem.k : problem.m, a_columns_, problem.lda, a, &left, &left_held);
  b_ = Converted(b_transposed_ ? problem.n : problem.k, b_columns_, problem.ldb, b, &right, &right_held);
}

void Bf16Operands::Multiply(int64_t i, int64_t j, int64_t k, int64_t m, int64_t n, int64_t depth, float* d,
                            int64_t ldd) const {
  const Product& product = ProductOf({m, n, depth, a_transposed_ ? 1 : a_columns_, a_transposed_ ? a_columns_ : 1,
                                      b_transposed_ ? 1 : b_columns_, b_transposed_ ? b_columns_ : 1, ldd});
  Check(dnnl_memory_set_data_handle(product.a, a_ + (a_transposed_ ? k * a_columns_ + i : i * a_columns_ + k)));
  Check(dnnl_memory_set_data_handle(product.b, b_ + (b_transposed_ ? j * b_columns_ + k : k * b_columns_ + j)));
  Check(dnnl_memory_set_data_handle(product.d, d));
  const dnnl_exec_arg_t arguments[] = {
      {DNNL_ARG_SRC, product.a}, {DNNL_ARG_WEIGHTS, product.b}, {DNNL_ARG_DST, product.d}};
  Check(dnnl_primitive_execute(product.primitive, Stream(), 3, arguments));
}

}  // namespace portolan::kernels::cpu
