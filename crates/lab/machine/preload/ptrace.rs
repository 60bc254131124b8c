//! Stands between User Mode Linux and the host's `ptrace`, and is loaded into it by `LD_PRELOAD`.
//!
//! Before version 6.13 User Mode Linux keeps the processor's extended state (NT_X86_XSTATE) of each of
//! its threads in a buffer of 2,696 bytes. Processors with AMX have a larger one (about 11,000 bytes).
//! The host truncates what is read, but refuses to set it unless it is whole; then User Mode Linux ends
//! its first process and panics. Here a state that is set is completed to the size that the host
//! demands. What is added is what a new process has: only programs that were allowed to use AMX have
//! anything else there, and in the machine nothing can ask for that.
//!
//! User Mode Linux calls `ptrace` from one thread, on stacks of a few kilobytes. So the buffer is
//! static, and nothing here allocates or calls much.
//!
//! `build.rs` compiles this file by itself. It needs `unsafe`: it is called by a program in C.

#![no_std]

use core::ffi::{c_int, c_long, c_void};
use core::ptr::{copy_nonoverlapping, null_mut};

/// What `struct iovec` is in C.
#[repr(C)]
struct Piece {
    base: *mut u8,
    length: usize,
}

unsafe extern "C" {
    /// The C library's. Sets `errno` and returns -1 where a system call fails.
    fn syscall(number: c_long, ...) -> c_long;
}

const SYS_PTRACE: c_long = 101;

const PEEKTEXT: c_int = 1;
const PEEKUSER: c_int = 3;
const GETREGSET: c_int = 0x4204;
const SETREGSET: c_int = 0x4205;
const NT_X86_XSTATE: usize = 0x202;

/// More than any processor's state.
const MOST: usize = 64 * 1024;

/// A state of full size. It begins with what was set last; the rest is a new process's.
static mut WHOLE: [u8; MOST] = [0; MOST];

/// How long the host's state is; 0 before it was asked.
static mut LENGTH: usize = 0;

/// Does what the C library's `ptrace` does, and sets an extended state that is too short anyway.
///
/// # Safety
/// As `ptrace` in C. It is called by one thread only.
#[unsafe(no_mangle)]
unsafe extern "C" fn ptrace(
    request: c_int,
    process: c_int,
    address: *mut c_void,
    data: *mut c_void,
) -> c_long {
    let call = |request: c_int, data: *mut c_void| {
        // SAFETY: the arguments are the caller's or, for `data`, live and writable here.
        unsafe { syscall(SYS_PTRACE, c_long::from(request), c_long::from(process), address, data) }
    };
    if (PEEKTEXT..=PEEKUSER).contains(&request) {
        // The system call writes the word; the C function returns it.
        let mut word: c_long = 0;
        let failed = call(request, (&raw mut word).cast()) < 0;
        return if failed { -1 } else { word };
    }
    if request != SETREGSET || address as usize != NT_X86_XSTATE {
        return call(request, data);
    }
    // SAFETY: for this request the caller passes an iovec of a buffer that can be read. The statics
    // have one user, the thread that calls.
    unsafe {
        let given = &*data.cast::<Piece>();
        let mut whole = Piece { base: (&raw mut WHOLE).cast(), length: MOST };
        if LENGTH == 0 {
            if call(GETREGSET, (&raw mut whole).cast()) < 0 {
                return call(request, data);
            }
            LENGTH = whole.length;
        }
        if given.base == null_mut() || given.length >= LENGTH {
            return call(request, data);
        }
        copy_nonoverlapping(given.base, whole.base, given.length);
        whole.length = LENGTH;
        call(request, (&raw mut whole).cast())
    }
}

/// Nothing here panics.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
