// Convolution forward with less traffic: x (N,C,H,W), w (F,C,K,K), b (F), z (N,F,P,Q), stride S.

// One block per square tile of an image's outputs. It loads its pixels once, with the halo around
// them, into shared memory, where all threads and filters reuse them. Launch with blocks of
// (side, side) threads and C * edge * edge floats of shared memory, edge = (side - 1) * S + K.
extern "C" __global__ void conv_forward_tiled(const float* x, const float* w, const float* b, float* z,
                                              int N, int C, int H, int W, int F, int K, int S)
{
    extern __shared__ float tile[];
    int P = (H - K) / S + 1, Q = (W - K) / S + 1, n = blockIdx.z;
    int edge = (blockDim.x - 1) * S + K;
    int top = blockIdx.y * blockDim.y * S, left = blockIdx.x * blockDim.x * S;
    int n_threads = blockDim.x * blockDim.y;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < C * edge * edge; i += n_threads) {
        int col = left + i % edge, row = top + i / edge % edge, c = i / (edge * edge);
        tile[i] = row < H && col < W ? x[((n * C + c) * H + row) * W + col] : 0.0f;
    }
    __syncthreads();
    int p = blockIdx.y * blockDim.y + threadIdx.y, q = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= P || q >= Q) return;
    for (int f = 0; f < F; f++) {
        float sum = b[f];
        for (int c = 0; c < C; c++)
            for (int k = 0; k < K; k++)
                for (int l = 0; l < K; l++)
                    sum += w[((f * C + c) * K + k) * K + l]
                           * tile[(c * edge + threadIdx.y * S + k) * edge + threadIdx.x * S + l];
        z[((n * F + f) * P + p) * Q + q] = sum;
    }
}

// One thread per position and group of four filters: each pixel it loads serves four sums, which
// stay in registers.
extern "C" __global__ void conv_forward_four_filters(const float* x, const float* w, const float* b,
                                                     float* z, int N, int C, int H, int W, int F,
                                                     int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1, groups = (F + 3) / 4;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * groups * P * Q) return;
    int q = i % Q, p = i / Q % P, first = i / (Q * P) % groups * 4, n = i / (Q * P * groups);
    int taps = C * K * K, last = F - 1;  // a group's missing filters repeat the last one
    const float* w0 = w + first * taps;
    const float* w1 = w + min(first + 1, last) * taps;
    const float* w2 = w + min(first + 2, last) * taps;
    const float* w3 = w + min(first + 3, last) * taps;
    float sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (int c = 0; c < C; c++)
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++) {
                float pixel = x[((n * C + c) * H + p * S + k) * W + q * S + l];
                int tap = (c * K + k) * K + l;
                sum0 += w0[tap] * pixel;
                sum1 += w1[tap] * pixel;
                sum2 += w2[tap] * pixel;
                sum3 += w3[tap] * pixel;
            }
    float* out = z + ((n * F + first) * P + p) * Q + q;
    out[0] = sum0 + b[first];
    if (first + 1 < F) out[P * Q] = sum1 + b[first + 1];
    if (first + 2 < F) out[2 * P * Q] = sum2 + b[first + 2];
    if (first + 3 < F) out[3 * P * Q] = sum3 + b[first + 3];
}
