/* Threads of one block as fibres: each has its own stack, and they change over only at barriers, where the
 * seed decides who goes first. So what a thread wrote before a barrier that is missing shows as missing. */
#include "emulated.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "include/host_device.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_NBYTES ((size_t)256 * 1024)

typedef enum state { READY, ENDED, ABANDONED } state_t;

typedef struct fibre {
  ucontext_t context;
  unsigned char *stack;
  state_t state;
  void *sanitizer; /* what the sanitizer keeps for a stack that does not run */
} fibre_t;

static fibre_t fibres[EMU_FIBRES];
static fibre_t home; /* the thread that runs the block; its stack is its own */
static fibre_t *inside; /* NULL outside of a block */
static void (*block_thread)(const void *);
static const void *block_arguments;
static int switched_on = -1; /* -1: as the environment says */

bool emu_fibres(void) { return switched_on < 0 ? emu_settings()->fibres : switched_on; }
void emu_fibres_set(bool on) { switched_on = on; }
bool emu_fibre_inside(void) { return inside != NULL; }

/* ---- changing over, with what the sanitizers must be told ---- */

#ifdef __SANITIZE_ADDRESS__
static const void *home_stack;
static size_t home_stack_nbytes;
#endif

static void arrived(fibre_t *self) {
#ifdef __SANITIZE_ADDRESS__
  if (self == &home)
    __sanitizer_finish_switch_fiber(self->sanitizer, NULL, NULL);
  else
    __sanitizer_finish_switch_fiber(self->sanitizer, &home_stack, &home_stack_nbytes);
#else
  (void)self;
#endif
}

static void change(fibre_t *from, fibre_t *to) {
  inside = to == &home ? NULL : to;
#ifdef __SANITIZE_ADDRESS__
  if (to == &home)
    __sanitizer_start_switch_fiber(from->state == READY ? &from->sanitizer : NULL, home_stack,
                                   home_stack_nbytes);
  else
    __sanitizer_start_switch_fiber(&from->sanitizer, to->stack, STACK_NBYTES);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(to->sanitizer, 0);
#endif
  swapcontext(&from->context, &to->context);
  arrived(from);
}

static void enter(void) {
  fibre_t *self = inside;
  arrived(self);
  block_thread(block_arguments);
  self->state = ENDED;
  change(self, &home);
}

void emu_fibre_barrier(void) { change(inside, &home); }

void emu_fibre_abandon(void) {
  fibre_t *self = inside;
  self->state = ABANDONED;
  change(self, &home);
  abort(); /* nobody changes over to a fibre that is abandoned */
}

/* ---- a block ---- */

static bool prepare(fibre_t *fibre) {
  if (!fibre->stack) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
    void *stack = mmap(NULL, STACK_NBYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stack == MAP_FAILED) return false;
    fibre->stack = stack;
  }
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(fibre->stack, STACK_NBYTES);
  fibre->sanitizer = NULL;
#endif
#ifdef __SANITIZE_THREAD__
  fibre->sanitizer = __tsan_create_fiber(0);
#endif
  getcontext(&fibre->context);
  fibre->context.uc_stack.ss_sp = fibre->stack;
  fibre->context.uc_stack.ss_size = STACK_NBYTES;
  fibre->context.uc_link = NULL;
  makecontext(&fibre->context, enter, 0);
  fibre->state = READY;
  return true;
}

static void shuffle(unsigned int *order, unsigned int n) {
  for (unsigned int i = 0; i < n; i++) order[i] = i;
  for (unsigned int i = n; i > 1; i--) {
    unsigned int j = (unsigned int)emu_random_below(i), other = order[i - 1];
    order[i - 1] = order[j];
    order[j] = other;
  }
}

/* Runs each fibre up to its next barrier or its end; how many ended, -1 when one was abandoned. */
static int run_round(unsigned int threads) {
  unsigned int order[EMU_FIBRES];
  int ended = 0;
  shuffle(order, threads);
  for (unsigned int i = 0; i < threads; i++) {
    fibre_t *fibre = &fibres[order[i]];
    threadIdx = (uint3){order[i], 0, 0};
    if (fibre->state == READY) change(&home, fibre);
    if (fibre->state == ABANDONED) return -1;
    ended += fibre->state == ENDED;
  }
  return ended;
}

emu_block_end_t emu_fibre_block(void (*thread)(const void *), const void *arguments, unsigned int threads) {
  int ended = 0;
  block_thread = thread;
  block_arguments = arguments;
#ifdef __SANITIZE_THREAD__
  home.sanitizer = __tsan_get_current_fiber();
#endif
  for (unsigned int i = 0; i < threads; i++)
    if (!prepare(&fibres[i])) return EMU_BLOCK_NO_STACK;
  while (ended == 0) ended = run_round(threads);
#ifdef __SANITIZE_THREAD__
  for (unsigned int i = 0; i < threads; i++) __tsan_destroy_fiber(fibres[i].sanitizer);
#endif
  if (ended < 0) return EMU_BLOCK_ABANDONED;
  return ended == (int)threads ? EMU_BLOCK_DONE : EMU_BLOCK_DIVERGENT;
}
