// CUDA C on a CPU: what a kernel's source needs to compile as C++. Each CUDA thread is a fibre, so
// that barriers and shuffles work as on a GPU. Blocks run one after another, on one core. This file,
// warp.h and functions.h stand before the source; the others are compiled once, for all sources.
#include <cfloat>
#include <climits>
#include <cstdint>
#include <cstring>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // Bessel functions and their like: half of the time to parse
#include <math.h>  // which gives CUDA's overloads for float, as <cmath> does in std only
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

#pragma GCC visibility push(hidden)  // also of what is only declared
namespace emulator {

enum { WRITE = 1, ATOMIC = 2, READ_ONLY = 8, COMPARED = 16, FENCE = 32 };  // flags of an access
enum State { READY, DONE, AT_BARRIER, AT_WARP, AT_SHUFFLE, AT_VOTE };
const size_t GUARD = 256;  // bytes before and after a shared array

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

extern struct Index { dim3 grid, block_size, block, thread; } index;
extern Fibre* fibres;
extern size_t running;   // the fibre that does
extern size_t n_blocks;  // started since the library was loaded
extern volatile bool in_kernel;  // as opposed to the emulator's own code; signals ask

void stop();  // end the launch from within a thread; does not return
void stop_at(void* place, const char* what);
uint64_t wait(State state, unsigned place, int line);
void back_to_kernel(bool was = true);
void fresh(const char* name, void* start, size_t bytes, size_t item);
void* dynamic(const char* name, size_t item);
void note(const volatile void* address, uint32_t bytes, uint32_t flags, void* where);
void note_array(const char* name, const void* start, size_t bytes, size_t item, bool shared);
const char* run(void (*call)(void**), void** arguments, const unsigned* sizes, size_t shared);

// warp.h and functions.h
uint64_t meet(State state, uint32_t mask, uint64_t value, unsigned from, int line);
void bad_width(int line, int width);
int print(const char* format, ...) __attribute__((format(printf, 1, 2)));
void broken(const char* what, int line);

}  // namespace emulator
#pragma GCC visibility pop

namespace emulator {

QUIET inline void left() { fibres[running].left = true; }

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

template <class T> QUIET void aligned(T* address, void* place) {
    if ((uintptr_t)address % alignof(T))
        stop_at(place, "stops: misaligned address: it must lie at a multiple of its value's size");
}
#define PLACE __builtin_return_address(0)
#ifdef CNNLAB_TRACE
#define NOTE(address, flags) \
    (emulator::aligned(address, PLACE), emulator::note(address, sizeof *(address), flags, PLACE))
#else
#define NOTE(address, flags) emulator::aligned(address, PLACE)
#endif

// A __shared__ array: blocks run one at a time, so one copy will do. Each block finds NaN in it.
template <class T> struct Shared {
    char before[GUARD];
    alignas(16) T value;
    char after[GUARD];
    size_t block;
};
template <class T> QUIET T& shared(const char* name, Shared<T>& room) {
    bool was = in_kernel;
    in_kernel = false;
    if (room.block != n_blocks)
        fresh(name, (void*)&room.value, sizeof(T), sizeof(std::remove_all_extents_t<T>));
    room.block = n_blocks;
    back_to_kernel(was);
    return room.value;
}
template <class T> QUIET T* shared(const char* name) { return (T*)dynamic(name, sizeof(T)); }
template <class T> void note_global(const char* name, const T& variable) {
    note_array(name, (const void*)&variable, sizeof(T), sizeof(std::remove_all_extents_t<T>), false);
}
template <class T> struct Dynamic {  // an extern __shared__ array outside of functions
    const char* name;
    QUIET operator T*() const { return shared<T>(name); }
};

template <class... A, size_t... I>
QUIET void apply(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    in_kernel = true;
    kernel(*(A*)arguments[I]...);
    in_kernel = false;
}
template <class... A> void call(void (*kernel)(A...), void** arguments) {
    apply(kernel, arguments, std::index_sequence_for<A...>());
}

}  // namespace emulator

#define __syncthreads() ((void)emulator::wait(emulator::AT_BARRIER, __COUNTER__, __LINE__))
