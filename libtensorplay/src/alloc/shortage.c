/* What a refused request and its heap look like, and the text of the error. */
#include <stdio.h>

#include "alloc.h"

static const char operation[] = "allocate";

typedef struct size_text {
  char text[48];
} size_text_t;

static size_text_t size_text(size_t nbytes) {
  size_text_t out;
  if (nbytes >= TP_GiB) {
    snprintf(out.text, sizeof out.text, "%.2f GiB", (double)nbytes / (double)TP_GiB);
  } else if (nbytes >= TP_MiB) {
    snprintf(out.text, sizeof out.text, "%.2f MiB", (double)nbytes / (double)TP_MiB);
  } else if (nbytes >= TP_KiB) {
    snprintf(out.text, sizeof out.text, "%.2f KiB", (double)nbytes / (double)TP_KiB);
  } else {
    snprintf(out.text, sizeof out.text, "%zu bytes", nbytes);
  }
  return out;
}

typedef struct shortage {
  size_t nbytes;
  size_t total, free, others;   /* of the device; used by others */
  size_t allocated, reserved;
  size_t largest, returnable;   /* of what is reserved */
  size_t pending;               /* given back, but used by streams that are being captured */
  bool capturing;
} shortage_t;

static const char *advice(const shortage_t *self) {
  size_t cached = self->reserved - self->allocated;
  if (self->nbytes > self->total) {
    return "The request is larger than the device: split it, or use another device.";
  }
  if (self->capturing) {
    return "Cached memory is not given back during a capture: empty the cache before the capture begins.";
  }
  if (self->pending >= self->nbytes) {
    return "Streams that are being captured still use memory that was given back: end the capture first.";
  }
  if (cached >= self->nbytes) {
    return "The cached memory would be enough but lies in pieces: allocate the largest tensors first, or "
           "free the small ones between the pieces.";
  }
  if (self->others > self->allocated) {
    return "Most of the device is used by other processes or libraries: end them, or use another device.";
  }
  return "Tensors of this process hold most of it: drop some, or use smaller batches or a smaller dtype.";
}

tp_status_t tp__shortage_refuse(tp__heap_t *heap, const tp__request_t *request, bool capturing) {
  size_t nbytes = request->nbytes;
  shortage_t self = {.nbytes = nbytes, .capturing = capturing};
  heap->stats[TP_STAT_num_ooms]++;
  TP_TRY_CUDA(cudaMemGetInfo(&self.free, &self.total), operation);
  const int64_t *stats = heap->stats;
  self.allocated = (size_t)stats[TP_STAT_allocated_bytes];
  self.reserved = (size_t)stats[TP_STAT_reserved_bytes];
  self.pending = (size_t)stats[TP_STAT_active_bytes] - self.allocated;
  self.largest = tp__pool_largest_free(heap);
  self.returnable = tp__segment_idle_nbytes(heap);
  size_t known = self.free + self.reserved;
  self.others = self.total > known ? self.total - known : 0;
  return tp__error_set(
      TP_OUT_OF_MEMORY, operation,
      "cuda:%d has no room for %s (%zu bytes). The device has %s, of which %s are free, %s are reserved here "
      "and %s are used by others. Of the reserved, %s are allocated, the largest free block has %s and %s "
      "can be returned to the driver. %s",
      heap->device, size_text(nbytes).text, nbytes, size_text(self.total).text, size_text(self.free).text,
      size_text(self.reserved).text, size_text(self.others).text, size_text(self.allocated).text,
      size_text(self.largest).text, size_text(self.returnable).text, advice(&self));
}
