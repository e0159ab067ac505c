// A training step in two launches, for networks of the report's form: convolution, sigmoid, trainable
// pooling, sigmoid, fully connected, sigmoid. Images (n,C,H,W), labels (n); the parameters w lie one
// after the other: conv_w (F,C,K,K), conv_b (F), pool_w (F,S,S), pool_b (F), dense_w (O,D), dense_b (O).

#ifndef SIZES  // the launcher gives those of its network; these are the report's
#define SIZES C = 1, H = 28, W = 28, F = 6, K = 5, S = 4, O = 10
#endif
constexpr int SIZES;
constexpr int P = (H - K + 1) / S, Q = (W - K + 1) / S, WINDOWS = P * Q;  // pooling windows of a map
constexpr int D = F * WINDOWS;  // one for each thread of a block
constexpr int TAPS = C * K * K, EDGE = S + K - 1;  // a window sees EDGE x EDGE pixels, its patch
constexpr int CONV_B = F * TAPS, POOL_W = CONV_B + F, POOL_B = POOL_W + F * S * S;
constexpr int DENSE_W = POOL_B + F, DENSE_B = DENSE_W + O * D, PARAMETERS = DENSE_B + O;
constexpr int ROW = (PARAMETERS + 32) / 32 * 32;  // of partial sums: gradients, loss, and padding
constexpr int PLANE = H * W + H / S + 1;  // words of a channel in shared memory, see load_image

// Unrolled, so that an array with this index can lie in registers.
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

__device__ float sigmoid_of(float z) { return 1.0f / (1.0f + expf(-z)); }

// Copy an image to shared memory, where every S rows are followed by a word of padding: windows below
// each other then begin in different banks.
__device__ void load_image(const float* from, float* image)
{
    for (int i = threadIdx.x; i < C * H * W; i += D)
        image[i / (H * W) * PLANE + i % (H * W) + i / W % H / S] = from[i];
}

// A thread's window: from its patch, the S x S outputs y of the convolution and sigmoid. Pixels and
// outputs stay in registers, so that a weight is loaded once for S * S multiply-adds.
__device__ __forceinline__ void convolve(const float* image, const float* w, float b,
                                         float (&patch)[C][EDGE][EDGE], float (&y)[S][S])
{
    EACH(c, C) EACH(i, EDGE) EACH(j, EDGE) patch[c][i][j] = image[c * PLANE + i * W + i / S + j];
    EACH(i, S) EACH(j, S) y[i][j] = b;
    EACH(c, C) EACH(k, K) EACH(l, K) {
        float weight = w[(c * K + k) * K + l];
        EACH(i, S) EACH(j, S) y[i][j] += weight * patch[c][i + k][j + l];
    }
    EACH(i, S) EACH(j, S) y[i][j] = sigmoid_of(y[i][j]);
}

// The fully connected layer: a warp takes an output, its lanes share the D inputs. It leaves the loss
// of each output, and dz = y - onehot. A probability below 2^-24 counts as that.
__device__ void dense_loss(const float* x, const float* w, const float* b, int label, float* dz,
                           float* losses)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int o = warp; o < O && warp < D / 32; o += D / 32) {  // an incomplete warp takes none
        float sum = 0;
        for (int d = lane; d < D; d += 32) sum += w[o * D + d] * x[d];
        for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
        if (lane == 0) {
            float p = sigmoid_of(sum + b[o]), right = o == label;
            float likely = right ? p : 1.0f - p;
            dz[o] = p - right;
            losses[o] = -logf(likely < 0x1p-24f ? 0x1p-24f : likely);
        }
    }
}

// Backwards through a thread's window: dz of its pooled value, and what it still holds of the forward
// pass, give its share of the gradients, which it adds to sums in registers.
__device__ __forceinline__ void window_gradients(
    float dz, const float* pool_w, const float (&patch)[C][EDGE][EDGE], float (&y)[S][S],
    float (&conv_dw)[C][K * K], float (&conv_db)[1], float (&pool_dw)[S * S], float (&pool_db)[1])
{
    pool_db[0] += dz;
    EACH(i, S) EACH(j, S) {
        pool_dw[i * S + j] += dz * y[i][j];
        y[i][j] *= dz * pool_w[i * S + j] * (1.0f - y[i][j]);  // now dz of the convolution
        conv_db[0] += y[i][j];
    }
    EACH(i, S) EACH(j, S) EACH(c, C) EACH(k, K) EACH(l, K)
        conv_dw[c][k * K + l] += y[i][j] * patch[c][i + k][j + l];
}

