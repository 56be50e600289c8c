/* Kernel images and launches: what is missing or damaged is named, and does no harm to what comes later. */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "internal.h"

static char folder[] = P_tmpdir "/tensorplay-test-XXXXXX";

static void write_image(const char *family, const void *bytes, size_t nbytes) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s.sm_90.z", folder, family);
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, nbytes, file) == nbytes && fclose(file) == 0);
}

static void remove_image(const char *family) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s.sm_90.z", folder, family);
  CHECK(unlink(path) == 0);
}

static void check_unavailable(const char *word) {
  tp_tensor_t *tensor = tp_tensor_arange_int(0, 1, 4, TP_DTYPE_int32, 0);
  CHECK(!tensor && tp_error_status() == TP_UNAVAILABLE);
  CHECK(strstr(tp_error_text(), word));
}

static void test_path(void) {
  char longer[5000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  CHECK(tp_kernels_set_path(NULL) == TP_INVALID_ARGUMENT);
  CHECK(tp_kernels_set_path(longer) == TP_INVALID_ARGUMENT);
}

static void test_images(void) {
  check_unavailable("in none: call tp_kernels_set_path");
  CHECK_OK(tp_kernels_set_path(folder));
  check_unavailable("fill");
  check_unavailable("9.0");
  check_unavailable(folder);
  static const uint8_t sizes[][8] = {{0}, {16, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    uint8_t bytes[24] = {0};
    memcpy(bytes, sizes[i], 8);
    write_image("fill", bytes, i == 0 ? 5 : sizeof bytes);
    check_unavailable("damaged");
  }
  remove_image("fill");
}

/* After the failures: the image is found once it is there, and a kernel that it does not have is named. */
static void test_launch(void) {
  CHECK_OK(tp_kernels_set_path(TP_TEST_KERNELS));
  tp_tensor_t *tensor = tp_tensor_arange_int(0, 1, 4, TP_DTYPE_int32, 0);
  CHECK(tensor);
  static const tp__access_t nothing[] = {{0}};
  static tp__kernel_t missing = TP_KERNEL_INIT("fill", "tp_k_no_such_kernel", nothing);
  int arguments = 0;
  CHECK(tp__launch_tiles(&missing, 0, 4, 4, &arguments, "test") != TP_OK);
  CHECK(strstr(tp_error_text(), "tp_k_no_such_kernel"));
  tp_tensor_release(tensor);
}

static void test_grid(void) {
  CHECK(tp__launch_grid(1, 100) == 1 && tp__launch_grid(100, 100) == 1);
  CHECK(tp__launch_grid(101, 100) == 2);
  CHECK(tp__launch_grid(INT64_MAX / 2, 100) == INT32_MAX);
}

int main(void) {
  CHECK(mkdtemp(folder));
  test_path();
  test_images();
  test_launch();
  test_grid();
  CHECK(rmdir(folder) == 0);
  return 0;
}
