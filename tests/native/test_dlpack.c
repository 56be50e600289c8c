/* DLPack and memory of other libraries: descriptions, ownership, order between streams, refusals. */
#include <pthread.h>

#include "alloc/alloc.h"
#include "tp_emulated.h"
#include "values.h"

#define SIZES(...) ((const int64_t[]){__VA_ARGS__})

/* DLPack's structures, written down again: a test that shared them could not see a wrong one. */
struct tensor {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct unversioned {
  struct tensor tensor;
  void *context;
  void (*deleter)(struct unversioned *);
};
struct versioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct versioned *);
  uint64_t flags;
  struct tensor tensor;
};

static int64_t allocated(void) { return tp_memory_stat(0, 0); }

static _Atomic int deleted;
static void count_unversioned(struct unversioned *self) { (void)self; ++deleted; }
static void count_versioned(struct versioned *self) { (void)self; ++deleted; }
static void count_release(void *context) { ++*(_Atomic int *)context; }

static void test_descriptions(void) {
  static const struct { int32_t dtype; uint8_t code, bits; } expected[] = {
      {TP_DTYPE_bool, 6, 8},     {TP_DTYPE_uint8, 1, 8},    {TP_DTYPE_int8, 0, 8},      {TP_DTYPE_int16, 0, 16},
      {TP_DTYPE_int32, 0, 32},   {TP_DTYPE_int64, 0, 64},   {TP_DTYPE_float16, 2, 16},  {TP_DTYPE_bfloat16, 4, 16},
      {TP_DTYPE_float32, 2, 32}, {TP_DTYPE_float64, 2, 64}, {TP_DTYPE_complex64, 5, 64}, {TP_DTYPE_complex128, 5, 128}};
  CHECK(sizeof expected / sizeof *expected == TP_DTYPE_COUNT);
  int64_t before = allocated();
  for (size_t i = 0; i < TP_DTYPE_COUNT; ++i) {
    tp_tensor_t *a = tp_tensor_empty(expected[i].dtype, 0, 2, SIZES(3, 4)), *b = tp_tensor_transpose(a, 0, 1);
    tp_tensor_t *c = tp_tensor_slice(b, 0, 1, 4, 2);
    struct versioned *new = tp_dlpack_export(c, NULL, 1, 2);
    struct unversioned *old = tp_dlpack_export(c, NULL, 0, 0);
    CHECK(new->major == 1 && new->flags == 2);
    const struct tensor *all[] = {&new->tensor, &old->tensor};
    for (int k = 0; k < 2; ++k) {
      CHECK((uintptr_t)all[k]->data + all[k]->byte_offset == tp_tensor_data(c) && all[k]->ndim == 2);
      CHECK(all[k]->device_type == 2 && all[k]->device_id == 0 && all[k]->lanes == 1);
      CHECK(all[k]->code == expected[i].code && all[k]->bits == expected[i].bits);
      CHECK(all[k]->shape[0] == 2 && all[k]->shape[1] == 3 && all[k]->strides[0] == 2 && all[k]->strides[1] == 4);
    }
    tp_tensor_release(a), tp_tensor_release(b), tp_tensor_release(c);
    CHECK(allocated() > before); /* each holds the memory */
    new->deleter(new);
    CHECK(allocated() > before);
    old->deleter(old);
    CHECK(allocated() == before);
  }
}

static void test_own_memory_comes_back(void) {
  int64_t before = allocated();
  for (int32_t is_versioned = 0; is_versioned < 2; ++is_versioned) {
    tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(5));
    uint64_t flags = 7;
    tp_tensor_t *b = tp_dlpack_import(tp_dlpack_export(a, NULL, is_versioned, 0), is_versioned, &flags);
    CHECK(b && flags == 0 && tp_tensor_storage(a) == tp_tensor_storage(b));
    tp_tensor_release(a), tp_tensor_release(b);
  }
  CHECK(allocated() == before);
  tp_dlpack_release(NULL, 0);
}

