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

// A tiled matrix product: one block of 16 x 16 threads per tile of z, one tile of x and w at a time.
extern "C" __global__ void dense_forward_tiled(const float* x, const float* w, const float* b, float* z,
                                               int N, int D, int O)
{
    __shared__ float images[16][17], weights[16][17];  // 17: rows start in different banks
    int col = threadIdx.x, row = threadIdx.y;
    int n = blockIdx.y * 16 + row, o = blockIdx.x * 16 + col;
    float sum = 0;
    for (int first = 0; first < D; first += 16) {
        int d = first + col, other = blockIdx.x * 16 + row;
        images[row][col] = n < N && d < D ? x[n * D + d] : 0.0f;
        weights[row][col] = other < O && d < D ? w[other * D + d] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += images[row][i] * weights[col][i];
        __syncthreads();
    }
    if (n < N && o < O) z[n * O + o] = sum + b[o];
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
