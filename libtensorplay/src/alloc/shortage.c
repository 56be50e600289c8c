/* What a refused request and its heap look like, kept for the thread, and the text of the error. */
#include <stdio.h>
#include <string.h>

#include "alloc.h"

static const char operation[] = "allocate";

static _Thread_local struct {
  tp_memory_shortage_t found;
  uint64_t error; /* tp__error_number() of the failure that it describes; 0: of none */
} last;

/* ---- figures ---- */

/* The streams with the largest cached blocks, the largest first. */
static void note_free(tp_memory_shortage_t *self, const tp__block_t *block) {
  uintptr_t stream = tp_stream_handle(block->stream);
  int32_t place = 0;
  while (place < self->stream_count && self->streams[place] != stream) place++;
  if (place == self->stream_count) {
    if (place == TP_SHORTAGE_STREAMS) place--; /* the stream with the smallest */
    if (place < self->stream_count && block->nbytes <= self->stream_largest_free[place]) return;
    self->stream_count = place + 1;
    self->stream_largest_free[place] = 0;
  }
  if (block->nbytes <= self->stream_largest_free[place]) return;
  for (; place > 0 && self->stream_largest_free[place - 1] < block->nbytes; place--) {
    self->streams[place] = self->streams[place - 1];
    self->stream_largest_free[place] = self->stream_largest_free[place - 1];
  }
  self->streams[place] = stream;
  self->stream_largest_free[place] = block->nbytes;
}

/* Cached blocks are those that the request could have had, were they larger. */
static void survey(tp_memory_shortage_t *self, const tp__heap_t *heap, const tp__request_t *request) {
  for (const tp__segment_t *segment = heap->segments; segment; segment = segment->next) {
    const tp__private_pool_t *owner = segment->pool->owner;
    if (!owner) self->returnable += tp__segment_idle_nbytes(segment);
    if (owner) self->private_pools += segment->nbytes;
    if (owner != request->pool->owner) continue;
    for (const tp__block_t *block = segment->first; block; block = block->next) {
      if (block->state == TP_BLOCK_FREE) note_free(self, block);
    }
  }
  self->largest_free = self->stream_count ? self->stream_largest_free[0] : 0;
}

static tp_status_t describe(tp_memory_shortage_t *self, const tp__heap_t *heap, const tp__request_t *request) {
  self->device = heap->device;
  self->requested = request->requested_nbytes;
  self->rounded = request->nbytes;
  self->limit = heap->limit;
  TP_TRY_CUDA(cudaMemGetInfo(&self->device_free, &self->device_total), operation);
  self->allocated = (size_t)heap->stats[TP_STAT_allocated_bytes];
  self->reserved = (size_t)heap->stats[TP_STAT_reserved_bytes];
  self->pending = (size_t)heap->stats[TP_STAT_active_bytes] - self->allocated;
  survey(self, heap, request);
  size_t known = self->device_free + self->reserved;
  self->others = self->device_total > known ? self->device_total - known : 0;
  size_t most = self->device_total < self->limit ? self->device_total : self->limit;
  self->is_hopeless = self->rounded > most || (self->budget.name[0] && self->rounded > self->budget.limit);
  return TP_OK;
}

/* ---- text ---- */

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

static const char *advice(const tp_memory_shortage_t *self) {
  size_t cached = self->reserved - self->allocated - self->pending;
  if (self->cause == TP_SHORTAGE_BUDGET) {
    if (self->rounded > self->budget.limit) return "The request is larger than the limit: split it, or raise it.";
    return "Drop tensors that were made in it, or raise its limit.";
  }
  if (self->rounded > self->device_total) {
    return "The request is larger than the device: split it, or use another device.";
  }
  if (self->rounded > self->limit) return "The request is larger than the limit: split it, or raise the limit.";
  if (self->is_capturing) {
    return "Cached memory is not given back during a capture: empty the cache before the capture begins.";
  }
  if (self->pending >= self->rounded) {
    return "Streams that are being captured still use memory that was given back: end the capture first.";
  }
  if (cached >= self->rounded) {
    return tp__settings()->expandable_segments
               ? "The cached memory would be enough but lies in pieces: allocate the largest tensors first, or free "
                 "the small ones between the pieces."
               : "The cached memory would be enough but lies in pieces: allocate the largest tensors first, free "
                 "the small ones between the pieces, or let segments grow (the setting expandable_segments:True).";
  }
  if (self->cause == TP_SHORTAGE_LIMIT) {
    return "The limit is reached: drop tensors of this process, or raise it with set_memory_limit.";
  }
  if (self->others > self->allocated) {
    return "Most of the device is used by other processes or libraries: end them, or use another device.";
  }
  return "Tensors of this process hold most of it: drop some, or use smaller batches or a smaller dtype.";
}

