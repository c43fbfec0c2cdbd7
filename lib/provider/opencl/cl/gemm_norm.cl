/* gemm_norm.cl - what stands in front of gemm.cl where a norm follows: a program of its own, since
 * products are slower with that code behind them. */
#define NORM 1