/* What another library would lend: a view of `memory`. */
static struct versioned lend(tp_tensor_t *memory, int64_t *shape, int64_t *strides) {
  return (struct versioned){.major = 1, .minor = 9, .deleter = count_versioned,
                            .tensor = {(void *)tp_tensor_data(memory), 2, 0, 2, 2, 32, 1, shape, strides, 0}};
}

static void test_import(void) {
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  int64_t before = allocated(), shape[] = {2, 3}, strides[] = {8, 2};
  uint64_t flags;
  struct versioned new = lend(memory, shape, strides);
  new.flags = 1;
  new.tensor.byte_offset = 8;
  deleted = 0;
  tp_tensor_t *a = tp_dlpack_import(&new, 1, &flags);
  CHECK(a && flags == 1 && tp_tensor_data(a) == tp_tensor_data(memory) + 8 && tp_tensor_dtype(a) == TP_DTYPE_float32);
  CHECK(tp_tensor_strides(a)[0] == 8 && tp_tensor_strides(a)[1] == 2 && tp_tensor_storage_nbytes(a) == 13 * 4);
  CHECK(tp_tensor_storage(a) != tp_tensor_storage(memory) && allocated() == before);
  CHECK(tp__tensor_shares(a, memory) && tp__tensor_overlaps(a, memory));
  tp_tensor_t *view = tp_tensor_select(a, 0, 1);
  tp_tensor_release(a);
  CHECK(deleted == 0);
  tp_tensor_release(view);
  CHECK(deleted == 1);

  struct unversioned old = {lend(memory, shape, NULL).tensor, NULL, count_unversioned};
  tp_tensor_t *b = tp_dlpack_import(&old, 0, &flags);
  CHECK(b && flags == 0 && tp_tensor_is_contiguous(b) && tp_tensor_strides(b)[0] == 3);
  tp_tensor_release(b);
  CHECK(deleted == 2);

  int64_t empty[] = {0, 3};
  struct versioned none = lend(memory, empty, NULL);
  none.tensor.data = NULL;
  tp_tensor_t *c = tp_dlpack_import(&none, 1, &flags);
  CHECK(c && tp_tensor_numel(c) == 0 && tp_tensor_data(c) == 0);
  tp_tensor_release(c);
  none.deleter = NULL; /* as the standard allows */
  tp_tensor_release(tp_dlpack_import(&none, 1, &flags));
  CHECK(deleted == 3);
  tp_tensor_release(memory);
}

/* A refusal leaves the memory with the caller. */
static void check_refused(struct versioned managed, tp_status_t status) {
  uint64_t flags;
  CHECK(!tp_dlpack_import(&managed, 1, &flags) && tp_error_status() == status);
  CHECK(deleted == 0);
}

static void test_refusals(void) {
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  int64_t shape[] = {2, 3}, backwards[] = {-3, 1}, far[] = {INT64_MAX / 2, 1}, negative[] = {2, -1};
  struct versioned good = lend(memory, shape, NULL), bad;
  deleted = 0;
  bad = good;
  bad.major = 2;
  check_refused(bad, TP_EXCHANGE);
  bad = good;
  bad.tensor.device_type = 10;
  check_refused(bad, TP_EXCHANGE);
  bad = good;
  bad.tensor.device_id = 1;
  check_refused(bad, TP_DEVICE);
  bad = good;
  bad.tensor.device_id = 99;
  check_refused(bad, TP_DEVICE);
  bad = good;
  bad.tensor.bits = 8;
  check_refused(bad, TP_DTYPE);
  bad = good;
  bad.tensor.lanes = 4;
  check_refused(bad, TP_DTYPE);
  bad = good;
  bad.tensor.strides = backwards;
  check_refused(bad, TP_EXCHANGE);
  bad = good;
  bad.tensor.strides = far;
  check_refused(bad, TP_OVERFLOW);
  bad = good;
  bad.tensor.shape = negative;
  check_refused(bad, TP_INVALID_ARGUMENT);
  bad = good;
  bad.tensor.ndim = TP_MAX_NDIM + 1;
  check_refused(bad, TP_SHAPE);
  bad = good;
  bad.tensor.byte_offset = 2;
  check_refused(bad, TP_EXCHANGE);
  bad = good;
  bad.tensor.data = &bad; /* the host's memory */
  bad.tensor.byte_offset = 0;
  check_refused(bad, TP_EXCHANGE);
  CHECK(!tp_tensor_from_memory(tp_tensor_data(memory), TP_DTYPE_COUNT, 0, 1, SIZES(1), NULL, count_release, NULL));
  CHECK(tp_error_status() == TP_DTYPE);
  tp_tensor_release(memory);
}

