/* The C interface end to end: create, ask, and every way to misuse it. Run with the data folder as its argument. */
#include "portolan_select.h"

#include <stdio.h>
#include <string.h>

static int failures = 0;
#define EXPECT(condition)                                            \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

int main(int argc, char** argv) {
  char error[256] = "";
  portolan_selector* selector;
  portolan_gemm_problem problem;
  portolan_kernel_choice best, again, ranked[4];
  size_t found = 0;
  size_t i;
  if (argc < 2) {
    printf("usage: %s DATA_DIR\n", argv[0]);
    return 2;
  }

  EXPECT(portolan_selector_create(argv[1], "h2000", NULL, "bf16", error, sizeof(error)) == NULL);
  EXPECT(strstr(error, "h200") != NULL);
  EXPECT(portolan_selector_create(argv[1], "h200", "no such file", "bf16", error, sizeof(error)) == NULL);
  EXPECT(portolan_selector_create(argv[1], "h200", NULL, "bf17", NULL, 0) == NULL);
  EXPECT(portolan_selector_create(NULL, "h200", NULL, "bf16", error, 4) == NULL);
  EXPECT(strlen(error) == 3);

  selector = portolan_selector_create(argv[1], "h200", NULL, "bf16", error, sizeof(error));
  if (selector == NULL) {
    printf("%s\n", error);
    return 1;
  }
  EXPECT(portolan_selector_kernel_count(selector) > 100);
  EXPECT(portolan_selector_kernel_id(selector, 0) != NULL);
  EXPECT(portolan_selector_kernel_id(selector, -1) == NULL);
  EXPECT(portolan_selector_kernel_id(selector, portolan_selector_kernel_count(selector)) == NULL);

  memset(&problem, 0, sizeof(problem));
  problem.m = 8192;
  problem.n = problem.k = 4096;
  EXPECT(portolan_selector_best(selector, &problem, &best) == PORTOLAN_OK);
  EXPECT(best.index >= 0);
  /* 2 x 8192 x 4096 x 4096 flops at the 989 TFLOP/s of the data sheet take 278 us; nothing sane takes five times that.
   */
  EXPECT(best.seconds > 2.75e-4 && best.seconds < 1.4e-3);
  EXPECT(best.confidence > 0.0 && best.confidence <= 1.0);
  /* From the cache: the same answer. */
  EXPECT(portolan_selector_best(selector, &problem, &again) == PORTOLAN_OK);
  EXPECT(again.index == best.index && again.seconds == best.seconds && again.confidence == best.confidence);

  EXPECT(portolan_selector_rank(selector, &problem, ranked, 4, &found) == PORTOLAN_OK);
  EXPECT(found == 4);
  EXPECT(ranked[0].index == best.index);
  for (i = 1; i < found; ++i) EXPECT(ranked[i].seconds >= ranked[i - 1].seconds);

  problem.layout = "TT";
  EXPECT(portolan_selector_best(selector, &problem, &best) == PORTOLAN_INVALID);
  problem.layout = "NT";
  EXPECT(portolan_selector_best(selector, &problem, &best) == PORTOLAN_OK);
  problem.m = 0;
  EXPECT(portolan_selector_best(selector, &problem, &best) == PORTOLAN_INVALID);
  EXPECT(portolan_selector_best(selector, NULL, &best) == PORTOLAN_INVALID);
  /* A number format of which the catalogue has no kernel: an answer, not an error. */
  problem.m = 64;
  problem.dtype = "fp64";
  EXPECT(portolan_selector_best(selector, &problem, &best) == PORTOLAN_OK);
  EXPECT(best.index == -1);
  portolan_selector_destroy(selector);
  portolan_selector_destroy(NULL);
  if (failures == 0) printf("ok\n");
  return failures == 0 ? 0 : 1;
}
