
Bb_scaleJçëJrü!