#include "ops/all_ops.h"

#include <array>

namespace portolan {
namespace {

// clang-format off
constexpr std::array kOps = {
    OpInfo{"gemm", "2 M N K flops; A + B + D bytes", "definition of the product", "ops/gemm.h"},
    OpInfo{"batched_gemm", "batch x gemm", "definition of the product", "ops/gemm.h"},
    OpInfo{"grouped_gemm", "sum of gemm over the groups", "definition of the product", "ops/gemm.h"},
    OpInfo{"embedding_forward", "lookups (index + row) read, bags x row written", "arXiv 1906.00091", "ops/embedding.h"},
    OpInfo{"embedding_backward", "sort + bags x gradient + 2 unique (row + state) bytes", "arXiv 2206.01784; arXiv 1906.00091", "ops/embedding.h"},
    OpInfo{"dot_interaction", "D F (F - 1) flops; F D read, F (F - 1) / 2 + D written, a sample", "arXiv 1906.00091", "ops/interaction.h"},
    OpInfo{"low_rank_cross", "4 width rank flops a sample, and 3 + 1 tensors around the products", "arXiv 2008.13535", "ops/cross.h"},
    OpInfo{"attention", "2 pairs heads (qk_dim + v_dim) flops; backward 2.5x", "arXiv 2205.14135", "ops/attention.h"},
    OpInfo{"hstu_attention", "attention with SiLU in the place of softmax", "arXiv 2402.17152", "ops/attention.h"},
    OpInfo{"elementwise", "tensors read + tensors written", "every pointwise or normalising kernel", "ops/elementwise.h"},
    OpInfo{"dense_optimizer", "gradient + weight + state read, weight + state written", "arXiv 1412.6980; JMLR 12 (2011) 2121", "ops/optimizer.h"},
    OpInfo{"all_to_all", "(n - 1) / n x buffer sent", "nccl-tests, doc/PERFORMANCE.md", "ops/collective.h"},
    OpInfo{"all_reduce", "2 (n - 1) / n x buffer sent", "nccl-tests, doc/PERFORMANCE.md", "ops/collective.h"},
    OpInfo{"reduce_scatter", "(n - 1) / n x input sent", "nccl-tests, doc/PERFORMANCE.md", "ops/collective.h"},
    OpInfo{"all_gather", "(n - 1) / n x output sent", "nccl-tests, doc/PERFORMANCE.md", "ops/collective.h"},
    OpInfo{"broadcast", "buffer sent", "nccl-tests, doc/PERFORMANCE.md", "ops/collective.h"},
    OpInfo{"host_copy", "buffer over the host link", "definition of a copy", "ops/collective.h"},
};
// clang-format on

}  // namespace

std::span<const OpInfo> AllOps() { return kOps; }

}  // namespace portolan
