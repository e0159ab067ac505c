// Gradient with respect to the bias, db (F), as three reductions of dz (N,F,P,Q), size = P * Q.
// Launch with one block per filter. A fourth, with warp shuffles, is in conv.cu.

// Every thread sums all elements of its filter; the last thread stores its sum.
extern "C" __global__ void bias_serial(const float* dz, float* db, int N, int F, int size)
{
    int f = blockIdx.x;
    float sum = 0;
    for (int i = 0; i < N * size; i++) sum += dz[(i / size * F + f) * size + i % size];
    if (threadIdx.x == blockDim.x - 1) db[f] = sum;
}

// Each thread sums its share of the elements; the first adds up the partial sums.
extern "C" __global__ void bias_shared(const float* dz, float* db, int N, int F, int size)
{
    extern __shared__ float sums[];  // one per thread
    int f = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < N * size; i += blockDim.x)
        sum += dz[(i / size * F + f) * size + i % size];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int i = 1; i < blockDim.x; i++) sum += sums[i];
    db[f] = sum;
}

// The same shares, but a tree adds the partial sums: half of the threads, then a quarter, and so on.
extern "C" __global__ void bias_tree(const float* dz, float* db, int N, int F, int size)
{
    extern __shared__ float sums[];
    int f = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < N * size; i += blockDim.x)
        sum += dz[(i / size * F + f) * size + i % size];
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) db[f] = sums[0];
}
