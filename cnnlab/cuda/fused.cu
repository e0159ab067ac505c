// Fused operations: the first passes its result to the second in a register, and the preactivation z
// is never written. Shapes as in conv.cu, pool.cu and dense.cu; y has the shape of z.

__device__ float sigmoid_of(float z) { return 1.0f / (1.0f + expf(-z)); }

// Convolution and sigmoid, one thread per element of y.
extern "C" __global__ void conv_sigmoid(const float* x, const float* w, const float* b, float* y,
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
    y[i] = sigmoid_of(sum);
}

// Pooling and sigmoid, one thread per element of y.
extern "C" __global__ void pool_sigmoid(const float* x, const float* w, const float* b, float* y,
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
    y[i] = sigmoid_of(sum);
}

// Fully connected layer, sigmoid, loss and its gradient dz: one block per image, and a warp of 32
// threads for each output in turn. A probability below 2^-24 counts as that.
extern "C" __global__ void dense_loss(const float* x, const float* w, const float* b,
                                      const int* labels, float* dz, float* losses, int D, int O)
{
    __shared__ float total;
    int n = blockIdx.x, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (int o = threadIdx.x / 32; o < O; o += blockDim.x / 32) {
        float sum = 0;
        for (int d = lane; d < D; d += 32) sum += w[o * D + d] * x[n * D + d];
        for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
        if (lane == 0) {
            float p = sigmoid_of(sum + b[o]), right = o == labels[n];
            dz[n * O + o] = p - right;
            float likely = right ? p : 1.0f - p;
            atomicAdd(&total, -logf(likely < 0x1p-24f ? 0x1p-24f : likely));
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) losses[n] = total;
}

// Gradient with respect to the pooling's input, times the derivative of the sigmoid before it
// (output x).
extern "C" __global__ void pool_backward_sigmoid(const float* dz, const float* w, const float* x,
                                                 float* dx, int N, int C, int H, int W, int K, int S)
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
    dx[i] = sum * x[i] * (1.0f - x[i]);
}

// Gradient with respect to the dense layer's input, times the derivative of the sigmoid before it
// (output x).
extern "C" __global__ void dense_backward_sigmoid(const float* dz, const float* w, const float* x,
                                                  float* dx, int N, int D, int O)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * D) return;
    int d = i % D, n = i / D;
    float sum = 0;
    for (int o = 0; o < O; o++) sum += w[o * D + d] * dz[n * O + o];
    dx[i] = sum * x[i] * (1.0f - x[i]);
}

// Copy a batch to x (batch, size) and y (batch): the images from position[0] of the order, which
// wraps around after position[1] of them. One thread per pixel.
extern "C" __global__ void take_batch(const float* images, const int* labels, const int* order,
                                      const int* position, float* x, int* y, int batch, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * size) return;
    int image = order[(position[0] + i / size) % position[1]];
    x[i] = images[image * size + i % size];
    if (i % size == 0) y[i / size] = labels[image];
}

// Gradient descent, w -= rate * dw, for all parameters of the network in one array. It also advances
// the position of the batch, since a replayed graph takes no arguments.
extern "C" __global__ void update(float* w, const float* dw, float rate, int size, int* position,
                                  int batch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) w[i] -= rate * dw[i];
    if (i == 0) position[0] = (position[0] + batch) % position[1];
}
