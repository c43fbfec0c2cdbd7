
BblockJÿ<h¼h¸D1¾0J·£º>«=±