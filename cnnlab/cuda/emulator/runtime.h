// What kernels call while they run, and the state of a launch.
#include <cstdarg>
#include <cstdio>
#include <signal.h>

namespace emulator {

Index index;
Fibre* fibres;
size_t running, n_blocks;
volatile bool in_kernel = false;
static size_t n_fibres, n_dynamic, n_shared;  // bytes of shared memory: the dynamic, and what a block has
static void* volatile scheduler;  // null while it runs itself
static char error[400];
static uint32_t gathered;  // the lanes whose values all of their warp have
static uint64_t schedule;  // the state of the random numbers of a shuffled one, else 0
enum { HERE = 1, ELSEWHERE };  // the thread of the process that noted Ctrl-C
static volatile sig_atomic_t interrupted;

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

void stop() {
    in_kernel = false;
    emulator_switch(&fibres[running].stack, scheduler);
}

void back_to_kernel(bool was) {
    if (interrupted || error[0]) stop();
    in_kernel = was;
}

uint64_t wait(State state, unsigned place, int line) {
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

uint64_t meet(State state, uint32_t mask, uint64_t value, unsigned from, int line) {
    Fibre& me = fibres[running];
    me.mask = mask;
    me.value = value;
    me.from = from;
    if (!(mask >> running % warpSize & 1)) {
        fail("line %d: " THREAD " is not in its own mask, 0x%08x", line, XYZ(me.index), mask);
        stop();
    }
    return wait(state, 0, line);
}

void bad_width(int line, int width) {
    fail("line %d: expected a width of 1, 2, 4, 8, 16 or 32, got %d", line, width);
    stop();
}

const size_t MOST_SHARED = 48 * 1024;
void fresh(const char* name, void* start, size_t bytes, size_t item) {
    memset(start, 0xff, bytes);
    note_array(name, start, bytes, item, true);
    n_shared += bytes;
    if (n_shared <= MOST_SHARED) return;
    fail("expected at most %zu bytes of shared memory in a block, got %zu with %s", MOST_SHARED,
         n_shared, name);
    stop();
}
alignas(16) static char dynamic_shared[MOST_SHARED + 2 * GUARD];
void* dynamic(const char* name, size_t item) {
    static size_t block;
    bool was = in_kernel;
    in_kernel = false;
    char* start = dynamic_shared + GUARD;
    if (block != n_blocks) fresh(name, start, n_dynamic, item);
    block = n_blocks;
    back_to_kernel(was);
    return start;
}

const size_t MOST_PRINTED = 1 << 20;  // bytes of a launch, as on a GPU
static char printed[MOST_PRINTED + 1];
static size_t n_printed;

int print(const char* format, ...) {
    bool was = in_kernel;
    in_kernel = false;
    va_list values;
    va_start(values, format);
    int n = vsnprintf(printed + n_printed, MOST_PRINTED + 1 - n_printed, format, values);
    va_end(values);
    n_printed = n_printed + n < MOST_PRINTED ? n_printed + n : MOST_PRINTED;
    back_to_kernel(was);
    return n;
}

void broken(const char* what, int line) {
    in_kernel = false;
    fail("line %d: " THREAD " of block (%u, %u, %u) stops: %s", line, XYZ(fibres[running].index),
         XYZ(blockIdx), what);
    stop();
}

}  // namespace emulator

// What C++ leaves undefined; the compiler calls these, see its -fsanitize, and says where.
struct EmulatorType { uint16_t kind, info; char name[1]; };  // as the sanitizer lays them out
struct EmulatorPlace { const char* file; uint32_t line, column; EmulatorType *type, *other; };
#define UNDEFINED(name, ...)                                                         \
    extern "C" void __ubsan_handle_##name(EmulatorPlace* at, uintptr_t, uintptr_t) { \
        char text[200];                                                              \
        snprintf(text, sizeof text, __VA_ARGS__);                                    \
        emulator::broken(text, at->line);                                            \
    }
UNDEFINED(type_mismatch_v1, "misaligned address: %s must lie at a multiple of its size", at->type->name)
UNDEFINED(float_cast_overflow, "a float that is NaN or outside of %s becomes one: a GPU takes the nearest, "
          "and 0 for NaN", at->other->name)
UNDEFINED(shift_out_of_bounds, "%s is shifted by less than 0 or by all of its bits", at->type->name)

EXPORT const char* emulator_printed() {
    emulator::printed[emulator::n_printed] = 0;
    emulator::n_printed = 0;
    return emulator::printed;
}
