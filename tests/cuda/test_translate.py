"""CUDA C as students write it: it runs, or the message names what the emulator does not know."""

import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.traced import Traced
from cnnlab.cuda.emulator.translate import counted, translate
from tests.cuda.examples import floats, kernel

I = "int i = threadIdx.x; "


def results(source: str, a=None, out=None, n=3, shared=0, device=Emulated) -> list:
    a = floats(32) if a is None else a
    out = np.zeros(32, np.float32) if out is None else out
    device(source).launch("k", (1,), (32,), a, out, n, shared=shared)
    return out.tolist()


@pytest.mark.parametrize(
    "declaration",
    [
        "__shared__ volatile float s[32];", "static __shared__ float s[32];",
        "volatile __shared__ float s[4 * 8], other;", "__shared__ __align__(16) float s[32];",
        "__shared__ unsigned int s[32];", "__shared__ unsigned long long s[32];",
        "__shared__ float *pointer; __shared__ pair s[32];",
        "extern __shared__ float s[];", "extern volatile __shared__ float s[];",
        "extern __shared__ __align__(8) unsigned char raw[]; float* s = (float*)raw;",
        "float* s = outside;",
    ],
)  # fmt: skip
def test_shared_memory_however_it_is_declared(declaration):
    before = "typedef float pair; extern __shared__ float outside[];"
    body = declaration + I + "s[i] = a[i]; __syncthreads(); out[i] = s[31 - i];"
    for device in (Emulated, Traced):
        assert results(kernel(body, before), shared=128, device=device) == [*range(32)][::-1]


def test_templates_structs_and_typedefs():
    before = """template <class T, int N> __device__ T add(T x)
    { __shared__ T s[N]; s[threadIdx.x % N] = 1; return x + N; }
    struct Point { float x; int n; };
    typedef float real;"""
    body = I + "Point p = {add<float, 32>(a[i]), i}; out[i] = p.x + p.n;"
    source = kernel(body, before, "const real* a, real* out, unsigned int n")
    for device in (Emulated, Traced):  # which share no static of a template
        assert results(source, device=device) == [2 * i + 32 for i in range(32)]


@pytest.mark.parametrize(
    "before, body, expected",
    [
        ("struct V { float x; __device__ V(float x) : x(x) {} __device__ float twice() const "
         "{ return 2 * x; } };", "V v(a[i]); out[i] = v.twice();", 14),
        ("template <class T, int N> struct Row { T of[N]; __device__ T& operator[](int i) "
         "{ return of[i]; } };", "Row<float, 4> r; r[3] = a[i]; out[i] = r[3];", 7),
        ("struct P { float x, y; };",
         "__shared__ P s[32]; s[i].y = a[i]; __syncthreads(); out[i] = s[31 - i].y;", 24),
        ("", "struct P { float x; int n; } p = {a[i], 2}; out[i] = p.x * p.n;", 14),
        ("template <int K> __device__ float sum(const float* a)\n{ float s = 0;\n"
         "#pragma unroll\nfor (int k = 0; k < K; k++) s += a[k]; return s; }",
         "out[i] = sum<4>(a);", 6),
        ("struct C { int n; float x; };\n__constant__ C c = {1, 2.5f};",
         "out[i] = c.n + c.x;", 3.5),
        ("__constant__ float w = 3;\n__constant__ int unset[25];",
         "out[i] = w + unset[i % 25];", 3),
        ("namespace sizes { enum Size { ONE = 1, TWO }; constexpr int K = 5; }",
         "out[i] = sizes::TWO + sizes::K;", 7),
        ("__device__ __forceinline__ float f(float x) { return x; }",
         "auto g = [&](int k) { return a[k]; }; out[i] = f(g(i));", 7),
        ("#define HD __host__ __device__\nHD unsigned rand(unsigned* x) { return ++*x; }\n"
         "__global__ void q(float* x);\n__global__ void q(float* x) {}\nfloat host() { return 1; }",
         "unsigned x = a[i]; if (x > 9) { x = 0; } else if (!x) { x++; } out[i] = rand(&x);", 8),
        ("#define AT(row, column) ((row) * 8 + (column))", "out[i] = a[AT(i / 8, 7)];", 7),
    ],
)  # fmt: skip
def test_what_a_source_may_declare(before, body, expected):
    for device in (Emulated, Traced):
        assert results(kernel(I + body, before), device=device)[7] == expected


