/* Kernel selection from C: which GEMM kernel to launch, with no measurement. Wraps select/selector.h; no logic of its
 * own. Thread-safe once created: any number of threads may ask one selector. best and rank allocate nothing. */
#ifndef PORTOLAN_SELECT_H
#define PORTOLAN_SELECT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct portolan_selector portolan_selector;

/* Row-major D[m,n] = A[m,k] B[k,n], batch times. Zero in batch, lda to ldd, usable_units and pointer_alignment_bytes
 * means 1, packed, all and 16. */
typedef struct {
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldc, ldd;
  const char* layout; /* "TN" (forward), "NN" (input gradient) or "NT" (weight gradient); NULL = "TN" */
  const char* dtype;  /* "bf16", "tf32", "fp8" ...; NULL = the dtype the selector was created for */
  int32_t usable_units;
  int32_t pointer_alignment_bytes;
  int32_t warm; /* not 0: the operands were just produced */
} portolan_gemm_problem;

typedef struct {
  int32_t index; /* of the kernel in the catalogue; -1 = none runs the problem */
  double seconds;
  double compute_s, memory_s, launch_s; /* parts of seconds */
  double confidence;
} portolan_kernel_choice;

enum {
  PORTOLAN_OK = 0,
  PORTOLAN_INVALID = 1 /* a size below 1, an unknown layout or dtype, or a null pointer */
};

/* Reads the accelerator, the calibrated constants and the kernels. catalogue_csv = NULL takes the built-in catalogues
 * of the accelerator for dtype. Returns NULL and writes a message (always terminated) to error on failure. */
portolan_selector* portolan_selector_create(const char* data_dir, const char* accelerator, const char* catalogue_csv,
                                            const char* dtype, char* error, size_t error_size);
void portolan_selector_destroy(portolan_selector* selector);

int portolan_selector_best(const portolan_selector* selector, const portolan_gemm_problem* problem,
                           portolan_kernel_choice* choice);
/* Fills at most `room` choices (64 at the most), fastest first, and writes their number to *found. */
int portolan_selector_rank(const portolan_selector* selector, const portolan_gemm_problem* problem,
                           portolan_kernel_choice* choices, size_t room, size_t* found);

int32_t portolan_selector_kernel_count(const portolan_selector* selector);
/* The kernel's name in the catalogue, owned by the selector; NULL for an index outside it. */
const char* portolan_selector_kernel_id(const portolan_selector* selector, int32_t index);

#ifdef __cplusplus
}
#endif

#endif
