
Ba_scaleJf"