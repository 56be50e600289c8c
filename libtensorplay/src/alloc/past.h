/* What comes before the next work of a stream, in a capture. */
#ifndef TP_PAST_H
#define TP_PAST_H

#include "alloc.h"

/* ---- past.c ---- */

typedef struct tp__past tp__past_t;
/* What comes before the next node of a stream, in CUDA's capture that it takes part in now, which may be that of a
 * conditional node's body; NULL where it takes part in none, and without host memory. It is good for as long as nothing
 * is captured. */
tp__past_t *tp__past_new(const tp_stream_t *stream);
void tp__past_delete(tp__past_t *past);
/* Whether all that another stream of the capture holds by now is part of it. */
bool tp__past_holds(tp__past_t *past, const tp_stream_t *other);

#endif
