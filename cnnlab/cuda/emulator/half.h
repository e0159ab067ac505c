// half, a floating-point number of 16 bits. As on a GPU without native ones, it computes in float.

#define INLINE __attribute__((always_inline))  // so that accesses have the kernel's lines
struct half {
    uint16_t bits;
    half() = default;
    INLINE half(float value);
    INLINE operator float() const;
};
typedef half __half;

inline half::half(float value) {  // to the nearest, ties to even
    uint32_t all = emulator::bits<uint32_t>(value), sign = all >> 16 & 0x8000, size = all & 0x7fffffff;
    if (size > 0x7f800000)
        bits = sign | 0x7fff;  // NaN
    else if (size >= 0x477ff000)
        bits = sign | 0x7c00;  // infinity
    else if (size < 0x38800000)  // adding 0.5 leaves multiples of 2^-24, the least half
        bits = sign | (emulator::bits<uint32_t>(emulator::bits<float>(size) + 0.5f) - 0x3f000000);
    else
        bits = sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}
inline half::operator float() const {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, size = bits & 0x7fff;
    if (size >= 0x7c00) return emulator::bits<float>(sign | 0x7f800000 | (size & 0x3ff) << 13);
    float value = emulator::bits<float>(size << 13) * 0x1p112f;  // which shifts the exponent
    return sign ? -value : value;
}
inline half __float2half(float x) { return x; }
inline half __float2half_rn(float x) { return x; }
inline float __half2float(half x) { return x; }
inline half __int2half_rn(int x) { return (float)x; }
inline half __hadd(half a, half b) { return (float)a + (float)b; }
inline half __hsub(half a, half b) { return (float)a - (float)b; }
inline half __hmul(half a, half b) { return (float)a * (float)b; }
inline half __hdiv(half a, half b) { return (float)a / (float)b; }
inline half __hfma(half a, half b, half c) { return (float)((double)a * (double)b + (double)c); }
inline bool __hlt(half a, half b) { return (float)a < (float)b; }
inline bool __hgt(half a, half b) { return (float)a > (float)b; }
INLINE inline half& operator+=(half& a, half b) { return a = a + b; }
INLINE inline half& operator-=(half& a, half b) { return a = a - b; }
INLINE inline half& operator*=(half& a, half b) { return a = a * b; }
INLINE inline half& operator/=(half& a, half b) { return a = a / b; }
