
Bb_scaleJ