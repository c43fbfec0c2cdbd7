/* seen.h - what a run shows of the values that it computes, to whoever watches it.
 *
 * A watched value is shown when its step is done (ort_run_options.on_value). A session whose
 * watcher needs no more than the ends of ranges (ort_session.on_extremes) has these found while
 * values are written, and shows them in place of the value.
 */
#ifndef ORT_EXEC_SEEN_H
#define ORT_EXEC_SEEN_H

#include "kernel/extremes.h"
#include "exec/frame.h"
#include "exec/session.h"

/* What is found for a watcher of extremes, in one context. A run begins: made when that is the
 * first, emptied else; NULL where nobody wants extremes. */
ort_status ort_sights_begin(const ort_session *session, ort_sights **sights, ort_error *err);
void ort_sights_free(ort_sights *sights);

/* Runs a step that somebody may look at: its results are shown before they die. */
ort_status ort_seen_run(ort_frame *frame, ort_exec_call *c, ort_error *err);

#endif
