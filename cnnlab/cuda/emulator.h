// CUDA C on a CPU: what a kernel's source needs to compile as C++. A fibre for every CUDA thread, so
// that barriers and shuffles mean what they say. One block runs after the other, on one core.
#pragma once
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static  // one block at a time, so one copy will do
#define __syncthreads() emulator::wait(emulator::AT_BARRIER, __LINE__)
#define __syncwarp(...) emulator::wait(emulator::AT_WARP, __LINE__)
#define __shfl_down_sync(mask, value, by) emulator::shuffle(mask, value, emulator::lane() + (by), __LINE__)
#define __shfl_xor_sync(mask, value, by) emulator::shuffle(mask, value, emulator::lane() ^ (by), __LINE__)
#define __shfl_sync(mask, value, from) emulator::shuffle(mask, value, from, __LINE__)

static dim3 gridDim, blockDim, blockIdx, threadIdx;
static const int warpSize = 32;

namespace emulator {

enum State { READY, AT_BARRIER, AT_WARP, DONE };
const size_t STACK = 64 * 1024;

struct Fibre {
    ucontext_t context;
    State state;
    int line;
    dim3 index;
    unsigned char value[8];  // what it offers in a shuffle
};

static std::vector<Fibre> fibres;
static std::unique_ptr<char[]> stacks;
static size_t n_stacks = 0;
static std::vector<char> dynamic_shared;
static ucontext_t scheduler;
static size_t running;
static void (*body)(void**);
static void** body_arguments;
static char error[400];

inline unsigned lane() { return running % warpSize; }

inline void wait(State state, int line) {
    fibres[running].state = state;
    fibres[running].line = line;
    swapcontext(&fibres[running].context, &scheduler);
}

template <class T> T shuffle(unsigned mask, T value, unsigned from, int line) {
    static_assert(sizeof(T) <= sizeof(Fibre::value), "a shuffle moves 4 or 8 bytes");
    size_t first = running - lane(), me = running;
    memcpy(fibres[me].value, &value, sizeof(T));
    wait(AT_WARP, line);
    T found = value;  // as in CUDA, a lane outside the warp gives the thread its own value
    if (from < (unsigned)warpSize && first + from < fibres.size())
        memcpy(&found, fibres[first + from].value, sizeof(T));
    wait(AT_WARP, line);
    return found;
}

static void start() {
    body(body_arguments);
    fibres[running].state = DONE;
    swapcontext(&fibres[running].context, &scheduler);
}

static bool fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(error, sizeof error, format, values);
    va_end(values);
    return false;
}

static void resume(size_t i) {
    running = i;
    threadIdx = fibres[i].index;
    swapcontext(&scheduler, &fibres[i].context);
}

// Let every waiting group that is complete go on; false if nobody can, though some are waiting.
static bool release(size_t first, size_t last, State state) {
    size_t waiting = 0, done = 0;
    for (size_t i = first; i < last; i++) {
        waiting += fibres[i].state == state;
        done += fibres[i].state == DONE;
    }
    if (!waiting || waiting + (state == AT_WARP ? done : 0) < last - first) return false;
    for (size_t i = first; i < last; i++)
        if (fibres[i].state == state) fibres[i].state = READY;
    return true;
}

static bool run_block() {
    size_t n = fibres.size();
    for (size_t i = 0; i < n; i++) {
        Fibre& f = fibres[i];
        f.state = READY;
        f.index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = stacks.get() + i * STACK;
        f.context.uc_stack.ss_size = STACK;
        makecontext(&f.context, start, 0);
    }
    for (;;) {
        bool progress = false, left = false;
        for (size_t i = 0; i < n; i++)
            if (fibres[i].state == READY) {
                resume(i);
                progress = true;
            }
        for (size_t first = 0; first < n; first += warpSize)
            progress |= release(first, first + warpSize < n ? first + warpSize : n, AT_WARP);
        progress |= release(0, n, AT_BARRIER);
        for (size_t i = 0; i < n; i++) left |= fibres[i].state != DONE;
        if (!left) return true;
        if (!progress) break;
    }
    size_t stuck = 0, other = 0;
    while (fibres[stuck].state == DONE) stuck++;
    while (other < n && fibres[other].state == fibres[stuck].state) other++;
    Fibre &f = fibres[stuck], &g = fibres[other < n ? other : stuck];
    return fail("block (%u, %u, %u): thread (%u, %u, %u) waits at a barrier in line %d that thread "
                "(%u, %u, %u) %s", blockIdx.x, blockIdx.y, blockIdx.z, f.index.x, f.index.y,
                f.index.z, f.line, g.index.x, g.index.y, g.index.z,
                g.state == DONE ? "never comes to: it has returned" : "does not come to");
}

static const char* run(void (*call)(void**), void** arguments, const unsigned* sizes, size_t shared) {
    gridDim = dim3(sizes[0], sizes[1], sizes[2]);
    blockDim = dim3(sizes[3], sizes[4], sizes[5]);
    size_t n = (size_t)blockDim.x * blockDim.y * blockDim.z;
    error[0] = 0;
    body = call;
    body_arguments = arguments;
    fibres.resize(n);
    if (n_stacks < n) stacks.reset(new char[(n_stacks = n) * STACK]);
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = dim3(x, y, z);
                dynamic_shared.assign(shared, (char)0xff);  // NaN, as a reminder to write first
                if (!run_block()) return error;
            }
    return error;
}

template <class... A, size_t... I>
void apply(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*(A*)arguments[I]...);
}
template <class... A> void call(void (*kernel)(A...), void** arguments) {
    apply(kernel, arguments, std::index_sequence_for<A...>());
}

}  // namespace emulator

template <class T> T atomicAdd(T* address, T value) {
    T before = *address;
    *address = before + value;
    return before;
}
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
