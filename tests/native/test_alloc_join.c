/* Blocks that another stream of a capture has used: they are there again in that capture once it has been joined. */
#include "capture_case.h"

static tp_stream_t *owner, *user, *third; /* of device 0 */
static tp_mempool_t *mempool;
static tp__capture_t *capture;

static void begin_case(void) {
  owner = tp_stream_from_pool(0, 0);
  user = tp_stream_from_pool(0, 0);
  third = tp_stream_from_pool(0, 0);
  mempool = make();
  capture = begin_in(mempool, owner, cudaStreamCaptureModeGlobal);
}

/* Everything is joined by then. */
static void end_case(void) {
  end_graph(owner);
  end(capture);
  for (int i = 0; i < 2; i++) { /* the first request after the capture records events, the next one asks them */
    drop(take(30 * TP_MiB, owner));
    CHECK_OK(tp_device_synchronize(0));
  }
  CHECK(CURRENT(active) == 0);
  tp_mempool_release(mempool);
  clear();
}

static void work(tp_stream_t *stream, void *memory) {
  CHECK(cudaMemsetAsync(memory, 1, 512, tp__stream_cuda(stream)) == cudaSuccess);
}

/* A block of the owner that `user` works with, given back; its address. 20 MiB fill their segment. */
static char *use_and_drop(tp_stream_t *stream) {
  CHECK_OK(tp_stream_wait_stream(stream, owner));
  tp__block_t *block = take(20 * TP_MiB, owner);
  char *address = block->address;
  work(stream, address);
  CHECK_OK(tp__alloc_record_stream(block, stream));
  drop(block);
  return address;
}

/* Whether the owner's next block is that one. */
static bool gets(const char *address) {
  tp__block_t *block = take(20 * TP_MiB, owner);
  bool same = block->address == address;
  CHECK(is_of(block, mempool));
  drop(block);
  return same;
}

static void test_a_joined_stream_gives_its_block_back(void) {
  begin_case();
  char *address = use_and_drop(user);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  int64_t queries = tp_emulated_call_count("cudaEventQuery", -1);
  CHECK(gets(address) && CURRENT(active) == 0 && CURRENT(segment) == 1);
  CHECK(tp_emulated_call_count("cudaEventQuery", -1) == queries);
  end_case();
}

static void test_a_join_is_found_behind_other_work(void) {
  begin_case();
  char *address = use_and_drop(user);
  tp__block_t *target = take(1000, owner);
  CHECK_OK(tp_stream_wait_stream(third, user));
  for (int i = 0; i < 10; i++) work(third, target->address);
  CHECK_OK(tp_stream_wait_stream(owner, third));
  for (int i = 0; i < 10; i++) work(owner, target->address);
  CHECK(gets(address));
  drop(target);
  end_case();
}

static void test_a_stream_that_is_not_joined_keeps_its_block(void) {
  begin_case();
  char *address = use_and_drop(user);
  CHECK(!gets(address));
  CHECK(CURRENT(active) == 1 && CURRENT(segment) == 2);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  end_case();
}

static void test_a_join_with_a_third_stream_is_none(void) {
  begin_case();
  char *address = use_and_drop(user);
  CHECK_OK(tp_stream_wait_stream(third, user));
  CHECK(!gets(address));
  tp__block_t *elsewhere = take(20 * TP_MiB, third); /* which has joined it, but does not own the block */
  CHECK(elsewhere->address != address);
  CHECK_OK(tp_stream_wait_stream(owner, third));
  CHECK(CURRENT(segment) == 3);
  drop(elsewhere);
  end_case();
}

static void test_work_after_the_join_keeps_the_block(void) {
  begin_case();
  tp__block_t *block = take(20 * TP_MiB, owner);
  char *address = block->address;
  CHECK_OK(tp_stream_wait_stream(user, owner));
  CHECK_OK(tp_stream_wait_stream(owner, user));
  work(user, address);
  CHECK_OK(tp__alloc_record_stream(block, user));
  drop(block);
  CHECK(!gets(address));
  CHECK_OK(tp_stream_wait_stream(owner, user));
  end_case();
}

static void test_every_user_must_be_joined(void) {
  begin_case();
  CHECK_OK(tp_stream_wait_stream(user, owner));
  CHECK_OK(tp_stream_wait_stream(third, owner));
  tp__block_t *block = take(20 * TP_MiB, owner), *other = take(20 * TP_MiB, owner);
  char *address = block->address, *address_of_other = other->address;
  work(user, address);
  work(third, address);
  work(third, address_of_other);
  CHECK_OK(tp__alloc_record_stream(block, user));
  CHECK_OK(tp__alloc_record_stream(block, third));
  CHECK_OK(tp__alloc_record_stream(other, third));
  drop(other);
  drop(block);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  CHECK(!gets(address) && CURRENT(active) == 2);
  CHECK_OK(tp_stream_wait_stream(owner, third));
  block = take(20 * TP_MiB, owner); /* the one that was obtained in the meantime */
  other = take(20 * TP_MiB, owner);
  tp__block_t *last = take(20 * TP_MiB, owner);
  CHECK((other->address == address) + (last->address == address) == 1);
  CHECK((other->address == address_of_other) + (last->address == address_of_other) == 1);
  CHECK(CURRENT(segment) == 3);
  drop(block);
  drop(other);
  drop(last);
  end_case();
}

