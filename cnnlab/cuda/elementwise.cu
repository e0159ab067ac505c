// Elementwise operations, one thread per element; and the loss, one thread per image.

extern "C" __global__ void sigmoid(const float* z, float* y, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) y[i] = 1.0f / (1.0f + expf(-z[i]));
}

extern "C" __global__ void sigmoid_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}

extern "C" __global__ void relu(const float* z, float* y, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) y[i] = z[i] <= 0 ? 0 : z[i];  // fmaxf would make a 0 of NaN
}

extern "C" __global__ void relu_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = y[i] <= 0 ? 0 : dy[i];
}

// Binary cross-entropy of the sigmoids y (N,O) and the labels (N): the losses (N) of the images, and
// the gradient with respect to the preactivation, dz (N,O) = y - onehot. A probability below 2^-24
// counts as that.
extern "C" __global__ void cross_entropy(const float* y, const int* labels, float* dz, float* losses,
                                         int N, int O)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N) return;
    float loss = 0;
    for (int o = 0; o < O; o++) {
        float right = o == labels[n], p = y[n * O + o];
        dz[n * O + o] = p - right;
        float likely = right ? p : 1.0f - p;
        loss -= logf(likely < 0x1p-24f ? 0x1p-24f : likely);  // fmaxf would swallow NaN
    }
    losses[n] = loss;
}