@pytest.mark.parametrize(
    "kind, number",
    [("unsigned int", 5), ("size_t", 2**40), ("double", 2.5), ("long long", -(2**40)),
     ("bool", True), ("unsigned char", 200), ("short", -3), ("unsigned long long", 2**63),
     ("uint32_t", 7)],
)  # fmt: skip
def test_numbers(kind, number):
    source = kernel("out[threadIdx.x] = n;", parameters=f"const float* a, double* out, {kind} n")
    assert results(source, out=np.zeros(32), n=number) == [number] * 32


@pytest.mark.parametrize(
    "kind, dtype",
    [("unsigned", "u4"), ("unsigned int", "u4"), ("long long", "i8"), ("unsigned char", "u1"),
     ("double", "f8"), ("size_t", "u8"), ("int", "i4")],
)  # fmt: skip
def test_pointers(kind, dtype):
    source = kernel(I + "out[i] = a[i]; out[i] += 1;", "", f"const {kind}* a, {kind}* out, int n")
    a = np.arange(32).astype(dtype)
    assert results(source, a, np.zeros_like(a)) == [*range(1, 33)]


def test_vectors():
    body = I + "float2 v = a[i]; out[i] = make_float4(v.x, v.y, n, 2);"
    source = kernel(body, parameters="const float2* a, float4* out, int n")
    out = results(source, floats(64), np.zeros((32, 4), np.float32))
    assert out[5] == [10, 11, 3, 2]


FUNCTIONS = [
    ("__float_as_int(1.0f)", 0x3F800000), ("__int_as_float(0x40000000)", 2),
    ("__popc(255)", 8), ("__clz(1)", 31), ("__clz(0)", 32), ("__ffs(8)", 4),
    ("__saturatef(2.5f)", 1), ("__saturatef(NAN)", 0),
    ("max(1, 2.5f)", 2.5), ("max(3, 2u)", 3), ("min(1.0, 2.0f)", 1), ("max(NAN, 1.0f)", 1),
    ("abs(-2.5f)", 2.5), ("rsqrtf(4)", 0.5), ("w[n % 3]", 5),
    ("__ballot_sync(0xffffffff, i < 3)", 7),
    ("__any_sync(0xffffffff, i == 9)", 1), ("__all_sync(0xffffffff, i == 9)", 0),
    ("__shfl_sync(0xffffffff, a[i], 9, 8)", 1),
    ("__shfl_down_sync(0xffffffff, a[i], 3, 4)", 3),
    ("__shfl_xor_sync(0xffffffff, (double)a[i], 5)", 5), ("(__threadfence(), 1)", 1),
    ("atomicCAS(count, 0, 7) * 0 + *count", 7), ("atomicOr(count + 1, 6) * 0 + count[1]", 6),
]  # fmt: skip


def test_functions():
    before = "__constant__ float w[3] = {5, 6, 7};\n__device__ int count[2];"
    each = enumerate(expression for expression, _ in FUNCTIONS)
    body = "".join(f"double x{k} = {e}; if (i == 0) out[{k}] = x{k};\n" for k, e in each)
    result = results(
        kernel(I + body, before, "const float* a, double* out, int n"), out=np.zeros(40)
    )
    wrong = [(e, x, y) for (e, x), y in zip(FUNCTIONS, result, strict=False) if x != y]
    assert not wrong


