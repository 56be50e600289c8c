/* What every C test uses. A test is a program: main returns 0, or CHECK ends it with a line that says where.
 * tests/native/test_native.py compiles and runs it; the program is linked with the library's objects, so it may
 * call tp__ functions, and TP_TEST_KERNELS is the folder of the kernel images. */
#ifndef TP_TESTS_CHECK_H
#define TP_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "tensorplay.h"

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "%s:%d: %s is false; last error: %d %s: %s\n", __FILE__, __LINE__, #condition, \
              (int)tp_error_status(), tp_error_operation(), tp_error_text());                     \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

#define CHECK_OK(call) CHECK((call) == 0)

/* 24 random bits; each thread has a state of its own. */
static inline uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

#endif