/* The lender gets its memory back when the work of all streams that used it is done. */
static void test_memory_goes_back_after_its_use(void) {
  _Atomic int released = 0;
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  tp_stream_t *streams[] = {tp_stream_from_pool(0, 0), tp_stream_from_pool(0, 0)};
  CHECK_OK(tp_stream_set_current(streams[0]));
  tp_tensor_t *a = tp_tensor_from_memory(tp_tensor_data(memory), TP_DTYPE_float32, TP_DEVICE_CURRENT, 1, SIZES(24),
                                         NULL, count_release, &released);
  CHECK(a);
  CHECK_OK(tp_tensor_record_stream(a, streams[1]));
  CHECK_OK(tp_tensor_record_stream(a, streams[1]));
  for (int i = 0; i < 2; ++i) {
    CHECK(tp_emulated_hold(0, tp_stream_handle(streams[i])) == 0);
    CHECK_OK(tp_stream_set_current(streams[i]));
    CHECK_OK(tp_tensor_fill_float(a, i));
  }
  tp_tensor_release(a);
  CHECK(released == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(tp_emulated_release(0, tp_stream_handle(streams[i])) == 0);
    CHECK_OK(tp_stream_synchronize(streams[i]));
    CHECK(released == i);
  }
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_tensor_release(memory);
}

/* A capture that came and went has the event behind our work: it is recorded anew, whatever CUDA calls it. */
static void test_an_event_of_a_capture_is_not_the_end_of_a_use(void) {
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  tp_stream_t *stream = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_stream_set_current(stream));
  const cudaError_t errors[] = {cudaErrorCapturedEvent, cudaErrorInvalidValue};
  for (int i = 0; i < 2; ++i) {
    _Atomic int released = 0;
    tp_tensor_t *a = tp_tensor_from_memory(tp_tensor_data(memory), TP_DTYPE_float32, TP_DEVICE_CURRENT, 1, SIZES(24),
                                           NULL, count_release, &released);
    CHECK(tp_emulated_hold(0, tp_stream_handle(stream)) == 0);
    CHECK_OK(tp_tensor_fill_float(a, 1));
    tp_tensor_release(a);
    int64_t records = tp_emulated_call_count("cudaEventRecord", -1);
    CHECK(tp_emulated_fail("cudaEventQuery", 1, errors[i]) == 0);
    tp__foreign_poll();
    CHECK(released == 0 && tp_emulated_call_count("cudaEventRecord", -1) == records);
    tp__foreign_poll();
    CHECK(released == 0 && tp_emulated_call_count("cudaEventRecord", -1) == records + 1);
    CHECK(tp_emulated_release(0, tp_stream_handle(stream)) == 0);
    CHECK_OK(tp_stream_synchronize(stream));
    CHECK(released == 1);
  }
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
  tp_tensor_release(memory);
}

