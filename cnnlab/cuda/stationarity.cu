// The convolution's gradients in other orders: x and dx (N,C,H,W), w and dw (F,C,K,K), dz (N,F,P,Q),
// stride S. Threads that share an output add to it atomically; set it to zero before the launch.

// Scatter: each thread keeps its element of dz, and adds its share to every pixel it came from.
extern "C" __global__ void conv_backward_input_scatter(const float* dz, const float* w, float* dx,
                                                       int N, int C, int H, int W, int F, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * F * P * Q) return;
    int q = i % Q, p = i / Q % P, f = i / (Q * P) % F, n = i / (Q * P * F);
    float grad = dz[i];
    for (int c = 0; c < C; c++)
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++)
                atomicAdd(&dx[((n * C + c) * H + p * S + k) * W + q * S + l],
                          w[((f * C + c) * K + k) * K + l] * grad);
}

// Weight stationary: one block per weight, which it keeps while its threads share the positions.
extern "C" __global__ void conv_backward_input_by_weight(const float* dz, const float* w, float* dx,
                                                         int N, int C, int H, int W, int F, int K,
                                                         int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int l = blockIdx.x % K, k = blockIdx.x / K % K;
    int c = blockIdx.x / (K * K) % C, f = blockIdx.x / (K * K * C);
    float weight = w[blockIdx.x];
    for (int i = threadIdx.x; i < N * P * Q; i += blockDim.x) {
        int q = i % Q, p = i / Q % P, n = i / (Q * P);
        atomicAdd(&dx[((n * C + c) * H + p * S + k) * W + q * S + l],
                  weight * dz[((n * F + f) * P + p) * Q + q]);
    }
}

// Scatter: each thread keeps its element of dz, and adds to every weight of its filter.
extern "C" __global__ void conv_backward_weights_scatter(const float* x, const float* dz, float* dw,
                                                         int N, int C, int H, int W, int F, int K,
                                                         int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * F * P * Q) return;
    int q = i % Q, p = i / Q % P, f = i / (Q * P) % F, n = i / (Q * P * F);
    float grad = dz[i];
    for (int c = 0; c < C; c++)
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++)
                atomicAdd(&dw[((f * C + c) * K + k) * K + l],
                          x[((n * C + c) * H + p * S + k) * W + q * S + l] * grad);
}

// First of two stages: the gradient of each image, parts (N, F*C*K*K). One thread per element.
extern "C" __global__ void conv_backward_weights_parts(const float* x, const float* dz, float* parts,
                                                       int N, int C, int H, int W, int F, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1, n_weights = F * C * K * K;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * n_weights) return;
    int n = i / n_weights, l = i % K, k = i / K % K, c = i / (K * K) % C, f = i / (K * K * C) % F;
    float sum = 0;
    for (int p = 0; p < P; p++)
        for (int q = 0; q < Q; q++)
            sum += x[((n * C + c) * H + p * S + k) * W + q * S + l]
                   * dz[((n * F + f) * P + p) * Q + q];
    parts[i] = sum;
}

// Second stage: sum the rows of parts (n, size). One thread per column.
extern "C" __global__ void add_parts(const float* parts, float* sum, int n, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    float total = 0;
    for (int row = 0; row < n; row++) total += parts[row * size + i];
    sum[i] = total;
}
