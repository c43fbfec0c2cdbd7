B
beta_scaleJ
×#<