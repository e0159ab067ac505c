// Fully connected: x and dx (N,D), w and dw (O,D), b (O), z and dz (N,O).

// One block of 64 threads per output: they share its terms, and a tree adds their sums.
extern "C" __global__ void dense_forward(const float* x, const float* w, const float* b, float* z,
                                         int N, int D, int O)
{
    __shared__ float sums[64];
    int o = blockIdx.x % O, n = blockIdx.x / O;
    float sum = 0;
    for (int d = threadIdx.x; d < D; d += blockDim.x) sum += w[o * D + d] * x[n * D + d];
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) z[blockIdx.x] = b[o] + sums[0];
}

// One thread per element of dx.
extern "C" __global__ void dense_backward_input(const float* dz, const float* w, float* dx,
                                                int N, int D, int O)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * D) return;
    int d = i % D, n = i / D;
    float sum = 0;
    for (int o = 0; o < O; o++) sum += w[o * D + d] * dz[n * O + o];
    dx[i] = sum;
}

// One thread per weight; neighbouring threads read neighbouring elements.
extern "C" __global__ void dense_backward_weights(const float* x, const float* dz, float* dw,
                                                  int N, int D, int O)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= O * D) return;
    int d = i % D, o = i / D;
    float sum = 0;
    for (int n = 0; n < N; n++) sum += x[n * D + d] * dz[n * O + o];
    dw[i] = sum;
}
