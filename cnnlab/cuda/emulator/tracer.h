// A trace of every access, if asked for. With -fsanitize=thread the compiler calls these functions
// before each load and store; here they are ours, not the sanitizer's. With -fsanitize=bounds it calls
// another for an index outside of an array whose size it knows.

namespace emulator {

struct Access {
    uint64_t address, where, step;  // the place in the machine code; the iterations of its loops
    uint32_t block, thread, barriers, warp_steps, bytes, flags;
};
struct Array {
    uint64_t start, bytes, item, shared;
    char name[40];
};
struct Window { uint64_t start, end; };  // memory that may be accessed: an argument and around it
struct Beyond { uint64_t where; int64_t index; uint32_t size, block, thread, times; };
struct Partial { uint64_t before; uint32_t block, warp, lanes, unused; };  // accesses before it
struct Touch { uint64_t address; uint32_t block, flags; };  // of a block's: the first of a sector
template <class Row> struct Rows {  // as many as there is memory for
    Row* first;
    size_t n, room;
    void add(const Row& row) {
        if (n == room) first = (Row*)realloc(first, (room = 2 * room + 1024) * sizeof(Row));
        first[n++] = row;
    }
    void clear() {
        free(first);
        *this = {};
    }
};
static Rows<Access> accesses;
static Rows<Touch> touches;
static Rows<Partial> partials;
static bool watched;  // whether this block is traced
static uint32_t* latest;  // for each sector of all windows, 1 + its latest touch; null: no trace
static Array arrays[64];
static const Window* windows;
static Beyond beyond[65];  // the last: for what finds no room
static size_t most_accesses, n_arrays, n_windows, n_beyond;
static const size_t SECTOR = 32;  // bytes: the least that a GPU fetches
enum { FETCH = 4 };  // of a touch: the block reads the sector before it writes there
static size_t n_watched, n_to_watch, n_before;  // blocks that are traced; accesses of earlier ones
static const size_t SAMPLE = 4;  // a sample has this part of the accesses that there is room for

static bool known(uintptr_t at) {
    for (const Window* w = windows; w < windows + n_windows; w++)
        if (at >= w->start && at < w->end) return true;
    for (const Array* a = arrays; a < arrays + n_arrays; a++) {
        size_t guard = a->shared ? GUARD : 0;
        if (at >= a->start - guard && at < a->start + a->bytes + guard) return true;
    }
    return false;
}

static uint32_t block_number() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }

// All blocks if the first lets expect that there is room for them; else some at the start, as
// neighbours may race, some evenly spread, and the last, where guards are missing.
static void choose(size_t block, size_t total) {
    if (block == 0) n_watched = 0, n_to_watch = total;
    if (block == 1 && accesses.n > most_accesses / total)
        n_to_watch = most_accesses / SAMPLE / accesses.n;
    size_t half = n_to_watch / 2 + 1;
    watched = n_to_watch >= total || block < half || block + 1 == total
              || block * half / total != (block - 1) * half / total;
    watched = watched && most_accesses && (block == 0 || accesses.n < most_accesses);
    n_watched += watched;
    n_before = accesses.n;
}

// Which sectors of the arguments a block touches, of every block; a cache's simulation asks for them.
static void touch(uintptr_t at, uint32_t bytes, uint32_t flags) {
    uint32_t* sector = latest;
    const Window* w = windows;
    while (w < windows + n_windows && (at < w->start || at >= w->end))
        sector += (w->end - w->start) / SECTOR, w++;
    if (w == windows + n_windows) return;
    sector += (at - w->start) / SECTOR;
    uintptr_t end = at + bytes < w->end ? at + bytes : w->end;
    for (uintptr_t start = at / SECTOR * SECTOR; start < end; start += SECTOR, sector++) {
        if (!*sector || touches.first[*sector - 1].block != block_number()) {
            touches.add({start, block_number(), flags == WRITE ? 0u : FETCH});
            *sector = touches.n;
        }
        touches.first[*sector - 1].flags |= flags;
    }
}

void note(const volatile void* address, uint32_t bytes, uint32_t flags, void* where) {
    if (!in_kernel || !latest) return;
    uintptr_t at = (uintptr_t)address;
    bool own = at - (uintptr_t)&index < sizeof index || at - (uintptr_t)stacks < 1024 * stack_bytes;
    if (schedule && !own) wait(READY, 0, 0);  // other warps may come first
    in_kernel = false;
    touch(at, bytes, flags & (WRITE | ATOMIC));
    if (watched && !own) {
        const Fibre& me = fibres[running];
        accesses.add({at, (uint64_t)where, me.step, block_number(), (uint32_t)running, me.barriers,
                      me.warp_steps, bytes, flags});
        if (flags != FENCE && !known(at)) fail("wild");
        if (accesses.n >= most_accesses && n_watched == 1) fail("full");
        if (accesses.n >= most_accesses && n_watched > 1) {  // leave this block out, and all others
            n_watched--;
            accesses.n = most_accesses = n_before;
            watched = false;
        }
    }
    back_to_kernel();
}