/* A sentence that is left out where there is nothing to say. */
typedef struct clause {
  char text[128];
} clause_t;

static clause_t clause(bool said, const char *format, size_t nbytes) {
  clause_t out = {""};
  if (said) snprintf(out.text, sizeof out.text, format, size_text(nbytes).text);
  return out;
}

static tp_status_t word(const tp_memory_shortage_t *self) {
  char where[64 + TP_BUDGET_NAME_ROOM];
  snprintf(where, sizeof where, "cuda:%d", (int)self->device);
  clause_t budget = {""};
  if (self->cause == TP_SHORTAGE_BUDGET) {
    snprintf(where, sizeof where, "the budget '%s'", self->budget.name);
    snprintf(budget.text, sizeof budget.text, " It holds %s of its limit of %s.", size_text(self->budget.live).text,
             size_text(self->budget.limit).text);
  }
  return tp__error_set(
      TP_OUT_OF_MEMORY, operation,
      "%s has no room for %s (%zu bytes).%s The device has %s, of which %s are free, %s are reserved here "
      "and %s are used by others. Of the reserved, %s are allocated, the largest free block has %s and %s "
      "can be returned to the driver.%s%s%s %s",
      where, size_text(self->rounded).text, self->rounded, budget.text, size_text(self->device_total).text,
      size_text(self->device_free).text, size_text(self->reserved).text, size_text(self->others).text,
      size_text(self->allocated).text, size_text(self->largest_free).text, size_text(self->returnable).text,
      clause(self->pending > 0, " Streams still use %s that were dropped.", self->pending).text,
      clause(self->private_pools > 0, " Private pools have %s.", self->private_pools).text,
      clause(self->limit != TP_NO_LIMIT, " Reserved memory is limited to %s.", self->limit).text, advice(self));
}

/* ---- refusing ---- */

static tp_status_t refuse(tp__heap_t *heap, const tp__request_t *request) {
  heap->stats[TP_STAT_num_ooms]++;
  if (last.found.cause != TP_SHORTAGE_DEVICE) heap->stats[TP_STAT_num_oom_rejections]++;
  tp__cache_drain(heap); /* what waits there is free, and is described so */
  TP_TRY(describe(&last.found, heap, request));
  tp__trace_note(heap, TP_TRACE_oom, request->pool, last.found.device_free, request->nbytes, request->stream,
                 heap->trace.origin);
  tp_status_t status = word(&last.found);
  last.error = tp__error_number();
  return status;
}

tp_status_t tp__shortage_refuse(tp__heap_t *heap, const tp__request_t *request, int32_t cause, bool capturing) {
  last.found = (tp_memory_shortage_t){.cause = cause, .is_capturing = capturing};
  return refuse(heap, request);
}

tp_status_t tp__shortage_refuse_budget(tp__heap_t *heap, const tp__request_t *request,
                                       const tp_budget_figures_t *budget) {
  heap->device = tp_stream_device(request->stream);
  TP_TRY(tp__device_enter(heap->device, operation));
  enum cudaStreamCaptureMode mode = tp__capture_relax();
  last.found = (tp_memory_shortage_t){.cause = TP_SHORTAGE_BUDGET,
                                      .is_capturing = tp__stream_is_capturing(request->stream),
                                      .budget = *budget};
  tp_status_t status = refuse(heap, request);
  tp__capture_restore(mode);
  return status;
}

/* ---- what the caller makes of it ---- */

tp_status_t tp_memory_shortage(tp_memory_shortage_t *out) {
  if (!last.error || last.error != tp__error_number())
    return tp__error_set(TP_STATE, "memory_shortage", "the thread's last failure was no shortage of memory");
  *out = last.found;
  return TP_OK;
}

tp_status_t tp_memory_repeat(int32_t device, int32_t cause) {
  const char *name = "memory_repeat";
  device = tp__device_resolve(device, name);
  if (device < 0) return device;
  TP_TRY(tp__device_check_process(name));
  tp__heap_t *heap = tp__heap(device);
  tp__heap_lock(heap);
  heap->stats[TP_STAT_num_ooms]--;
  if (cause != TP_SHORTAGE_DEVICE) heap->stats[TP_STAT_num_oom_rejections]--;
  heap->stats[TP_STAT_num_alloc_retries]++;
  tp__heap_unlock(heap);
  return TP_OK;
}
