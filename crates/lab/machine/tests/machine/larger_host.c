// Plays a host whose processor has an extended state of 11,008 bytes, as one with AMX: it does not set
// a shorter one. Loaded into User Mode Linux by LD_PRELOAD, in place of ptrace and of the C library's
// syscall. For x86-64.

#include <errno.h>
#include <sys/uio.h>

enum { SYS_PTRACE = 101, PEEKTEXT = 1, PEEKUSER = 3, GETREGSET = 0x4204, SETREGSET = 0x4205 };
enum { NT_X86_XSTATE = 0x202, LARGER = 11008 };

static unsigned long own;

static long call(long number, long a, long b, void *c, void *d) {
  register void *fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

static long host(int request, int process, void *address, void *data) {
  struct iovec *given = data;
  if ((unsigned long)address != NT_X86_XSTATE || (request != GETREGSET && request != SETREGSET))
    return call(SYS_PTRACE, request, process, address, data);
  if (!own) {
    static char whole[64 * 1024];
    struct iovec all = {whole, sizeof whole};
    if (call(SYS_PTRACE, GETREGSET, process, address, &all) < 0) return -1;
    own = all.iov_len;
  }
  if (request == GETREGSET) {
    unsigned long length = given->iov_len;
    long result = call(SYS_PTRACE, request, process, address, given);
    given->iov_len = length < LARGER ? length : LARGER;
    return result;
  }
  if (given->iov_len < LARGER) {
    errno = EFAULT;
    return -1;
  }
  struct iovec real = {given->iov_base, own};
  return call(SYS_PTRACE, request, process, address, &real);
}

long ptrace(int request, int process, void *address, void *data) {
  if (request < PEEKTEXT || request > PEEKUSER) return host(request, process, address, data);
  long word;
  return host(request, process, address, &word) < 0 ? -1 : word;
}

long syscall(long number, long a, long b, void *c, void *d) {
  return number == SYS_PTRACE ? host(a, b, c, d) : call(number, a, b, c, d);
}