static void note_partial(uint32_t warp, uint32_t lanes) {  // a __syncwarp of some of a warp's lanes
    if (watched) partials.add({accesses.n, block_number(), warp, lanes, 0});
}

void note_array(const char* name, const void* start, size_t bytes, size_t item, bool shared) {
    if (!latest) return;
    for (size_t i = 0; i < n_arrays; i++)
        if (arrays[i].start == (uint64_t)start) return;
    if (n_arrays == sizeof arrays / sizeof *arrays) {
        fail("expected at most %zu shared arrays, got more", n_arrays);
        return;
    }
    Array& array = arrays[n_arrays++];
    array = {(uint64_t)start, bytes, item, shared, ""};
    strncpy(array.name, name, sizeof array.name - 1);
}

// An array's own index far outside stops the kernel, as it could hit a stack.
static void note_beyond(int64_t index, const char* type, void* where) {
    const char* extent = strchr(type, '[');
    unsigned size = extent ? strtoul(extent + 1, nullptr, 10) : 0;
    bool far = index < -64 || index >= (int64_t)size + 64;
    Beyond* seen = beyond;
    while (seen < beyond + n_beyond && (seen->where != (uint64_t)where || far)) seen++;
    if (seen == beyond + n_beyond && n_beyond < 64)
        beyond[n_beyond++] = {(uint64_t)where, index, size, block_number(), (uint32_t)running, 0};
    seen->times++;
    if (!far) return;
    fail("beyond");
    stop();
}

}  // namespace emulator

#define HOOK(name, bytes, flags)                               \
    extern "C" void __tsan_##name(void* address)               \
    { emulator::note(address, bytes, flags, __builtin_return_address(0)); }
#define HOOKS(kind, bytes) \
    HOOK(kind##read##bytes, bytes, 0) HOOK(kind##write##bytes, bytes, emulator::WRITE)
HOOKS(, 1) HOOKS(, 2) HOOKS(, 4) HOOKS(, 8) HOOKS(, 16)
HOOKS(unaligned_, 2) HOOKS(unaligned_, 4) HOOKS(unaligned_, 8) HOOKS(unaligned_, 16)
extern "C" void __tsan_read_range(void* address, size_t n)
{ emulator::note(address, n, 0, __builtin_return_address(0)); }
extern "C" void __tsan_write_range(void* address, size_t n)
{ emulator::note(address, n, emulator::WRITE, __builtin_return_address(0)); }
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_vptr_read(void*) {}
extern "C" void __tsan_vptr_update(void*, void*) {}
extern "C" void* __tsan_memcpy(void* to, const void* from, size_t n) { return memmove(to, from, n); }
extern "C" void* __tsan_memmove(void* to, const void* from, size_t n) { return memmove(to, from, n); }
extern "C" void* __tsan_memset(void* to, int value, size_t n) { return memset(to, value, n); }

extern "C" void __ubsan_handle_out_of_bounds(EmulatorPlace* about, uintptr_t index) {
    unsigned width = 1u << (about->other->info >> 1);  // bits of the index's type
    int64_t value = width <= 32 && about->other->info & 1 ? (int32_t)index : (int64_t)index;
    emulator::note_beyond(value, about->type->name, __builtin_return_address(0));
}

extern "C" void emulator_globals();  // which notes the source's __device__ variables
EXPORT void trace_end() {  // give the memory back
    emulator::accesses.clear();
    emulator::touches.clear();
    emulator::partials.clear();
    free(emulator::latest);
    emulator::latest = nullptr;
}
EXPORT void trace_begin(const emulator::Window* windows, size_t n, size_t most, uint64_t schedule) {
    trace_end();  // of a launch that was interrupted
    emulator::schedule = schedule;
    emulator::windows = windows;
    emulator::n_windows = n;
    emulator::most_accesses = most;
    emulator::n_arrays = emulator::n_beyond = 0;
    size_t sectors = 0;
    for (size_t i = 0; i < n; i++) sectors += (windows[i].end - windows[i].start) / emulator::SECTOR;
    emulator::latest = (uint32_t*)calloc(sectors + 1, sizeof(uint32_t));
    emulator_globals();
}
#define ROWS(name, rows, count)                      \
    EXPORT size_t trace_##name(const void** first) { \
        *first = emulator::rows;                     \
        return emulator::count;                      \
    }
ROWS(accesses, accesses.first, accesses.n)
ROWS(touches, touches.first, touches.n)
ROWS(partials, partials.first, partials.n)
ROWS(arrays, arrays, n_arrays)
ROWS(beyond, beyond, n_beyond)
EXPORT uint32_t trace_gathered() { return emulator::gathered; }
EXPORT size_t trace_watched() { return emulator::n_watched; }