static void test_another_capture_is_not_looked_at(void) {
  tp_stream_t *elsewhere = tp_stream_from_pool(0, 0);
  begin_case();
  char *address = use_and_drop(user);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  tp__capture_t *second = begin_in(mempool, elsewhere, cudaStreamCaptureModeGlobal);
  tp__block_t *block = take(20 * TP_MiB, elsewhere); /* of the same pool */
  CHECK(block->address != address);
  CHECK(gets(address));
  drop(block);
  end_graph(elsewhere);
  end(second);
  end_case();
}

/* The body of a conditional node is a capture of its own to CUDA, and a part of the outermost one to the allocator. */
static void test_streams_are_joined_in_bodies_too(void) {
  begin_case();
  tp_stream_t *outer = owner;
  owner = tp_stream_from_pool(0, 0);
  tp__capture_t *body = tp__capture_begin_body(capture, owner);
  CHECK(body && cudaStreamBeginCapture(tp__stream_cuda(owner), cudaStreamCaptureModeRelaxed) == cudaSuccess);
  char *address = use_and_drop(user);
  tp__block_t *block = take(20 * TP_MiB, owner);
  CHECK(block->address != address && block->capture == tp__capture_id(capture));
  CHECK_OK(tp_stream_wait_stream(owner, user));
  CHECK(gets(address));
  drop(block);
  end_graph(owner);
  end(body);
  owner = outer;
  end_case();
}

/* Blocks that the user got from before its capture wait for an event. */
static void test_a_block_of_before_the_capture_waits_for_its_event(void) {
  owner = tp_stream_from_pool(0, 0);
  user = tp_stream_from_pool(0, 0);
  mempool = make();
  tp_mempool_scope_t *scope = tp_mempool_enter(mempool, 0);
  tp__block_t *block = take(20 * TP_MiB, owner);
  tp_mempool_leave(scope);
  char *address = block->address;
  CHECK_OK(tp__alloc_record_stream(block, user));
  capture = begin_in(mempool, owner, cudaStreamCaptureModeGlobal);
  CHECK_OK(tp_stream_wait_stream(user, owner));
  drop(block);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  CHECK(!gets(address));
  end_case();
}

static void test_after_the_capture_a_block_is_waited_for(void) {
  begin_case();
  char *address = use_and_drop(user);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  end_graph(owner);
  end(capture);
  drop(take(30 * TP_MiB, owner)); /* records the event */
  CHECK_OK(tp_stream_synchronize(user));
  capture = begin_in(mempool, owner, cudaStreamCaptureModeGlobal);
  CHECK(gets(address));
  end_case();
}

/* More nodes than are looked at lie between the join and the request. */
static void test_a_join_long_ago_is_not_looked_for(void) {
  begin_case();
  tp__block_t *target = take(1000, owner);
  char *address = use_and_drop(user);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  for (int i = 0; i < 5000; i++) work(owner, target->address);
  tp__block_t *block = take(20 * TP_MiB, owner);
  CHECK(block->address != address);
  CHECK_OK(tp_stream_wait_stream(owner, user));
  CHECK(gets(address)); /* this join is near */
  drop(block);
  drop(target);
  end_case();
}

static void test_calls_that_fail_join_nothing(void) {
  static const char *const calls[] = {"cudaStreamGetCaptureInfo", "cudaGraphNodeGetDependencies"};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
    for (int64_t nth = 2; nth <= 6; nth++) { /* the first finds out which pool serves the request */
      begin_case();
      tp__block_t *target = take(1000, owner);
      char *address = use_and_drop(user);
      CHECK_OK(tp_stream_wait_stream(owner, user));
      work(owner, target->address);
      CHECK(tp_emulated_fail(calls[c], nth, tp_emulated_error_code("cudaErrorUnknown")) == 0);
      (void)gets(address);
      CHECK(tp_emulated_fail(calls[c], 0, 0) == 0);
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      CHECK(gets(address) || CURRENT(segment) == 3); /* else the block that was obtained serves */
      drop(target);
      end_case();
    }
  }
}

int main(void) {
  CHECK_OK(tp__device_enter(0, "test"));
  clear();
  test_a_joined_stream_gives_its_block_back();
  test_a_join_is_found_behind_other_work();
  test_a_stream_that_is_not_joined_keeps_its_block();
  test_a_join_with_a_third_stream_is_none();
  test_work_after_the_join_keeps_the_block();
  test_every_user_must_be_joined();
  test_another_capture_is_not_looked_at();
  test_streams_are_joined_in_bodies_too();
  test_a_block_of_before_the_capture_waits_for_its_event();
  test_after_the_capture_a_block_is_waited_for();
  test_a_join_long_ago_is_not_looked_for();
  test_calls_that_fail_join_nothing();
  return 0;
}
