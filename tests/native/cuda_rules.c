/* Holds a real CUDA runtime to the rules that the emulated device keeps, and prints every difference:
 *
 *   gcc -I$CUDA/include -Ilibtensorplay/src tests/native/cuda_rules.c -o cuda_rules -L$CUDA/lib64 -lcudart -lpthread
 *   ./cuda_rules [part of a rule's name]
 *
 * Each rule has a process of its own, so that one that ends it, or its device, leaves the others alone. */
#include <sys/wait.h>

#include "capture_limits_rules.h"
#include "capture_rules.h"
#include "conditional_rules.h"
#include "edge_rules.h"
#include "graph_rules.h"

#define LIMIT_S 60

static int checked, failed;

static void check_in_child(const rule_t *rule) {
  int status;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(LIMIT_S);
    make_memory();
    check_rule(rule);
    exit(differences != 0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) abort();
  if (WIFSIGNALED(status)) fprintf(stderr, "%s: ended by signal %d\n", rule->name, WTERMSIG(status));
  checked++;
  failed += status != 0;
}

static void check_all(const rule_t *rules, size_t count, const char *part) {
  for (size_t i = 0; i < count; i++)
    if (strstr(rules[i].name, part)) check_in_child(&rules[i]);
}

#define CHECK_ALL(rules, part) check_all(rules, sizeof(rules) / sizeof *(rules), part)

int main(int argc, char **argv) {
  const char *part = argc > 1 ? argv[1] : "";
  CHECK_ALL(capture_rules, part);
  CHECK_ALL(capture_limits_rules, part);
  CHECK_ALL(graph_rules, part);
  CHECK_ALL(edge_rules, part);
  CHECK_ALL(conditional_rules, part);
  printf("%d rules, %d differ\n", checked, failed);
  return failed != 0;
}
