/* Holds a real CUDA runtime to the rules that the emulated device keeps, and prints every difference:
 *
 *   gcc -I$CUDA/include -Ilibtensorplay/src tests/native/cuda_rules.c -o cuda_rules -L$CUDA/lib64 -lcudart -lpthread */
#include "capture_limits_rules.h"
#include "capture_rules.h"
#include "conditional_rules.h"
#include "graph_rules.h"

int main(void) {
  make_memory();
  CHECK_RULES(capture_rules);
  CHECK_RULES(capture_limits_rules);
  CHECK_RULES(graph_rules);
  CHECK_RULES(conditional_rules);
  printf("%d differences\n", differences);
  return differences != 0;
}
