// A trace of every access. With -fsanitize=thread the compiler calls these functions before each load
// and store; here they are ours, not the sanitizer's. This file follows device.h.

namespace emulator {

struct Access {
    uint64_t address, where;  // `where` is the place in the machine code
    uint32_t block, thread, barriers, warp_steps, bytes, flags;
};
struct Array {
    uint64_t start, bytes, item;
    char name[40];
};
static Access* accesses;
static Array shared_arrays[64];
static uintptr_t arena_first, arena_last;  // the memory that holds the kernel's arguments
static size_t n_accesses, room_for, most_accesses, n_shared_arrays;

QUIET static bool within(uintptr_t at, uintptr_t first, size_t bytes) {
    return at >= first && at < first + bytes;
}

QUIET static bool known(uintptr_t at) {  // in an argument or a shared array, or near one
    if (within(at, arena_first, arena_last - arena_first)) return true;
    for (const Array* array = shared_arrays; array < shared_arrays + n_shared_arrays; array++)
        if (within(at, array->start - GUARD, array->bytes + 2 * GUARD)) return true;
    return false;
}

QUIET static void note(const volatile void* address, uint32_t bytes, uint32_t flags, void* where) {
    if (!in_kernel) return;
    in_kernel = false;
    uintptr_t at = (uintptr_t)address;
    if (!within(at, (uintptr_t)&index, sizeof index)
        && !within(at, (uintptr_t)stacks, n_fibres * STACK)) {
        unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        const Fibre& me = fibres[running];
        if (n_accesses == room_for)
            accesses = (Access*)realloc(accesses, (room_for = 2 * room_for + 1024) * sizeof(Access));
        accesses[n_accesses++] = {at, (uint64_t)where, block, (uint32_t)running, me.barriers,
                                  me.warp_steps, bytes, flags};
        if (!known(at)) fail("wild");
        if (n_accesses >= most_accesses) fail("full");
        if (error[0]) emulator_switch(&fibres[running].stack, scheduler);  // does not return
    }
    in_kernel = true;
}

static void note_shared(const char* name, void* start, size_t bytes, size_t item) {
    for (size_t i = 0; i < n_shared_arrays; i++)
        if (shared_arrays[i].start == (uint64_t)start) return;
    if (n_shared_arrays == sizeof shared_arrays / sizeof *shared_arrays) {
        fail("more than %zu shared arrays", n_shared_arrays);
        return;
    }
    Array& array = shared_arrays[n_shared_arrays++];
    array = {(uint64_t)start, bytes, item, ""};
    strncpy(array.name, name, sizeof array.name - 1);
}

}  // namespace emulator

#define HOOK(name, bytes, flags)                               \
    extern "C" QUIET void __tsan_##name(void* address)         \
    { emulator::note(address, bytes, flags, __builtin_return_address(0)); }
#define HOOKS(bytes) HOOK(read##bytes, bytes, 0) HOOK(write##bytes, bytes, emulator::WRITE)
#define UNALIGNED(bytes) \
    HOOK(unaligned_read##bytes, bytes, 0) HOOK(unaligned_write##bytes, bytes, emulator::WRITE)
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
UNALIGNED(2) UNALIGNED(4) UNALIGNED(8) UNALIGNED(16)
extern "C" QUIET void __tsan_read_range(void* address, size_t n)
{ emulator::note(address, n, 0, __builtin_return_address(0)); }
extern "C" QUIET void __tsan_write_range(void* address, size_t n)
{ emulator::note(address, n, emulator::WRITE, __builtin_return_address(0)); }
extern "C" QUIET void __tsan_func_entry(void*) {}
extern "C" QUIET void __tsan_func_exit() {}
extern "C" QUIET void __tsan_init() {}
extern "C" QUIET void __tsan_vptr_read(void*) {}
extern "C" QUIET void __tsan_vptr_update(void*, void*) {}
extern "C" QUIET void* __tsan_memcpy(void* to, const void* from, size_t n) { return memmove(to, from, n); }
extern "C" QUIET void* __tsan_memmove(void* to, const void* from, size_t n) { return memmove(to, from, n); }
extern "C" QUIET void* __tsan_memset(void* to, int value, size_t n) { return memset(to, value, n); }

extern "C" void trace_begin(uintptr_t first, uintptr_t last, size_t most) {
    emulator::arena_first = first;
    emulator::arena_last = last;
    emulator::most_accesses = most;
    emulator::n_accesses = emulator::n_shared_arrays = 0;
}
extern "C" size_t trace_accesses(const emulator::Access** first) {
    *first = emulator::accesses;
    return emulator::n_accesses;
}
extern "C" size_t trace_shared(const emulator::Array** first) {
    *first = emulator::shared_arrays;
    return emulator::n_shared_arrays;
}
