
BscaleJª¼A¼l¸µd·-