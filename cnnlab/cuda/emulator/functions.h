// CUDA's own functions and types: vectors, atomics, conversions, arithmetic, printf, assert.

#define VECTOR(T)                                                             \
    struct T##2 { T x, y; } __attribute__((aligned(8)));                      \
    struct T##3 { T x, y, z; };                                               \
    struct T##4 { T x, y, z, w; } __attribute__((aligned(16)));               \
    inline T##2 make_##T##2(T x, T y) { return {x, y}; }                      \
    inline T##3 make_##T##3(T x, T y, T z) { return {x, y, z}; }              \
    inline T##4 make_##T##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR(float)
VECTOR(int)
typedef unsigned char uchar;

#define ATOMIC(name, after)                                                                    \
    template <class A, class T = std::remove_volatile_t<A>>                                    \
    QUIET __attribute__((noinline)) T name(A* address, std::common_type_t<T> value) {          \
        NOTE(address, emulator::WRITE | emulator::ATOMIC);                                     \
        T before = *address;                                                                   \
        *address = after;                                                                      \
        return before;                                                                         \
    }
ATOMIC(atomicAdd, before + value)
ATOMIC(atomicSub, before - value)
ATOMIC(atomicInc, before >= value ? 0 : before + 1)
ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)
ATOMIC(atomicMax, before < value ? value : before)
ATOMIC(atomicMin, value < before ? value : before)
ATOMIC(atomicExch, value)
ATOMIC(atomicOr, before | value)
ATOMIC(atomicAnd, before & value)
ATOMIC(atomicXor, before ^ value)
template <class A, class T = std::remove_volatile_t<A>>
QUIET __attribute__((noinline)) T atomicCAS(A* address, std::common_type_t<T> compare, std::common_type_t<T> value) {
    NOTE(address, emulator::WRITE | emulator::ATOMIC | emulator::COMPARED);
    T before = *address;
    if (before == compare) *address = value;
    return before;
}

namespace emulator {

template <class To, class From> To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "expected types of one size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace emulator

#define printf(...) emulator::print(__VA_ARGS__)
#undef assert
#define assert(condition) \
    ((condition) ? (void)0 : emulator::broken("assert(" #condition ")", __LINE__))
#define __trap() emulator::broken("__trap()", __LINE__)

// One thread runs at a time, so that memory is always in order: a trace asks where fences stand.
QUIET __attribute__((noinline)) inline void __threadfence() {
    emulator::note(nullptr, 0, emulator::FENCE, PLACE);
}

template <class T> QUIET __attribute__((noinline)) T __ldg(const T* address) {
    NOTE(address, emulator::READ_ONLY);
    return *address;
}
inline int __float_as_int(float x) { return emulator::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulator::bits<unsigned>(x); }
inline float __int_as_float(int x) { return emulator::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::bits<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }

inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }  // of NaN: 0
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }

// Of two types, as in CUDA: of their common type; of floating-point numbers, the one that is not NaN.
template <class A, class B, class T = std::common_type_t<A, B>> T min(A a, B b) {
    if constexpr (std::is_floating_point_v<T>) return std::fmin((T)a, (T)b);
    else return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B, class T = std::common_type_t<A, B>> T max(A a, B b) {
    if constexpr (std::is_floating_point_v<T>) return std::fmax((T)a, (T)b);
    else return (T)a < (T)b ? (T)b : (T)a;
}
