/* twin.h - a value of a frame as bodies read it on a device. It is a copy of what lies on the host,
 * made once a run; or, of a value that the plan lends (ort_plan.lent), where a part computes it.
 */
#ifndef ORT_EXEC_TWIN_H
#define ORT_EXEC_TWIN_H

#include "exec/frame.h"

/* The memory of a value that the plan lends to bodies, which a part is about to write. */
ort_status ort_frame_lent_twin(ort_frame *frame, ort_id id, ort_device *device, ort_value **value,
                               ort_error *err);
/* A copy of a value of the host. */
ort_status ort_frame_copied_twin(ort_frame *frame, ort_id id, ort_device *device,
                                 ort_value **value, ort_error *err);
/* The value's twin if it has its elements; NULL. */
ort_value *ort_frame_known_twin(const ort_frame *frame, ort_id id);
/* For profiles: this value on a device was copied. */
void ort_frame_note_copy(const ort_frame *frame, const ort_value *value, bool in);

#endif