/* The consumer's stream sees finished data, and the memory is not handed out before its work is done. */
static void test_export_orders_streams(void) {
  tp_stream_t *current = tp_stream_from_pool(0, 0), *consumer = tp_stream_from_pool(0, 0);
  CHECK_OK(tp_stream_set_current(current));
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  tp_emulated_hold(0, tp_stream_handle(current));
  CHECK_OK(tp_tensor_fill_float(a, 3));
  struct versioned *lent = tp_dlpack_export(a, consumer, 1, 0);
  CHECK(lent && tp_stream_query(consumer) == 0);
  tp_emulated_release(0, tp_stream_handle(current));
  CHECK_OK(tp_stream_synchronize(consumer));

  uintptr_t address = tp_tensor_data(a);
  tp_tensor_release(a);
  tp_tensor_t *other = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  CHECK_OK(tp_stream_synchronize(current));
  tp_emulated_hold(0, tp_stream_handle(consumer));
  CHECK_OK(tp_stream_set_current(consumer));
  CHECK_OK(tp_tensor_fill_float(other, 1)); /* what the consumer still does */
  lent->deleter(lent);
  CHECK_OK(tp_stream_set_current(current));
  tp_tensor_t *early = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  CHECK(tp_tensor_data(early) != address);
  tp_emulated_release(0, tp_stream_handle(consumer));
  CHECK_OK(tp_stream_synchronize(consumer));
  tp_tensor_t *late = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  CHECK(tp_tensor_data(late) == address);
  tp_tensor_release(other), tp_tensor_release(early), tp_tensor_release(late);
  CHECK_OK(tp_stream_set_current(tp_stream_default(0)));
}

static void *delete_in_thread(void *managed) {
  tp_dlpack_release(managed, 1);
  return NULL;
}

static void test_deleters_in_any_thread(void) {
  int64_t before = allocated();
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) {
    tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float32, i % 2, 1, SIZES(24));
    CHECK(pthread_create(&threads[i], NULL, delete_in_thread, tp_dlpack_export(a, NULL, 1, 0)) == 0);
    tp_tensor_release(a);
  }
  for (int i = 0; i < 8; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(allocated() == before);
}

static _Atomic int released_in_threads;

static void *borrow_in_thread(void *memory) {
  CHECK_OK(tp_stream_set_current(tp_stream_from_pool(0, 0)));
  for (int i = 0; i < 50; ++i) {
    tp_tensor_t *a = tp_tensor_from_memory(tp_tensor_data(memory), TP_DTYPE_float32, 0, 1, SIZES(24), NULL,
                                           count_release, &released_in_threads);
    CHECK(a);
    tp_tensor_t *b = tp_unary(0, a, NULL);
    CHECK(b);
    tp_tensor_release(a), tp_tensor_release(b);
    if (i % 10 == 9) CHECK_OK(tp_stream_synchronize(tp_stream_current(0)));
  }
  return NULL;
}

static void test_many_threads_borrow(void) {
  pthread_t threads[4];
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  CHECK_OK(tp_tensor_fill_float(memory, 1));
  CHECK_OK(tp_device_synchronize(0));
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, borrow_in_thread, memory) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK_OK(tp_device_synchronize(0));
  CHECK(released_in_threads == 200);
  tp_tensor_release(memory);
}

static void test_failures_leave_the_memory(void) {
  static const char *const calls[] = {"cudaPointerGetAttributes", "cudaSetDevice"};
  _Atomic int released = 0;
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(tp_device_set(1)); /* so that entering device 0 calls CUDA */
    tp_tensor_release(tp_tensor_empty(TP_DTYPE_bool, 1, 0, NULL));
    CHECK(tp_emulated_fail(calls[i], 1, 999) == 0);
    CHECK(!tp_tensor_from_memory(tp_tensor_data(memory), TP_DTYPE_float32, 0, 1, SIZES(24), NULL, count_release,
                                 &released));
    CHECK(tp_error_status() == TP_CUDA && released == 0);
  }
  CHECK_OK(tp_device_set(0));
  tp_tensor_release(memory);
}

