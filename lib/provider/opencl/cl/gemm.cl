/* gemm.cl - products of matrices with strides, in two batch axes. A group makes a tile of 32 x 32:
 * strips of both operands, 16 deep, lie in local memory, and each of 8 x 8 work items makes 4 x 4
 * sums. Sums of every 128 products are added up apart, so that errors don't grow with the depth. */

#define TILE 32
#define DEEP 16
#define PART 4
#define SIDE 8
#define BLOCK 128

static float activate(int kind, float a, float b, float x)
{
    switch (kind) {
    case 1: return fmax(x, 0.0f);
    case 2: return x >= 0.0f ? x : a * x;
    case 3: return fmin(fmax(x, a), b);
    case 4: return 1.0f / (1.0f + exp(-x));
    case 5: return tanh(x);
    case 6: return fmin(fmax(a * x + b, 0.0f), 1.0f);
    case 7: return 0.5f * x * (1.0f + erf(x * 0.70710678118654752f));
    default: return x;
    }
}

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void gemm(__global const float *A, __global const float *B, __global const float *C,
          __global float *Y, int has_c, int M, int N, int K, int batch2,
          int a0, int a1, int a2, int am, int ak, int b0, int b1, int b2, int bk, int bn,
          int c0, int c1, int c2, int cm, int cn, int y0, int y1, int y2, int ym, int yn,
          float alpha, float beta, int kind, float pa, float pb)
{
    __local float As[DEEP][TILE], Bs[DEEP][TILE];
    int z1 = (int)get_group_id(2) / batch2, z2 = (int)get_group_id(2) % batch2;
    int lx = get_local_id(0), ly = get_local_id(1), l = ly * SIDE + lx;
    int n0 = (int)get_group_id(0) * TILE, m0 = (int)get_group_id(1) * TILE;
    float sum[PART][PART], acc[PART][PART];
    A += a0 + z1 * a1 + z2 * a2;
    B += b0 + z1 * b1 + z2 * b2;
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < PART; j++)
            sum[i][j] = acc[i][j] = 0.0f;
    for (int k0 = 0; k0 < K; k0 += DEEP) {
        for (int e = l; e < DEEP * TILE; e += SIDE * SIDE) {
            int k = e / TILE, t = e % TILE;
            As[k][t] = m0 + t < M && k0 + k < K ? A[(m0 + t) * am + (k0 + k) * ak] : 0.0f;
            Bs[k][t] = n0 + t < N && k0 + k < K ? B[(k0 + k) * bk + (n0 + t) * bn] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEEP; k++) {
            float av[PART], bv[PART];
            for (int i = 0; i < PART; i++)
                av[i] = As[k][ly * PART + i];
            for (int j = 0; j < PART; j++)
                bv[j] = Bs[k][j * SIDE + lx];
            for (int i = 0; i < PART; i++)
                for (int j = 0; j < PART; j++)
                    acc[i][j] += av[i] * bv[j];
        }
        if ((k0 + DEEP) % BLOCK == 0)
            for (int i = 0; i < PART; i++)
                for (int j = 0; j < PART; j++) {
                    sum[i][j] += acc[i][j];
                    acc[i][j] = 0.0f;
                }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < PART; j++) {
            int m = m0 + ly * PART + i, n = n0 + j * SIDE + lx;
            if (m >= M || n >= N)
                continue;
            float v = alpha * (sum[i][j] + acc[i][j]);
            if (has_c)
                v += beta * C[c0 + z1 * c1 + z2 * c2 + m * cm + n * cn];
            Y[y0 + z1 * y1 + z2 * y2 + m * ym + n * yn] = activate(kind, pa, pb, v);
        }
}
