/* Kernel images: which file serves a family on a device, and its unpacked content. A file holds the
 * content's size (8 bytes, little-endian) and a zlib stream. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define IMAGE_NBYTES_MAX (256 * TP_MiB)
#define FOLDER_MAX 4096

typedef struct image {
  struct image *next;
  void *content; /* a NUL follows, which PTX needs */
  size_t nbytes;
  char file[96]; /* "elementwise.sm_90.z" */
} image_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static char folder[FOLDER_MAX];
static image_t *images;

tp_status_t tp_kernels_set_path(const char *path) {
  if (!path || strlen(path) >= sizeof folder)
    return tp__error_set(TP_INVALID_ARGUMENT, "kernels_set_path",
                         "got %s, expected a path of less than %d bytes", path ? "a longer path" : "NULL",
                         FOLDER_MAX);
  pthread_mutex_lock(&lock);
  strcpy(folder, path);
  pthread_mutex_unlock(&lock);
  return TP_OK;
}

static const image_t *find_loaded(const char *file) {
  for (const image_t *image = images; image; image = image->next) {
    if (strcmp(image->file, file) == 0) return image;
  }
  return NULL;
}

/* The whole file; NULL with errno set. */
static uint8_t *read_file(FILE *stream, size_t *out_nbytes) {
  if (fseek(stream, 0, SEEK_END)) return NULL;
  long size = ftell(stream);
  if (size < 0 || fseek(stream, 0, SEEK_SET)) return NULL;
  uint8_t *bytes = malloc((size_t)size + 1);
  if (!bytes) return NULL;
  *out_nbytes = fread(bytes, 1, (size_t)size, stream);
  if (*out_nbytes == (size_t)size) return bytes;
  free(bytes);
  errno = EIO;
  return NULL;
}

static tp_status_t unpack(image_t *image, const char *path, const uint8_t *bytes, size_t nbytes) {
  uint64_t size = 0;
  for (size_t i = 0; nbytes > 8 && i < 8; ++i) size |= (uint64_t)bytes[i] << (8 * i);
  if (size == 0 || size > IMAGE_NBYTES_MAX)
    return tp__error_set(TP_UNAVAILABLE, "launch", "%s is damaged: its size field holds %llu bytes", path,
                         (unsigned long long)size);
  image->nbytes = (size_t)size;
  image->content = calloc(1, image->nbytes + 1);
  if (!image->content)
    return tp__error_set(TP_HOST_MEMORY, "launch", "the host has no room for a kernel image of %zu bytes",
                         image->nbytes);
  if (tp__inflate(bytes + 8, nbytes - 8, image->content, image->nbytes)) return TP_OK;
  free(image->content);
  return tp__error_set(TP_UNAVAILABLE, "launch", "%s is damaged: it does not unpack to %zu bytes", path,
                       image->nbytes);
}

/* *out_image is NULL when there is no such file. */
static tp_status_t load(const char *file, const image_t **out_image) {
  char path[FOLDER_MAX + sizeof images->file + 1];
  *out_image = find_loaded(file);
  if (*out_image) return TP_OK;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "rbe");
  if (!stream && errno == ENOENT) return TP_OK;
  size_t nbytes = 0;
  uint8_t *bytes = stream ? read_file(stream, &nbytes) : NULL;
  int error = errno;
  if (stream) fclose(stream);
  if (!bytes) return tp__error_set(TP_UNAVAILABLE, "launch", "cannot read %s: %s", path, strerror(error));
  image_t *image = calloc(1, sizeof *image);
  tp_status_t status =
      image ? unpack(image, path, bytes, nbytes)
            : tp__error_set(TP_HOST_MEMORY, "launch", "the host has no room for a kernel image");
  free(bytes);
  if (status) {
    free(image);
    return status;
  }
  strcpy(image->file, file);
  image->next = images;
  images = image;
  *out_image = image;
  return TP_OK;
}

/* A cubin serves its own and later minor versions of its major version; PTX serves what is left. */
static tp_status_t choose(const char *family, int32_t major, int32_t minor, const image_t **out_image) {
  char file[sizeof images->file];
  for (int32_t m = minor; m >= 0; --m) {
    snprintf(file, sizeof file, "%s.sm_%d%d.z", family, (int)major, (int)m);
    TP_TRY(load(file, out_image));
    if (*out_image) return TP_OK;
  }
  snprintf(file, sizeof file, "%s.ptx.z", family);
  TP_TRY(load(file, out_image));
  if (*out_image) return TP_OK;
  return tp__error_set(TP_UNAVAILABLE, "launch",
                       "no image of the kernel family %s for compute capability %d.%d, and no PTX, in %s",
                       family, (int)major, (int)minor, folder[0] ? folder : "none: call tp_kernels_set_path");
}

tp_status_t tp__image_find(const char *family, int32_t device, const void **out_image, size_t *out_nbytes) {
  const tp_device_properties_t *properties = tp__device_properties(device);
  const image_t *image = NULL;
  pthread_mutex_lock(&lock);
  tp_status_t status = choose(family, properties->major, properties->minor, &image);
  pthread_mutex_unlock(&lock);
  if (status) return status;
  *out_image = image->content;
  *out_nbytes = image->nbytes;
  return TP_OK;
}
