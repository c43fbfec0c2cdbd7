
Bb_scaleJÎ„§& ü: