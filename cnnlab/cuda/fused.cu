// What a step needs beside the operations: a batch, the last layer with its loss, the update. Shapes as
// in dense.cu. How other layers fuse with their sigmoids, `with_sigmoid` of step.py says.

__device__ float sigmoid_of(float z) { return 1.0f / (1.0f + expf(-z)); }

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
