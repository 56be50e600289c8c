/* cuBLASLt: how products are described to it, plans, workspaces, and the way back to the tiled kernel. */
#include <dlfcn.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "products.h"
#include "tp_emulated.h"

static int *searches, *products, *refuses, *compute, *epilogue;
static size_t *workspace;

static void copy(void *target, const void *source, size_t nbytes, void *stream) {
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaMemcpy(target, source, nbytes, cudaMemcpyDefault) == cudaSuccess);
}

/* Compiles the fake beside this file and loads it. */
static void load_fake(void) {
  char source[] = __FILE__, path[] = "/tmp/fake_cublaslt_XXXXXX", command[1024];
  char *slash = strrchr(source, '/');
  CHECK(slash);
  *slash = 0;
  int file = mkstemp(path);
  CHECK(file >= 0 && close(file) == 0);
  const char *compiler = getenv("CC");
  int length = snprintf(command, sizeof command, "%s -shared -fPIC -O2 -o %s %s/fake_cublaslt.c -lm",
                        compiler && *compiler ? compiler : "gcc", path, source);
  CHECK(length > 0 && (size_t)length < sizeof command && system(command) == 0);
  CHECK(tp_blas_is_loaded() == 0);
  CHECK_OK(tp_blas_load(path));
  CHECK(tp_blas_is_loaded() == 1);
  void *fake = dlopen(path, RTLD_NOW);
  CHECK(fake && unlink(path) == 0);
  void (*connect)(void (*)(void *, const void *, size_t, void *));
  *(void **)&connect = dlsym(fake, "fake_connect");
  connect(copy);
  searches = dlsym(fake, "fake_searches");
  products = dlsym(fake, "fake_products");
  refuses = dlsym(fake, "fake_refuses");
  compute = dlsym(fake, "fake_compute");
  epilogue = dlsym(fake, "fake_epilogue");
  workspace = dlsym(fake, "fake_workspace");
  CHECK(searches && products && refuses && compute && epilogue && workspace);
}

static void check_all(void) {
  for (size_t t = 0; t < 4; ++t) {
    test_shapes(floating_dtypes[t]);
    test_layouts(floating_dtypes[t]);
    test_linear(floating_dtypes[t]);
    test_linear_gelu(floating_dtypes[t]);
    test_addmm(floating_dtypes[t]);
  }
  test_complex(TP_DTYPE_complex64);
  test_complex(TP_DTYPE_complex128);
}

static void test_a_library_without_the_functions(void) {
  CHECK(tp_blas_load("libm.so.6") == TP_UNAVAILABLE);
  CHECK(strstr(tp_error_text(), "cublasLtCreate") && tp_blas_is_loaded() == 0);
  CHECK(tp_blas_load(NULL) == TP_INVALID_ARGUMENT);
}

/* Every product but those without inner elements goes to cuBLASLt. */
static void test_products(void) {
  int before = *products;
  check_all();
  CHECK(*products > before + 500);
}

static void test_plans_are_kept(void) {
  tp_tensor_t *a = values_random(TP_DTYPE_float32, 2, (int64_t[]){33, 34}, NULL);
  tp_tensor_t *b = values_random(TP_DTYPE_float32, 2, (int64_t[]){34, 35}, NULL);
  check_matmul(a, b);
  int searched = *searches, made = *products;
  for (int i = 0; i < 5; ++i) check_matmul(a, b);
  CHECK(*searches == searched && *products == made + 5);
  /* The bias is an address of the call, not of the plan. */
  for (int i = 0; i < 3; ++i) {
    double *values;
    tp_tensor_t *bias = values_random(TP_DTYPE_float32, 1, (int64_t[]){34}, &values);
    tp_tensor_t *weight = tp_tensor_alias(a), *turned = tp_tensor_transpose(a, 0, 1);
    tp_tensor_t *cut = tp_tensor_slice(bias, 0, 0, 33, 1), *rows = tp_tensor_transpose(b, 0, 1);
    tp_tensor_t *result = tp_linear(rows, weight, cut);
    check_values(result, rows, turned, values);
    free(values);
    tp_tensor_t *tensors[] = {bias, weight, turned, cut, rows, result};
    for (size_t t = 0; t < 6; ++t) tp_tensor_release(tensors[t]);
  }
  CHECK(*searches == searched + 1);
  tp_tensor_release(a);
  tp_tensor_release(b);
}

