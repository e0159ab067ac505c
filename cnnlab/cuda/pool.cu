// Trainable pooling, one kernel per map: x and dx (N,C,H,W), w and dw (C,K,K), b (C), z and dz
// (N,C,P,Q), stride S. Launch with one thread per element of the output, unless a comment differs.

extern "C" __global__ void pool_forward(const float* x, const float* w, const float* b, float* z,
                                        int N, int C, int H, int W, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * P * Q) return;
    int q = i % Q, p = i / Q % P, c = i / (Q * P) % C, n = i / (Q * P * C);
    float sum = b[c];
    for (int k = 0; k < K; k++)
        for (int l = 0; l < K; l++)
            sum += w[(c * K + k) * K + l] * x[((n * C + c) * H + p * S + k) * W + q * S + l];
    z[i] = sum;
}

extern "C" __global__ void pool_backward_input(const float* dz, const float* w, float* dx,
                                               int N, int C, int H, int W, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * H * W) return;
    int col = i % W, row = i / W % H, c = i / (W * H) % C, n = i / (W * H * C);
    float sum = 0;
    for (int k = row % S; k < K && k <= row; k += S)
        for (int l = col % S; l < K && l <= col; l += S) {
            int p = (row - k) / S, q = (col - l) / S;
            if (p < P && q < Q) sum += w[(c * K + k) * K + l] * dz[((n * C + c) * P + p) * Q + q];
        }
    dx[i] = sum;
}

// One block of 256 threads per weight: they share the positions, and a tree adds their sums.
extern "C" __global__ void pool_backward_weights(const float* x, const float* dz, float* dw,
                                                 int N, int C, int H, int W, int K, int S)
{
    __shared__ float sums[256];
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int l = blockIdx.x % K, k = blockIdx.x / K % K, c = blockIdx.x / (K * K);
    float sum = 0;
    for (int i = threadIdx.x; i < N * P * Q; i += blockDim.x) {
        int q = i % Q, p = i / Q % P, n = i / (Q * P);
        sum += x[((n * C + c) * H + p * S + k) * W + q * S + l]
               * dz[((n * C + c) * P + p) * Q + q];
    }
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) dw[blockIdx.x] = sums[0];
}

// Max pooling: windows are S × S and do not overlap; a thread for each window.
extern "C" __global__ void max_pool_forward(const float* x, float* z,
                                            int N, int C, int H, int W, int S)
{
    int P = H / S, Q = W / S;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * P * Q) return;
    const float* window = x + (i / (Q * P) * H + i / Q % P * S) * W + i % Q * S;
    float best = window[0];
    for (int k = 0; k < S; k++)
        for (int l = 0; l < S; l++) {
            float value = window[k * W + l];
            if (value > best || isnan(value)) best = value;  // fmaxf would pass over a NaN
        }
    z[i] = best;
}

// A thread looks for the winner of its window, the first of equals: all threads of a window find
// the same one, whose own thread writes dz. The others write 0, also beyond the last window.
extern "C" __global__ void max_pool_backward(const float* x, const float* dz, float* dx,
                                             int N, int C, int H, int W, int S)
{
    int P = H / S, Q = W / S;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C * H * W) return;
    int q = i % W / S, p = i / W % H / S, map = i / (W * H);
    float d = 0;
    if (p < P && q < Q) {
        int winner = (map * H + p * S) * W + q * S;
        for (int k = p * S; k < p * S + S; k++)
            for (int l = q * S; l < q * S + S; l++) {
                int j = (map * H + k) * W + l;
                if (!(x[j] <= x[winner] || isnan(x[winner]))) winner = j;
            }
        if (winner == i) d = dz[(map * P + p) * Q + q];
    }
    dx[i] = d;
}
