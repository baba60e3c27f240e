# The ops with a gpu body, one a line: src/kernels/<op>/gpu*.cc, tested by <op>_test.cc on every backend built, with what
# it may use on each CDNA target in budget.txt. (Ops without one are found by pattern, as all CPU sources are.)
set(PORTOLAN_GPU_KERNELS
  activation
  cross
  embedding
  interaction
  layer_norm
  loss
  optimizer
)
