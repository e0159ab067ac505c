// The scheduler: the threads of a block take turns; each runs until it waits or has returned. In a
// shuffled schedule blocks come in a random order; in a block a random warp makes its next access,
// all its threads in step, then another.

namespace emulator {

static void (*body)(void**);
static void** body_arguments;

static size_t draw(size_t below) {  // Marsaglia's xorshift
    schedule ^= schedule << 13;
    schedule ^= schedule >> 7;
    schedule ^= schedule << 17;
    return schedule % below;
}

static void start() {
    body(body_arguments);
    fibres[running].state = DONE;
    emulator_switch(&fibres[running].stack, scheduler);
}

static void new_stack(Fibre& f, size_t number) {
    f.guard = stacks + number * stack_bytes;
    size_t end = stack_bytes - 1024 - number * 320 % 4096;  // which spreads them over the cache
    void** frame = (void**)(f.guard + end) - SAVED;
    for (size_t word = 0; word < SAVED; word++) frame[word] = nullptr;
    frame[RETURN] = (void*)start;
    f.stack = frame;
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

// Release the threads of a block if all of them wait at one barrier. Returns whether they do.
static bool release_block() {
    for (size_t i = 0; i < n_fibres; i++)
        if (fibres[i].state != AT_BARRIER) return false;
    for (size_t i = 0; i < n_fibres; i++) {
        Fibre& f = fibres[i];
        if (f.place != fibres[0].place)
            return fail("block (%u, %u, %u): " THREAD " waits at a barrier in line %d that "
                        THREAD " does not reach: it waits at another, in line %d", XYZ(blockIdx),
                        XYZ(fibres[0].index), fibres[0].line, XYZ(f.index), f.line);
    }
    for (size_t i = 0; i < n_fibres; i++) fibres[i].state = READY;
    return true;
}

static bool stuck() {
    size_t one = 0, other = 0;
    while (fibres[one].state == DONE) one++;
    while (other < n_fibres && fibres[other].state == fibres[one].state) other++;
    const Fibre &f = fibres[one], &g = fibres[other < n_fibres ? other : one];
    return fail("block (%u, %u, %u): " THREAD " waits at a barrier in line %d that " THREAD " %s",
                XYZ(blockIdx), XYZ(f.index), f.line, XYZ(g.index),
                g.state == DONE ? "never reaches: it has returned" : "does not reach");
}

static bool run_block() {
    size_t n = n_fibres, n_stacks = 0, n_done = 0, n_warps = (n + warpSize - 1) / warpSize;
    n_blocks++;
    n_shared = 0;
    dim3 at(0, 0, 0);
    for (size_t i = 0; i < n; i++) {
        Fibre& f = fibres[i];
        f.stack = nullptr;
        f.state = READY;
        f.barriers = f.warp_steps = f.step = 0;
        f.left = false;
        f.known = 1u << i % warpSize;
        f.index = at;
        if (++at.x == blockDim.x) at.x = 0, at.y++;
        if (at.y == blockDim.y) at.y = 0, at.z++;
    }
    while (n_done < n) {
        bool progress = false;
        size_t chosen = schedule ? draw(n_warps) : 0;
        for (size_t k = 0; k < n_warps && !(schedule && progress); k++) {
            running = (chosen + k) % n_warps * warpSize;
            for (size_t end = running + warpSize; running < n && running < end; running++) {
                Fibre& f = fibres[running];
                if (f.state != READY) continue;
                bool first = !f.stack;
                if (first) new_stack(f, n_stacks);
                threadIdx = f.index;
                emulator_switch((void**)&scheduler, f.stack);
                scheduler = nullptr;
                if (interrupted) fail("interrupted");
                if (error[0]) return false;
                progress = true;
                n_done += f.state == DONE;
                n_stacks += first && f.state != DONE;  // or the next thread can have the stack
            }
        }
        if (n_done == n) break;
        for (size_t first = 0; first < n; first += warpSize)
            progress |= release_warp(first, first + warpSize < n ? first + warpSize : n);
        progress |= release_block();
        if (error[0]) return false;
        if (!progress) return stuck();
    }
    for (size_t i = 0; i < n; i++) gathered &= fibres[i].known;
    return true;
}

const char* run(void (*call)(void**), void** arguments, const unsigned* sizes, size_t shared) {
    gridDim = dim3(sizes[0], sizes[1], sizes[2]);
    blockDim = dim3(sizes[3], sizes[4], sizes[5]);
    n_fibres = (size_t)blockDim.x * blockDim.y * blockDim.z;
    n_dynamic = shared;
    error[0] = 0;
    body = call;
    body_arguments = arguments;
    fibres = (Fibre*)realloc((void*)fibres, n_fibres * sizeof(Fibre));
    if (!fibres) return "no memory for the threads of a block";
    size_t total = (size_t)gridDim.x * gridDim.y * gridDim.z;
    size_t* order = (size_t*)malloc(total * sizeof(size_t));
    if (!order) return "no memory for the order of the blocks";
    for (size_t k = 0; k < total; k++) {
        size_t other = schedule ? draw(k + 1) : k;
        order[k] = order[other];
        order[other] = k;
    }
    gathered = 0xffffffff;
    catch_signals();
    for (size_t k = 0; k < total; k++) {
        size_t row = order[k] / gridDim.x;
        blockIdx = dim3(order[k] % gridDim.x, row % gridDim.y, row / gridDim.y);
        choose(k, total);
        if (!run_block()) break;
    }
    leave_signals();
    free(order);
    return error;
}

}  // namespace emulator