/* Only float32 is multiplied in TF32, only where that is allowed, and by a plan of its own. */
static void test_tf32(void) {
  enum { EXACT = 68, EXACT_F64 = 70, TF32 = 77 }; /* cublasComputeType_t */
  static const struct {
    int32_t dtype, allowed;
    int compute;
  } cases[] = {
      {TP_DTYPE_float32, 1, TF32},  {TP_DTYPE_float32, 0, EXACT},     {TP_DTYPE_complex64, 1, TF32},
      {TP_DTYPE_bfloat16, 1, EXACT}, {TP_DTYPE_float64, 1, EXACT_F64},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    tp_tensor_t *a = values_random(cases[c].dtype, 2, (int64_t[]){36, 36}, NULL);
    int searched = *searches;
    tp_blas_allow_tf32(cases[c].allowed);
    tp_tensor_t *result = tp_matmul(a, a, NULL);
    CHECK(result && *searches == searched + 1 && *compute == cases[c].compute);
    tp_tensor_release(result);
    tp_tensor_release(a);
  }
  tp_blas_allow_tf32(0);
}

/* GELU is asked for with the product, by plans of their own; of float64, for which there is none, it comes after. */
static void test_gelu(void) {
  enum { BIAS = 4, GELU = 32, GELU_BIAS = 36 }; /* cublasLtEpilogue_t */
  static const int32_t dtypes[] = {TP_DTYPE_float16, TP_DTYPE_bfloat16, TP_DTYPE_float32, TP_DTYPE_float64};
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t) {
    bool fused = dtypes[t] != TP_DTYPE_float64;
    tp_tensor_t *a = values_random(dtypes[t], 2, (int64_t[]){37, 38}, NULL);
    tp_tensor_t *weight = values_random(dtypes[t], 2, (int64_t[]){39, 38}, NULL);
    tp_tensor_t *bias = values_random(dtypes[t], 1, (int64_t[]){39}, NULL);
    int searched = *searches, made = *products;
    tp_tensor_t *plain = tp_linear(a, weight, bias);
    CHECK(plain && *searches == searched + 1 && *epilogue == BIAS);
    tp_tensor_t *both = tp_linear_gelu(a, weight, bias, 1);
    CHECK(both && *searches == searched + 1 + fused && *epilogue == (fused ? GELU_BIAS : BIAS));
    tp_tensor_t *again = tp_linear_gelu(a, weight, bias, 1), *linear = tp_linear(a, weight, bias);
    CHECK(again && linear && *searches == searched + 1 + fused && *products == made + 4);
    tp_tensor_t *exact = tp_linear_gelu(a, weight, bias, 0); /* which cuBLASLt does not have */
    CHECK(exact && *searches == searched + 1 + fused);
    tp_tensor_t *bare = tp_linear_gelu(a, weight, NULL, 1);
    CHECK(bare && *searches == searched + 2 + fused && (!fused || *epilogue == GELU));
    tp_tensor_t *tensors[] = {a, weight, bias, plain, both, again, linear, exact, bare};
    for (size_t r = 0; r < 9; ++r) tp_tensor_release(tensors[r]);
  }
}

/* The workspace is an ordinary block for the time of the call: nothing stays allocated. */
static void test_workspace(void) {
  *workspace = 3 * TP_MiB;
  tp_tensor_t *a = values_random(TP_DTYPE_float16, 2, (int64_t[]){18, 19}, NULL);
  tp_tensor_t *b = values_random(TP_DTYPE_float16, 2, (int64_t[]){19, 20}, NULL);
  int64_t allocated = tp_memory_stat(0, TP_STAT_allocated_bytes);
  int64_t sum = tp_memory_stat(0, TP_STAT_allocated_bytes + TP_FIGURE_ALLOCATED);
  int made = *products;
  check_matmul(a, b);
  CHECK(*products == made + 1);
  CHECK(tp_memory_stat(0, TP_STAT_allocated_bytes) == allocated);
  CHECK(tp_memory_stat(0, TP_STAT_allocated_bytes + TP_FIGURE_ALLOCATED) - sum >= (int64_t)(3 * TP_MiB));
  *workspace = 0;
  tp_tensor_release(a);
  tp_tensor_release(b);
}

/* What cuBLASLt does not take, the tiled kernel does; it is asked once. */
static void test_refused_products_are_tiled(void) {
  *refuses = 1;
  int made = *products;
  tp_tensor_t *a = values_random(TP_DTYPE_bfloat16, 2, (int64_t[]){41, 42}, NULL);
  tp_tensor_t *b = values_random(TP_DTYPE_bfloat16, 2, (int64_t[]){42, 43}, NULL);
  int searched = *searches;
  for (int i = 0; i < 3; ++i) check_matmul(a, b);
  CHECK(*searches == searched + 1 && *products == made);
  *refuses = 0;
  tp_tensor_release(a);
  tp_tensor_release(b);
}

int main(void) {
  values_start();
  test_a_library_without_the_functions();
  load_fake();
  test_products();
  test_plans_are_kept();
  test_tf32();
  test_gelu();
  test_workspace();
  test_refused_products_are_tiled();
  CHECK_OK(tp_device_synchronize(0));
  return 0;
}
