// CUDA C on a CPU: what a kernel's source needs to compile as C++. Each CUDA thread is a fibre, so
// that barriers and shuffles work as on a GPU. Blocks run one after another, on one core.
#include <cfloat>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // Bessel functions and their like: half of the time to parse
#include <math.h>  // which gives CUDA's overloads for float, as <cmath> does in std only
#include <signal.h>
#include <stdlib.h>
#include <type_traits>
#include <utility>  // but no containers, which would double the time to compile

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

static const int warpSize = 32;
#define gridDim emulator::index.grid
#define blockDim emulator::index.block_size
#define blockIdx emulator::index.block
#define threadIdx emulator::index.thread
#define EXPORT extern "C" __attribute__((visibility("default")))  // the rest is a library's own
#define QUIET __attribute__((no_sanitize("thread")))  // leaves the emulator's own accesses out of traces

namespace emulator {

enum { WRITE = 1, ATOMIC = 2, READ_ONLY = 8, COMPARED = 16, FENCE = 32 };  // flags of an access
enum State { READY, DONE, AT_BARRIER, AT_WARP, AT_SHUFFLE, AT_VOTE };
const size_t GUARD = 256;  // bytes before and after a shared array
const size_t MOST_SHARED = 48 * 1024;

struct Fibre {
    void* stack;  // null before its first turn
    char* guard;  // where its stack ends
    State state;
    int line;              // where it waits
    unsigned place;        // which of the source's barriers that is
    uint32_t mask, from;   // in a warp: the lanes that take part, and the one to read
    uint32_t known;        // the lanes whose values it has by shuffles, and its own
    uint64_t value;        // what it gives, and what it finds
    uint32_t barriers, warp_steps;  // how many this thread has passed; shuffles order no memory
    uint64_t step;  // a number for the iteration of each loop that it is in
    bool left;             // it has reached a `return;`
    dim3 index;
};

static struct { dim3 grid, block_size, block, thread; } index;
static Fibre* fibres;
static size_t n_fibres, running;
static size_t n_dynamic, n_shared;  // bytes of shared memory: the dynamic, and what a block has
static size_t n_blocks;  // started since the library was loaded
static void* volatile scheduler;  // null while it runs itself
static char error[400];
static volatile bool in_kernel = false;  // as opposed to the emulator's own code; signals ask

// A message for Python; false, so that a function can say that it failed.
static bool fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(error, sizeof error, format, values);
    va_end(values);
    return false;
}

// "thread (0, 0, 0) of block (0, 0, 0)": the format and its arguments.
#define THREAD "thread (%u, %u, %u)"
#define XYZ(at) (at).x, (at).y, (at).z

// End the launch from within a thread; does not return.
QUIET static void stop() {
    in_kernel = false;
    emulator_switch(&fibres[running].stack, scheduler);
}

enum { HERE = 1, ELSEWHERE };  // the thread of the process that noted Ctrl-C
static volatile sig_atomic_t interrupted;

QUIET static void back_to_kernel(bool was = true) {
    if (interrupted || error[0]) stop();
    in_kernel = was;
}

QUIET __attribute__((noinline)) static uint64_t wait(State state, unsigned place, int line) {
    in_kernel = false;
    Fibre& me = fibres[running];
    me.state = state;
    me.place = place;
    me.line = line;
    emulator_switch(&me.stack, scheduler);
    me.barriers += state == AT_BARRIER;
    in_kernel = true;
    return me.value;
}

QUIET inline void left() { fibres[running].left = true; }

#ifdef CNNLAB_TRACE
// A loop, which a trace's source has around each of its own: it numbers the iterations. A thread that
// leaves is where it was before, however many it has made.
class Loop {
    uint64_t around, number, count = 0;
    bool before = true;
public:
    QUIET Loop(uint64_t number) : around(fibres[running].step), number(number) {}
    QUIET ~Loop() { fibres[running].step = around; }
    QUIET bool once() { return before ? !(before = false) : false; }
    QUIET bool next() {
        uint64_t key = ((around ^ number) * 0x9e3779b97f4a7c15 ^ ++count) * 0xbf58476d1ce4e5b9;
        fibres[running].step = key ^ key >> 29;
        return true;
    }
};
static bool watched;  // whether this block is traced
static void choose(size_t block, size_t total);
static void note(const volatile void* address, uint32_t bytes, uint32_t flags, void* where);
static void note_array(const char* name, const void* start, size_t bytes, size_t item, bool shared);
static void note_partial(uint32_t warp, uint32_t lanes);
#else
inline void choose(size_t, size_t) {}
inline void note_array(const char*, const void*, size_t, size_t, bool) {}
inline void note_partial(uint32_t, uint32_t) {}
inline void note(const volatile void*, uint32_t, uint32_t, void*) {}
#endif
#define PLACE __builtin_return_address(0)
#define NOTE(address, flags) \
    (emulator::aligned(address, PLACE), emulator::note(address, sizeof *(address), flags, PLACE))

// A __shared__ array: blocks run one at a time, so one copy will do. Each block finds NaN in it.
template <class T> struct Shared {
    char before[GUARD];
    alignas(16) T value;
    char after[GUARD];
    size_t block;
};
QUIET static void fresh(const char* name, void* start, size_t bytes, size_t item) {
    memset(start, 0xff, bytes);
    note_array(name, start, bytes, item, true);
    n_shared += bytes;
    if (n_shared <= MOST_SHARED) return;
    fail("expected at most %zu bytes of shared memory in a block, got %zu with %s", MOST_SHARED,
         n_shared, name);
    stop();
}
template <class T> QUIET T& shared(const char* name, Shared<T>& room) {
    bool was = in_kernel;
    in_kernel = false;
    if (room.block != n_blocks)
        fresh(name, (void*)&room.value, sizeof(T), sizeof(std::remove_all_extents_t<T>));
    room.block = n_blocks;
    back_to_kernel(was);
    return room.value;
}

alignas(16) static char dynamic_shared[MOST_SHARED + 2 * GUARD];
static size_t dynamic_block = 0;  // not in the template: libraries would share it
template <class T> QUIET T* shared(const char* name) {
    bool was = in_kernel;
    in_kernel = false;
    char* start = dynamic_shared + GUARD;
    if (dynamic_block != n_blocks) fresh(name, start, n_dynamic, sizeof(T));
    dynamic_block = n_blocks;
    back_to_kernel(was);
    return (T*)start;
}
template <class T> void note_global(const char* name, const T& variable) {
    note_array(name, (const void*)&variable, sizeof(T), sizeof(std::remove_all_extents_t<T>), false);
}
template <class T> struct Dynamic {  // an extern __shared__ array outside of functions
    const char* name;
    QUIET operator T*() const { return shared<T>(name); }
};

}  // namespace emulator

#define __syncthreads() ((void)emulator::wait(emulator::AT_BARRIER, __COUNTER__, __LINE__))
