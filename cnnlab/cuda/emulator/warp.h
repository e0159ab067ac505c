// What the threads of a warp do together. CUDA wants all threads that the mask names to take part,
// unless they have returned; the value of a lane that takes no part is undefined: here, NaN or -1.

namespace emulator {

QUIET inline unsigned lane() { return running % warpSize; }
inline unsigned mask_of(unsigned mask = 0xffffffff) { return mask; }

QUIET __attribute__((noinline)) static uint64_t meet(State state, uint32_t mask, uint64_t value,
                                                     unsigned from, int line) {
    Fibre& me = fibres[running];
    me.mask = mask;
    me.value = value;
    me.from = from;
    if (!(mask >> lane() & 1)) {
        fail("line %d: " THREAD " is not in its own mask, 0x%08x", line, XYZ(me.index), mask);
        stop();
    }
    return wait(state, 0, line);
}

inline bool power_of_two(int width) { return width > 0 && width <= warpSize && !(width & (width - 1)); }

template <class T> QUIET T shuffle(int line, unsigned mask, T value, unsigned from, int width) {
    static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
    if (!power_of_two(width)) {
        fail("line %d: expected a width of 1, 2, 4, 8, 16 or 32, got %d", line, width);
        stop();
    }
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = meet(AT_SHUFFLE, mask, bits, from, line);
    memcpy(&value, &bits, sizeof(T));
    return value;
}
// A lane outside of the segment of `width` lanes: as in CUDA, the thread finds its own value.
template <class T> QUIET T down(int line, unsigned mask, T value, unsigned by, int width = warpSize) {
    unsigned last = lane() | (width - 1);
    return shuffle(line, mask, value, by <= last - lane() ? lane() + by : lane(), width);
}
template <class T> QUIET T up(int line, unsigned mask, T value, unsigned by, int width = warpSize) {
    return shuffle(line, mask, value, by <= (lane() & (width - 1)) ? lane() - by : lane(), width);
}
template <class T> QUIET T crossed(int line, unsigned mask, T value, unsigned by, int width = warpSize) {
    unsigned other = lane() ^ by, last = lane() | (width - 1);
    return shuffle(line, mask, value, other <= last ? other : lane(), width);
}
template <class T> QUIET T indexed(int line, unsigned mask, T value, unsigned at, int width = warpSize) {
    return shuffle(line, mask, value, (lane() & ~(width - 1)) | (at & (width - 1)), width);
}
QUIET inline unsigned vote(int line, unsigned mask, bool value) {
    return meet(AT_VOTE, mask, value, 0, line);
}

// After a __syncwarp: if its mask has all lanes, it is a step of the warp; else it orders some.
static void synchronized(size_t first, size_t last, uint32_t mask, uint32_t group) {
    bool all = (mask | ~(0xffffffff >> (warpSize - (last - first)))) == 0xffffffff;
    for (size_t i = first; all && i < last; i++) fibres[i].warp_steps += group >> (i - first) & 1;
    if (!all) note_partial(first / warpSize, group);
}

// Give each thread of a group what it asked for. `first` is the first thread of the warp.
static bool exchange(size_t first, uint32_t group) {
    uint64_t values[32], known[32] = {}, ballot = 0;
    for (unsigned i = 0; i < 32; i++)
        if (group >> i & 1) {
            values[i] = fibres[first + i].value;
            known[i] = fibres[first + i].known;
            ballot |= uint64_t(values[i] != 0) << i;
        }
    for (unsigned i = 0; i < 32; i++) {
        if (!(group >> i & 1)) continue;
        Fibre& f = fibres[first + i];
        if (f.state == AT_VOTE) f.value = ballot;
        if (f.state == AT_SHUFFLE) f.value = group >> f.from & 1 ? values[f.from] : ~uint64_t(0);
        if (f.state == AT_SHUFFLE) f.known |= known[f.from];
        bool there = f.state == AT_SHUFFLE && first + f.from < n_fibres;
        if (there && !(group >> f.from & 1) && f.mask >> f.from & 1)
            return fail("line %d: " THREAD " takes the value of " THREAD ", which has returned",
                        f.line, XYZ(f.index), XYZ(fibres[first + f.from].index));
        f.state = READY;
    }
    return true;
}

// Release the threads of a warp that wait for nobody else. Returns whether there were any.
static bool release_warp(size_t first, size_t last) {
    bool released = false;
    for (size_t i = first; i < last; i++) {
        const Fibre& f = fibres[i];
        if (f.state < AT_WARP) continue;
        uint32_t group = 0;
        bool complete = true;
        for (size_t j = first; j < last; j++) {
            const Fibre& g = fibres[j];
            if (!(f.mask >> (j - first) & 1)) continue;
            if (g.state == f.state && g.mask == f.mask)
                group |= 1u << (j - first);
            else if (g.state == DONE && !g.left)
                return fail("line %d: " THREAD " meets with its warp, but " THREAD ", which its "
                            "mask names, never gets there", f.line, XYZ(f.index), XYZ(g.index));
            else if (g.state != DONE)
                complete = false;
        }
        if (!complete) continue;
        if (f.state == AT_WARP) synchronized(first, last, f.mask, group);
        if (!exchange(first, group)) return false;
        released = true;
    }
    return released;
}

}  // namespace emulator

#define __syncwarp(...) \
    ((void)emulator::meet(emulator::AT_WARP, emulator::mask_of(__VA_ARGS__), 0, 0, __LINE__))
#define __shfl_sync(...) emulator::indexed(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) emulator::up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) emulator::down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) emulator::crossed(__LINE__, __VA_ARGS__)
#define __ballot_sync(mask, p) emulator::vote(__LINE__, mask, p)
#define __any_sync(mask, p) ((int)(emulator::vote(__LINE__, mask, p) != 0))
#define __all_sync(mask, p) ((int)(emulator::vote(__LINE__, mask, !(p)) == 0))
