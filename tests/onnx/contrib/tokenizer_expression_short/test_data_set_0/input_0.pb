2aa b ccc2
日本 語Bx