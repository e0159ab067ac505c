// The scheduler: the threads of a block take turns; each runs until it waits or has returned. In a
// shuffled schedule blocks come in a random order; in a block a random warp makes its next access,
// all its threads in step, then another.

namespace emulator {

static void (*body)(void**);
static void** body_arguments;
static uint32_t gathered;  // the lanes whose values all of their warp have
static uint64_t schedule;  // the state of the random numbers of a shuffled one, else 0

static size_t draw(size_t below) {  // Marsaglia's xorshift
    schedule ^= schedule << 13;
    schedule ^= schedule >> 7;
    schedule ^= schedule << 17;
    return schedule % below;
}

QUIET static void start() {
    body(body_arguments);
    in_kernel = false;
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

static const char* run(void (*call)(void**), void** arguments, const unsigned* sizes, size_t shared) {
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
