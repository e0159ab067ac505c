// What the threads of a warp do together. CUDA wants all threads that the mask names to take part,
// unless they have returned; the value of a lane that takes no part is undefined: here, NaN or -1.

namespace emulator {

QUIET inline unsigned lane() { return running % warpSize; }
inline unsigned mask_of(unsigned mask = 0xffffffff) { return mask; }

template <class T> QUIET T shuffle(int line, unsigned mask, T value, unsigned from, int width) {
    static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
    bool power_of_two = width > 0 && !(width & (width - 1));
    if (!power_of_two || width > warpSize) bad_width(line, width);
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