// Add up what the threads of each map hold, N numbers each: out[f * step + j] is the sum of mine[j].
template <int N> __device__ void add_windows(float (*room)[WINDOWS | 1], const float (&mine)[N],
                                             float* out, int step)
{
    int f = threadIdx.x / WINDOWS, window = threadIdx.x % WINDOWS;
    __syncthreads();
    EACH(j, N) room[f * N + j][window] = mine[j];
    __syncthreads();
    for (int i = threadIdx.x; i < F * N; i += D) {
        float sum = 0;
        for (int other = 0; other < WINDOWS; other++) sum += room[i][other];
        out[i / N * step + i % N] = sum;
    }
}

// Leave a block's sums in its row of partials; those of the windows of a map are added up first.
__device__ __forceinline__ void leave_sums(
    float* row, float (*room)[WINDOWS | 1], const float (&conv_dw)[C][K * K],
    const float (&conv_db)[1], const float (&pool_dw)[S * S], const float (&pool_db)[1],
    const float (&dense_dw)[O], float dense_db, float loss, float* losses)
{
    int d = threadIdx.x;
    EACH(c, C) add_windows(room, conv_dw[c], row + c * K * K, TAPS);
    add_windows(room, conv_db, row + CONV_B, 1);
    add_windows(room, pool_dw, row + POOL_W, S * S);
    add_windows(room, pool_db, row + POOL_B, 1);
    EACH(o, O) row[DENSE_W + o * D + d] = dense_dw[o];
    if (d < O) row[DENSE_B + d] = dense_db, losses[d] = loss;
    __syncthreads();
    if (d > 0) return;
    for (int o = 1; o < O; o++) loss += losses[o];
    row[PARAMETERS] = loss;
}

// Forward and backward. A block of D threads takes an image at a time, each thread a pooling window
// of a map; the block's sums of the gradients and the loss go to its row of partials (blocks, ROW).
// A batch is the images from position[0] of the order, which wraps around after position[1] of them.
extern "C" __global__ void __launch_bounds__(D) image_gradients(
    const float* images, const int* labels, const int* order, const int* position,
    const float* w, float* partials, int batch)
{
    __shared__ float image[C * PLANE], weights[PARAMETERS], pooled[D], dz[O], losses[O];
    __shared__ float room[F * (K > S ? K * K : S * S)][WINDOWS | 1];  // rows in different banks
    int d = threadIdx.x, f = d / WINDOWS, p = d / Q % P, q = d % Q;
    float conv_dw[C][K * K] = {}, conv_db[1] = {}, pool_dw[S * S] = {}, pool_db[1] = {};
    float dense_dw[O] = {}, dense_db = 0, loss = 0;
    const float *pool_w = weights + POOL_W + f * S * S, *dense_w = weights + DENSE_W;
    for (int i = d; i < PARAMETERS; i += D) weights[i] = w[i];
    for (int number = blockIdx.x; number < batch; number += gridDim.x) {
        int chosen = order[(position[0] + number) % position[1]];
        load_image(images + chosen * C * H * W, image);
        __syncthreads();
        float patch[C][EDGE][EDGE], y[S][S], z = weights[POOL_B + f];
        convolve(image + p * (S * W + 1) + q * S, weights + f * TAPS, weights[CONV_B + f], patch, y);
        EACH(i, S) EACH(j, S) z += pool_w[i * S + j] * y[i][j];
        float x = pooled[d] = sigmoid_of(z), dx = 0;
        __syncthreads();
        dense_loss(pooled, dense_w, weights + DENSE_B, labels[chosen], dz, losses);
        __syncthreads();
        EACH(o, O) {
            dense_dw[o] += dz[o] * x;
            dx += dz[o] * dense_w[o * D + d];
        }
        if (d < O) loss += losses[d], dense_db += dz[d];
        dx *= x * (1.0f - x);
        window_gradients(dx, pool_w, patch, y, conv_dw, conv_db, pool_dw, pool_db);
    }
    leave_sums(partials + blockIdx.x * ROW, room, conv_dw, conv_db, pool_dw, pool_db, dense_dw,
               dense_db, loss, losses);
}

// Add the rows of partials (blocks, ROW), in an order that does not change; then descend, add the
// loss to the total, and go on to the next batch. A block of 32 x 8 threads takes 32 columns; each
// thread adds every eighth row.
extern "C" __global__ void add_and_update(const float* partials, float* w, float* dw,
                                          const float* rate, int* position, double* total,
                                          int blocks, int batch)
{
    __shared__ float sums[8][32];
    int i = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (i <= PARAMETERS)
        for (int row = threadIdx.y; row < blocks; row += 8) sum += partials[row * ROW + i];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || i > PARAMETERS) return;
    for (int y = 1; y < 8; y++) sum += sums[y][threadIdx.x];
    dw[i] = sum;
    if (i < PARAMETERS) w[i] -= *rate / batch * sum;
    else {  // the last column is the loss
        *total += sum;
        position[0] = (position[0] + batch) % position[1];
    }
}
