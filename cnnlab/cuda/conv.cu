// Convolution: x and dx (N,C,H,W), w and dw (F,C,K,K), b and db (F), z and dz (N,F,P,Q), stride S.
// Launch with one thread per element of the output, in blocks of any size, unless a comment differs.

// Output stationary: each thread gathers the terms of its element of z.
extern "C" __global__ void conv_forward(const float* x, const float* w, const float* b, float* z,
                                        int N, int C, int H, int W, int F, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * F * P * Q) return;
    int q = i % Q, p = i / Q % P, f = i / (Q * P) % F, n = i / (Q * P * F);
    float sum = b[f];
    for (int c = 0; c < C; c++)
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++)
                sum += w[((f * C + c) * K + k) * K + l]
                       * x[((n * C + c) * H + p * S + k) * W + q * S + l];
    z[i] = sum;
}

// Gather: each thread sums over the elements of dz to which its element of x contributed.
extern "C" __global__ void conv_backward_input(const float* dz, const float* w, float* dx,
                                               int N, int C, int H, int W, int F, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * H * W) return;
    int col = i % W, row = i / W % H, c = i / (W * H) % C, n = i / (W * H * C);
    float sum = 0;
    for (int f = 0; f < F; f++)
        for (int k = row % S; k < K && k <= row; k += S)
            for (int l = col % S; l < K && l <= col; l += S) {
                int p = (row - k) / S, q = (col - l) / S;
                if (p < P && q < Q)
                    sum += w[((f * C + c) * K + k) * K + l] * dz[((n * F + f) * P + p) * Q + q];
            }
    dx[i] = sum;
}

// One block of 256 threads per weight: they share the positions, and a tree adds their sums.
extern "C" __global__ void conv_backward_weights(const float* x, const float* dz, float* dw,
                                                 int N, int C, int H, int W, int F, int K, int S)
{
    __shared__ float sums[256];
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int l = blockIdx.x % K, k = blockIdx.x / K % K;
    int c = blockIdx.x / (K * K) % C, f = blockIdx.x / (K * K * C);
    float sum = 0;
    for (int i = threadIdx.x; i < N * P * Q; i += blockDim.x) {
        int q = i % Q, p = i / Q % P, n = i / (Q * P);
        sum += x[((n * C + c) * H + p * S + k) * W + q * S + l]
               * dz[((n * F + f) * P + p) * Q + q];
    }
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) dw[blockIdx.x] = sums[0];
}

// One block per filter, and a tree of shuffles: within a warp, no shared memory.
extern "C" __global__ void conv_backward_bias(const float* dz, float* db, int N, int F, int size)
{
    __shared__ float warps[32];
    int f = blockIdx.x, lane = threadIdx.x % 32;
    float sum = 0;
    for (int i = threadIdx.x; i < N * size; i += blockDim.x)
        sum += dz[(i / size * F + f) * size + i % size];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
    if (lane == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = lane < blockDim.x / 32 ? warps[lane] : 0;
        for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
        if (lane == 0) db[f] = sum;
    }
}