@pytest.mark.parametrize("device", [Emulated, Traced, cuda.Kernels])
def test_variables_begin_anew_in_each_object(device):
    source, out = kernel("out[0] = atomicAdd(&n_runs, 1u);", "__device__ unsigned n_runs;"), []
    one, other = device(source), device(source)
    with cuda.traced():
        for kernels in (one, one, other):
            out.append(np.zeros(1, np.float32))
            kernels.launch("k", (1,), (1,), out[0], out[-1], 0)
    assert [int(each[0]) for each in out] == [0, 1, 0]


def test_masks():
    body = (
        I
        + """float v = a[i];
    unsigned low = __ballot_sync(0xffffffff, i < 16);
    if (i < 16) {
        for (int by = 8; by > 0; by /= 2) v += __shfl_down_sync(low, v, by);
    }
    if (i == 0) out[0] = v;"""
    )
    out = results(kernel(body))
    assert out[0] == sum(range(16))


def test_printf_and_assert(capsys):
    body = I + 'if (i < 2) printf("%d: %g\\n", i, a[i] / 2);\nassert(i < 9);'
    with pytest.raises(RuntimeError, match=r"line 6: thread \(9, 0, 0\) .* stops: assert\(i < 9\)"):
        results(kernel(body, "#include <stdio.h>\n#include <cuda_runtime.h>"))
    assert capsys.readouterr().out == "0: 0\n1: 0.5\n"


@pytest.mark.parametrize(
    "body, before, words",
    [
        ("", "#include <cooperative_groups.h>",
         "does not know #include <cooperative_groups.h>: line 1: #include <coop"),
        ("__managed__ int b;", "", "does not know __managed__: line 4: __managed__ int b;"),
        ("k<<<1, 1>>>(a, out, n);", "", "does not know <<<: line 4: k<<<1, 1>>>"),
        ("cudaMalloc(0, 0);", "", r"does not know cudaMalloc: line 4: cudaMalloc\(0, 0\);"),
        ("__shared__ int x = 0;", "", "without initial values, got line 4: __shared__ int x = 0;"),
        ("__half x = 0;", "", "not know __half"),
        ("int* p = (int*)malloc(4); free(p);", "", r"does not know malloc: line 4: int\* p"),
        ("delete[] out;", "", r"does not know delete: line 4: delete\[\] out;"),
        ("__nanosleep(5);", "", r"(?s)kernel.cu:4.*not know __nanosleep\n    __nanosleep\(5\);"),
        ("out[0] =\n    b;", "", r"(?s)kernel.cu:5.*'b' was not declared.*\n    b;"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named_with_its_line(body, before, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        Emulated(kernel(body, before))


@pytest.mark.parametrize(
    "source, words",
    [
        ("// K\ntemplate <int K>\n__global__ void k(int* a) {}",
         r"source: k: expected a kernel without template parameters, got template <int K>: "
         r"make it a __device__ function .*: line 3: __global__ void k\(int\* a\) \{\}"),
        ("int a;", "expected a __global__ function, got none"),
        ("__global__ void k(image* a) {}", r"expected parameters of .* got 'image\* a'"),
        ("struct P { int n; };\n__global__ void k(P p) {}", "got 'P p': line 2: __global__ void"),
        ("__global__ int k() {}", r"k: expected void, got int: line 1: __global__ int k"),
    ],
)  # fmt: skip
def test_a_kernel_that_cannot_be_launched_is_named_with_its_line(source, words):
    with pytest.raises(ValueError, match=words):
        Emulated(source)


def test_comments_and_strings_are_no_code():
    body = '// __shared__ memory\nfloat x = 1; /* <<< */ const char* y = "cudaMalloc";\nout[0] = x;'
    assert translate(kernel(body), ["k"]).count("float x = 1;") == 1
    assert results(kernel(body))[0] == 1


@pytest.mark.parametrize(
    "source",
    [
        "do f(); while (i);",
        "for (float v : values) f(v);",
        "constexpr int f(int n) { while (n > 9) n /= 2; return n; }",
        "int format = 1, whiles = do_it(format);",
        'char open[] = "for (int i";',
    ],
)
def test_other_loops_stay_as_they_are(source):
    assert counted(source) == source
