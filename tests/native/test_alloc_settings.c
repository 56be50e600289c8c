/* The allocator's settings: what a text may say, all or nothing, the variable, and how sizes are rounded. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_case.h"

static tp_memory_settings_t settings(void) {
  tp_memory_settings_t out;
  tp_memory_get_settings(&out);
  return out;
}

static void test_keys_are_obeyed_and_the_others_get_their_defaults(void) {
  tp_memory_settings_t before = settings();
  CHECK(before.text[0] == '\0' && before.max_split_size == TP_NO_LIMIT && before.large_segment_size == 20 * TP_MiB);
  CHECK(before.caching == 1 && before.rounds_up == 0 && before.per_process_memory_fraction == 1);
  CHECK_OK(tp_memory_set_settings(" max_split_size_mb:64, garbage_collection_threshold : 0.75,backend:native,"
                                  "max_non_split_rounding_mb:30,large_segment_size_mb:40,expandable_segments:False,"
                                  "release_lock_on_cudamalloc:True,per_process_memory_fraction:.5,"
                                  "pinned_max_cached_size_mb:0,pinned_num_register_threads:8,"
                                  "roundup_power2_divisions:[1:2,256:4,>:8] "));
  tp_memory_settings_t now = settings();
  CHECK(now.max_split_size == 64 * TP_MiB && now.max_non_split_rounding == 30 * TP_MiB);
  CHECK(now.large_segment_size == 40 * TP_MiB && now.pinned_max_cached_size == 0);
  CHECK(now.garbage_collection_threshold == 0.75 && now.per_process_memory_fraction == 0.5);
  CHECK(now.release_lock_on_cudamalloc == 1 && now.expandable_segments == 0 && now.rounds_up == 1);
  CHECK(now.roundup_power2_divisions[0] == 2 && now.roundup_power2_divisions[1] == 4);
  CHECK(now.roundup_power2_divisions[8] == 4 && now.roundup_power2_divisions[9] == 8);
  CHECK(now.roundup_power2_divisions[TP_ROUNDUP_INTERVALS - 1] == 8);
  CHECK(strncmp(now.text, "max_split_size_mb:64,garbage_collection_threshold:0.75,", 54) == 0);
  CHECK_OK(tp_memory_set_settings(now.text));
  CHECK(settings().max_split_size == 64 * TP_MiB);
  CHECK_OK(tp_memory_set_settings(""));
  tp_memory_settings_t after = settings();
  after.text = before.text;
  CHECK(memcmp(&before, &after, sizeof before) == 0);
}

static void expect_refusal(const char *text, const char *reason) {
  tp_memory_settings_t before = settings();
  CHECK(tp_memory_set_settings(text) == TP_INVALID_ARGUMENT);
  if (!strstr(tp_error_text(), reason)) fprintf(stderr, "%s\n", tp_error_text());
  CHECK(strstr(tp_error_text(), "set_allocator_settings: ") == tp_error_text() && strstr(tp_error_text(), reason));
  tp_memory_settings_t after = settings();
  CHECK(memcmp(&before, &after, sizeof before) == 0);
}

static void test_what_cannot_be_obeyed_is_refused_and_changes_nothing(void) {
  CHECK_OK(tp_memory_set_settings("max_split_size_mb:50"));
  expect_refusal("max_split_size:20", "got the key 'max_split_size', expected one of backend, expandable_segments, ");
  expect_refusal("garbage_collection_threshold:0.5,what:1", "roundup_power2_divisions");
  expect_refusal("max_split_size_mb:19", "max_split_size_mb: got '19', expected MiB as an integer, at least 20");
  static const char *const sizes[] = {"", "-1", "20.5", "20MB", "0x20", "99999999999999999999", "1099511627776"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char text[80];
    snprintf(text, sizeof text, "max_split_size_mb:%s", sizes[i]);
    expect_refusal(text, "expected MiB as an integer");
  }
  static const char *const thresholds[] = {"0", "1", "-0.5", "1.5", "nan", "inf", "", ".", "0.5x", "0,5", "1e-1"};
  for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
    char text[80];
    snprintf(text, sizeof text, "garbage_collection_threshold:%s", thresholds[i]);
    expect_refusal(text, strchr(text, ',') ? "0 and 1" : "expected a number between 0 and 1, both excluded");
  }
  expect_refusal("per_process_memory_fraction:1.01", "expected a number from 0 to 1");
  expect_refusal("expandable_segments:true", "expandable_segments: got 'true', expected True or False");
  expect_refusal("backend:cudaMallocAsync", "the driver's own pools are not used");
  expect_refusal("backend:jemalloc", "backend: got 'jemalloc', expected 'native'");
  expect_refusal("pinned_num_register_threads:3", "expected a power of two, at most 128");
  expect_refusal("roundup_power2_divisions:3", "got '3' divisions, expected 0 or a power of two");
  expect_refusal("roundup_power2_divisions:[256:3]", "got '3' divisions");
  expect_refusal("roundup_power2_divisions:[3:4]", "got the size '3', expected rising powers of two");
  expect_refusal("roundup_power2_divisions:[512:4,256:4]", "got the size '256'");
  expect_refusal("roundup_power2_divisions:[>:4,256:4]", "got the size '256'");
  expect_refusal("roundup_power2_divisions:[131072:4]", "got the size '131072'");
  expect_refusal("roundup_power2_divisions:[256]", "got '256' in the list");
  expect_refusal("roundup_power2_divisions:[256:4", "expected key:value or key:[size:value,...]");
  expect_refusal("roundup_power2_divisions:256:4]", "expected key:value or key:[size:value,...]");
  expect_refusal("max_split_size_mb", "got 'max_split_size_mb', expected key:value");
  expect_refusal("max_split_size_mb:30,", "got '', expected key:value");
  expect_refusal(",", "got '', expected key:value");
  char longest[2000];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  expect_refusal(longest, "got a text of more than 1023 characters");
  CHECK(tp_memory_set_settings(NULL) == TP_INVALID_ARGUMENT);
  CHECK(settings().max_split_size == 50 * TP_MiB);
  CHECK_OK(tp_memory_set_settings(""));
}

static void expect_size(size_t nbytes, size_t block_nbytes) {
  tp__block_t *block = take(nbytes, tp_stream_default(0));
  CHECK(block->requested_nbytes == nbytes && block->nbytes == block_nbytes);
  drop(block);
}

static void test_sizes_are_rounded_to_steps_between_powers_of_two(void) {
  expect_size(1200 * TP_KiB, 1200 * TP_KiB);
  clear();
  CHECK_OK(tp_memory_set_settings("roundup_power2_divisions:4"));
  expect_size(200 * TP_KiB + 1, 224 * TP_KiB);
  expect_size(256 * TP_KiB, 256 * TP_KiB);
  expect_size(256 * TP_KiB + 1, 320 * TP_KiB);
  expect_size(2048, 2048);
  expect_size(2049, 2560);
  expect_size(1025, 1536); /* steps of 256 bytes would be less than the unit */
  expect_size(1, 512);
  tp__block_t *wall = take(19 * TP_MiB, tp_stream_default(0));
  drop(wall);
  CHECK(!tp__alloc((size_t)1 << 62, tp_stream_default(0)) && tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK(!tp__alloc(((size_t)1 << 62) + 1, tp_stream_default(0)) && tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK(!tp__alloc(SIZE_MAX / 2 - 4 * TP_MiB, tp_stream_default(0)) && tp_error_status() == TP_OUT_OF_MEMORY);
  CHECK_OK(tp_memory_set_settings("roundup_power2_divisions:[1:2,2:0,>:8]"));
  expect_size(150 * TP_KiB, 192 * TP_KiB);
  expect_size(16 * TP_MiB + 1, 18 * TP_MiB);
  CHECK_OK(tp_memory_set_settings(""));
  clear();
}

static void test_blocks_of_a_threads_cache_have_the_size_that_is_asked_for_now(void) {
  tp_stream_t *stream = tp_stream_default(0);
  tp__block_t *first = take(40 * TP_KiB, stream), *second = take(40 * TP_KiB, stream);
  char *address = first->address;
  drop(first);
  CHECK_OK(tp_memory_set_settings("roundup_power2_divisions:2"));
  tp__block_t *rounded = take(40 * TP_KiB, stream);
  CHECK(rounded->nbytes == 48 * TP_KiB && rounded->address != address);
  CHECK_OK(tp_memory_set_settings(""));
  tp__block_t *again = take(40 * TP_KiB, stream);
  CHECK(again->address == address);
  drop(again);
  drop(rounded);
  drop(second);
  clear();
}

static void test_larger_segments_for_the_large_pool(void) {
  tp_stream_t *stream = tp_stream_default(0);
  CHECK_OK(tp_memory_set_settings("large_segment_size_mb:50"));
  tp__block_t *block = take(2 * TP_MiB, stream);
  CHECK(block->segment->nbytes == 50 * TP_MiB);
  tp__block_t *own = take(60 * TP_MiB, stream);
  CHECK(own->segment->nbytes == 60 * TP_MiB);
  drop(own);
  drop(block);
  CHECK_OK(tp_memory_set_settings(""));
  clear();
}

/* ---- the variables: in processes of their own, since they are read when the library is loaded ---- */

enum { OBEYED = 11, REFUSED = 12, UNCACHED = 13 };

static void be_a_process_with_a_variable(void) {
  tp_memory_settings_t found = settings();
  if (!found.caching) _exit(UNCACHED);
  if (found.max_split_size == 32 * TP_MiB) _exit(OBEYED);
  CHECK(tp_device_count() == 2); /* asking for devices says nothing of it */
  CHECK(!tp__alloc(512, tp_stream_default(0)) && tp_error_status() == TP_STATE);
  CHECK(strstr(tp_error_text(), "allocate: the variable TENSORPLAY_CUDA_ALLOC_CONF cannot be obeyed: got the key 'a'"));
  CHECK(!tp_device_is_started(0));
  CHECK(tp_memory_set_settings("b:1") == TP_INVALID_ARGUMENT);
  CHECK(!tp__alloc(512, tp_stream_default(0)) && tp_error_status() == TP_STATE);
  CHECK_OK(tp_memory_set_settings(""));
  drop(take(512, tp_stream_default(0)));
  _exit(REFUSED);
}

static void expect_process(const char *name, const char *value, int code) {
  CHECK(setenv(name, value, 1) == 0 && setenv("ALLOC_SETTINGS_CHILD", "1", 1) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", "test_alloc_settings", (char *)NULL);
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == code);
  CHECK(unsetenv(name) == 0 && unsetenv("ALLOC_SETTINGS_CHILD") == 0);
}

static void test_variables(void) {
  expect_process("TENSORPLAY_CUDA_ALLOC_CONF", "max_split_size_mb:32", OBEYED);
  expect_process("TENSORPLAY_CUDA_ALLOC_CONF", "a:b", REFUSED);
  expect_process("TENSORPLAY_NO_CUDA_MEMORY_CACHING", "", UNCACHED);
}

int main(void) {
  if (getenv("ALLOC_SETTINGS_CHILD")) be_a_process_with_a_variable();
  test_variables(); /* before this process has threads of the device */
  clear();
  test_keys_are_obeyed_and_the_others_get_their_defaults();
  test_what_cannot_be_obeyed_is_refused_and_changes_nothing();
  test_sizes_are_rounded_to_steps_between_powers_of_two();
  test_blocks_of_a_threads_cache_have_the_size_that_is_asked_for_now();
  test_larger_segments_for_the_large_pool();
  return 0;
}
