// A fault of the processor in a kernel ends the launch, not the process; so does Ctrl-C.
#include <dlfcn.h>
#include <pthread.h>
#include <ucontext.h>

namespace emulator {

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGINT};
const size_t N_SIGNALS = sizeof SIGNALS / sizeof *SIGNALS;
static struct sigaction before[N_SIGNALS];
static stack_t stack_before;
static char handlers_stack[64 * 1024];  // as the thread's own may be full
static pthread_t launcher;
static void* fault_place;  // in the machine code

static char* stacks;  // of all threads, each with an unmapped guard at its end; from Python
static size_t stack_bytes, stack_guard;

static void* place_of(void* context) {
    ucontext_t* at = (ucontext_t*)context;
#if defined(__APPLE__) && defined(__x86_64__)
    return (void*)at->uc_mcontext->__ss.__rip;
#elif defined(__APPLE__)
    return (void*)at->uc_mcontext->__ss.__pc;
#elif defined(__x86_64__)
    return (void*)at->uc_mcontext.gregs[REG_RIP];
#else
    return (void*)at->uc_mcontext.pc;
#endif
}

static const char* what(int number, const siginfo_t* about) {
    if (number == SIGFPE) return "divides the least integer by -1";
    if (number == SIGILL || number == SIGTRAP) return "cannot go on: what it does is undefined";
    if ((size_t)((char*)about->si_addr - fibres[running].guard) < stack_guard)
        return "has no stack left: its local arrays are too large, or calls go too deep";
    return "reads or writes memory that belongs to no array";
}

static void handle(int number, siginfo_t* about, void* context) {
    size_t which = 0;
    while (SIGNALS[which] != number) which++;
    bool ours = pthread_equal(pthread_self(), launcher), was = in_kernel;
    if (number == SIGINT && ours) {
        if (!interrupted) interrupted = HERE;
        if (!was || !scheduler) return;  // the scheduler looks at `interrupted` soon
        in_kernel = false;
        fail("interrupted");
        stop();
    }
    if (ours && scheduler && number != SIGINT) {
        in_kernel = false;
        const Fibre& me = fibres[running];
        fault_place = place_of(context);
        fail(THREAD " of block (%u, %u, %u) %s", XYZ(me.index), XYZ(blockIdx), what(number, about));
        stop();
    }
    if (number == SIGINT && before[which].sa_handler != SIG_DFL && before[which].sa_handler != SIG_IGN) {
        before[which].sa_handler(number);  // in another thread: Python notes it, and the kernel ends
        interrupted = ELSEWHERE;
        pthread_kill(launcher, SIGINT);
    } else if (number != SIGINT || before[which].sa_handler == SIG_DFL)
        sigaction(number, &before[which], nullptr);  // not a kernel's: it happens again, as ever
}

void stop_at(void* place, const char* what) {
    in_kernel = false;
    fault_place = (char*)place - 1;
    fail(THREAD " of block (%u, %u, %u) %s", XYZ(fibres[running].index), XYZ(blockIdx), what);
    stop();
}

static void catch_signals() {
    launcher = pthread_self();
    interrupted = 0;
    fault_place = nullptr;
    stack_t stack = {};
    stack.ss_sp = handlers_stack;
    stack.ss_size = sizeof handlers_stack;
    sigaltstack(&stack, &stack_before);
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < N_SIGNALS; i++) sigaction(SIGNALS[i], &action, &before[i]);
}

static void leave_signals() {
    for (size_t i = 0; i < N_SIGNALS; i++) sigaction(SIGNALS[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
    if (interrupted == HERE) raise(SIGINT);  // for whoever handles it: as a rule, KeyboardInterrupt
}

}  // namespace emulator

// Instead of a division by zero, which not every processor notices.
extern "C" void __ubsan_handle_divrem_overflow(void*, uintptr_t, uintptr_t) {
    emulator::stop_at(PLACE, "divides an integer by zero");
}
EXPORT void emulator_stacks(char* first, size_t bytes, size_t guard) {
    emulator::stacks = first;
    emulator::stack_bytes = bytes;
    emulator::stack_guard = guard;
}
EXPORT void* emulator_fault_place() { return emulator::fault_place; }
EXPORT void* emulator_base() {  // where the library is loaded
    Dl_info info = {};
    dladdr((void*)emulator_stacks, &info);
    return info.dli_fbase;
}
