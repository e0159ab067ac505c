// CUDA C on a CPU: what a kernel's source needs to compile as C++. Each CUDA thread is a fibre, so
// that barriers and shuffles work as on a GPU. Blocks run one after another, on one core.
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>  // but no containers, which would double the time to compile

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __syncthreads() emulator::wait(emulator::AT_BARRIER, __LINE__)
#define __syncwarp(...) emulator::wait(emulator::AT_WARP, __LINE__)
#define __shfl_down_sync(mask, value, by) emulator::shuffle(value, emulator::lane() + (by), __LINE__)
#define __shfl_up_sync(mask, value, by) emulator::shuffle(value, emulator::lane() - (by), __LINE__)
#define __shfl_xor_sync(mask, value, by) emulator::shuffle(value, emulator::lane() ^ (by), __LINE__)
#define __shfl_sync(mask, value, from) emulator::shuffle(value, from, __LINE__)

static const int warpSize = 32;
#define gridDim emulator::index.grid
#define blockDim emulator::index.block_size
#define blockIdx emulator::index.block
#define threadIdx emulator::index.thread
#define QUIET __attribute__((no_sanitize("thread")))  // leaves the emulator's own accesses out of traces

namespace emulator {

enum State { READY, AT_BARRIER, AT_WARP, DONE };
const size_t STACK = 64 * 1024 + 320;  // the 320 spread the stacks over the cache sets
const size_t GUARD = 256;  // bytes before and after a shared array

struct Fibre {
    void* stack;
    State state;
    int line;
    uint32_t barriers, warp_steps;  // how many this thread has passed
    dim3 index;
    unsigned char value[8];  // its value in a shuffle
};

static struct { dim3 grid, block_size, block, thread; } index;
static Fibre* fibres;
static char *stacks, *dynamic_shared;
static size_t n_fibres, running, n_dynamic;  // n_dynamic: bytes of dynamic shared memory
static size_t n_blocks;  // started since the library was loaded
static void* scheduler;
static void (*body)(void**);
static void** body_arguments;
static char error[400];
static bool in_kernel = false;  // as opposed to the emulator's own code

#ifdef CNNLAB_TRACE
enum { WRITE = 1, ATOMIC = 2 };
static void note(const volatile void* address, uint32_t bytes, uint32_t flags, void* where);
static void note_shared(const char* name, void* start, size_t bytes, size_t item);
#define NOTE_ATOMIC(address) emulator::note(address, sizeof *(address), 3, __builtin_return_address(0))
#else
inline void note_shared(const char*, void*, size_t, size_t) {}
#define NOTE_ATOMIC(address)
#endif

QUIET inline unsigned lane() { return running % warpSize; }

QUIET __attribute__((noinline)) static void wait(State state, int line) {
    in_kernel = false;
    Fibre& me = fibres[running];
    me.state = state;
    me.line = line;
    emulator_switch(&me.stack, scheduler);
    (state == AT_BARRIER ? me.barriers : me.warp_steps)++;
    in_kernel = true;
}

template <class T> QUIET T shuffle(T value, unsigned from, int line) {
    static_assert(sizeof(T) <= sizeof(Fibre::value), "a shuffle moves 4 or 8 bytes");
    in_kernel = false;
    size_t first = running - lane();
    memcpy(fibres[running].value, &value, sizeof(T));
    wait(AT_WARP, line);
    in_kernel = false;
    T found = value;  // as in CUDA, the thread's own if the lane lies outside the warp
    if (from < (unsigned)warpSize && first + from < n_fibres)
        memcpy(&found, fibres[first + from].value, sizeof(T));
    wait(AT_WARP, line);
    return found;
}

// A __shared__ array: blocks run one at a time, so one copy will do. Each block finds NaN in it.
template <class T> struct Shared {
    char before[GUARD];
    alignas(16) T value;
    char after[GUARD];
    size_t block;
};
QUIET static void fresh(const char* name, void* start, size_t bytes, size_t item) {
    memset(start, 0xff, bytes);
    note_shared(name, start, bytes, item);
}
template <class T> QUIET T& shared(const char* name, Shared<T>& room) {
    bool was = in_kernel;
    in_kernel = false;
    if (room.block != n_blocks)
        fresh(name, &room.value, sizeof(T), sizeof(std::remove_all_extents_t<T>));
    room.block = n_blocks;
    in_kernel = was;
    return room.value;
}
static size_t dynamic_block = 0;  // not in the template: libraries would share it
template <class T> QUIET T* shared(const char* name) {
    in_kernel = false;
    char* start = dynamic_shared + GUARD;
    if (dynamic_block != n_blocks) fresh(name, start, n_dynamic, sizeof(T));
    dynamic_block = n_blocks;
    in_kernel = true;
    return (T*)start;
}

QUIET static void start() {
    body(body_arguments);
    in_kernel = false;
    fibres[running].state = DONE;
    emulator_switch(&fibres[running].stack, scheduler);
}

static bool fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(error, sizeof error, format, values);
    va_end(values);
    return false;
}