static void test_external_streams(void) {
  tp_stream_t *own = tp_stream_from_pool(1, 0);
  CHECK(tp_stream_external(1, tp_stream_handle(own)) == own);
  CHECK(tp_stream_external(1, 0) == tp_stream_default(1) && tp_stream_external(1, 1) == tp_stream_default(1));
  CHECK(!tp_stream_external(0, (uintptr_t)&own) && tp_error_status() == TP_CUDA);
  CHECK(!tp_stream_external(9, 0) && tp_error_status() == TP_DEVICE);

  cudaStream_t handle;
  CHECK(cudaSetDevice(0) == cudaSuccess && cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess);
  tp_stream_t *theirs = tp_stream_external(0, (uintptr_t)handle);
  CHECK(theirs && theirs == tp_stream_external(0, (uintptr_t)handle) && tp_stream_device(theirs) == 0);
  CHECK(tp__stream_is_external(theirs) && !tp__stream_is_external(own));
  int64_t active = tp_memory_stat(0, TP_STAT_active);
  tp_tensor_t *a = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  uintptr_t address = tp_tensor_data(a);
  CHECK_OK(tp_tensor_record_stream(a, theirs));
  CHECK(cudaStreamDestroy(handle) == cudaSuccess);
  /* Nothing is asked of the stream, which is gone: the block waits until the device was waited for. */
  int64_t asked = tp_emulated_call_count("cudaEventRecord", 0);
  int64_t waited = tp_emulated_call_count("cudaDeviceSynchronize", 0);
  tp_tensor_release(a);
  tp_tensor_t *b = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  CHECK(tp_tensor_data(b) != address && tp_memory_stat(0, TP_STAT_active) == active + 2);
  CHECK(tp_emulated_call_count("cudaEventRecord", 0) == asked);
  tp_tensor_release(b); /* the next request is one for which the driver would be asked */
  tp_tensor_t *large = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(1 << 22));
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", 0) == waited + 1);
  CHECK(tp_memory_stat(0, TP_STAT_active) == active + 1);
  tp_tensor_release(large);
}

/* A release cannot be refused, whatever the sync debug mode: that the memory was lent decides that it waits. */
static void test_a_release_that_waits_is_not_refused(void) {
  _Atomic int released = 0;
  cudaStream_t handle;
  tp_tensor_t *memory = tp_tensor_empty(TP_DTYPE_float32, 0, 1, SIZES(24));
  CHECK(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess);
  tp_stream_t *theirs = tp_stream_external(0, (uintptr_t)handle);
  tp_tensor_t *a = tp_tensor_from_memory(tp_tensor_data(memory), TP_DTYPE_float32, 0, 1, SIZES(24), NULL, count_release,
                                         &released);
  CHECK_OK(tp_tensor_record_stream(a, theirs));
  int64_t waited = tp_emulated_call_count("cudaDeviceSynchronize", 0);
  CHECK_OK(tp_wait_set_debug_mode(TP_WAIT_REFUSED));
  CHECK(tp_device_synchronize(0) == TP_STATE && tp_stream_synchronize(theirs) == TP_STATE);
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", 0) == waited);
  tp_tensor_release(a);
  CHECK(tp_emulated_call_count("cudaDeviceSynchronize", 0) == waited + 1 && released == 1);
  CHECK_OK(tp_wait_set_debug_mode(TP_WAIT_SILENT));
  tp_tensor_release(memory);
  CHECK(cudaStreamDestroy(handle) == cudaSuccess);
}

int main(void) {
  values_start();
  test_descriptions();
  test_own_memory_comes_back();
  test_import();
  test_refusals();
  test_memory_goes_back_after_its_use();
  test_an_event_of_a_capture_is_not_the_end_of_a_use();
  test_export_orders_streams();
  test_deleters_in_any_thread();
  test_many_threads_borrow();
  test_failures_leave_the_memory();
  test_external_streams();
  test_a_release_that_waits_is_not_refused();
  return 0;
}
