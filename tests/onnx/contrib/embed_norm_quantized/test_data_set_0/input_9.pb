Bplaces_scaleJ
×#<