// Release threads [first, last) if all of them have reached the barrier (of a warp: or returned).
// Returns whether it did.
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
    size_t n = n_fibres;
    n_blocks++;
    for (size_t i = 0; i < n; i++) {
        Fibre& f = fibres[i];
        f.state = READY;
        f.barriers = f.warp_steps = 0;
        f.index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
        uintptr_t top = (uintptr_t)(stacks + (i + 1) * STACK) & ~(uintptr_t)15;
        void** frame = (void**)top - SAVED;
        for (size_t word = 0; word < SAVED; word++) frame[word] = nullptr;
        frame[RETURN] = (void*)start;
        f.stack = frame;
    }
    for (;;) {
        bool progress = false, left = false;
        for (running = 0; running < n; running++)
            if (fibres[running].state == READY) {
                threadIdx = fibres[running].index;
                emulator_switch(&scheduler, fibres[running].stack);
                if (error[0]) return false;
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
                g.state == DONE ? "never reaches: it has returned" : "does not reach");
}

static const char* run(void (*call)(void**), void** arguments, const unsigned* sizes, size_t shared) {
    gridDim = dim3(sizes[0], sizes[1], sizes[2]);
    blockDim = dim3(sizes[3], sizes[4], sizes[5]);
    n_fibres = (size_t)blockDim.x * blockDim.y * blockDim.z;
    n_dynamic = shared;
    error[0] = 0;
    body = call;
    body_arguments = arguments;
    fibres = (Fibre*)realloc(fibres, n_fibres * sizeof(Fibre));
    stacks = (char*)realloc(stacks, n_fibres * STACK);
    dynamic_shared = (char*)realloc(dynamic_shared, n_dynamic + 2 * GUARD);
    if (!fibres || !stacks || !dynamic_shared) {
        fail("no memory for %zu threads in a block", n_fibres);
        return error;
    }
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = dim3(x, y, z);
                if (!run_block()) return error;
            }
    return error;
}

template <class... A> QUIET void enter(void (*kernel)(A...), A... arguments) {
    in_kernel = true;
    kernel(arguments...);
    in_kernel = false;
}
template <class... A, size_t... I>
void apply(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    enter<A...>(kernel, *(A*)arguments[I]...);
}
template <class... A> void call(void (*kernel)(A...), void** arguments) {
    apply(kernel, arguments, std::index_sequence_for<A...>());
}

}  // namespace emulator

#define ATOMIC(name, after)                                                                  \
    template <class T> QUIET __attribute__((noinline)) T name(T* address,                    \
                                                              std::common_type_t<T> value) { \
        NOTE_ATOMIC(address);                                                                \
        T before = *address;                                                                 \
        *address = after;                                                                    \
        return before;                                                                       \
    }
ATOMIC(atomicAdd, before + value)
ATOMIC(atomicSub, before - value)
ATOMIC(atomicMax, before < value ? value : before)
ATOMIC(atomicMin, value < before ? value : before)
ATOMIC(atomicExch, value)

template <class T> T __ldg(const T* address) { return *address; }
using std::isnan;  // which CUDA C has without a namespace
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
