//! Intercepts the calls of User Mode Linux to the host's `ptrace`. `LD_PRELOAD` loads this library
//! into User Mode Linux.
//!
//! Before version 6.13 User Mode Linux keeps the processor's extended state (NT_X86_XSTATE) of each
//! of its threads in a buffer of 2,696 bytes. Processors with AMX have a larger state (about 11,000
//! bytes). The host truncates the state when it is read, but refuses to set it unless it is whole;
//! then User Mode Linux ends its first process and panics. This library completes a state that is
//! set to the size that the host demands. The added part is that of a new process: only programs
//! that were allowed to use AMX have anything else there, and in the machine nothing can ask for
//! that.
//!
//! User Mode Linux calls `ptrace` from one thread, on stacks of a few kilobytes. So the buffer is
//! static, and this library allocates nothing and nests few calls.
//!
//! `build.rs` compiles this file by itself. It needs `unsafe`, because a program in C calls it.

#![no_std]

use core::ffi::{c_int, c_long, c_void};
use core::ptr::{copy_nonoverlapping, null_mut};

/// The equivalent of `struct iovec` in C.
#[repr(C)]
struct Piece {
    base: *mut u8,
    length: usize,
}

unsafe extern "C" {
    /// The C library's function. Sets `errno` and returns -1 if a system call fails.
    fn syscall(number: c_long, ...) -> c_long;
}

const SYS_PTRACE: c_long = 101;

const PEEKTEXT: c_int = 1;
const PEEKUSER: c_int = 3;
const GETREGSET: c_int = 0x4204;
const SETREGSET: c_int = 0x4205;
const NT_X86_XSTATE: usize = 0x202;

/// A size in bytes that exceeds any processor's state.
const MOST: usize = 64 * 1024;

/// A state of full size. It begins with the state that was set last, and the rest is that of a new
/// process.
static mut WHOLE: [u8; MOST] = [0; MOST];

/// The length of the host's state in bytes; 0 before the host was asked.
static mut LENGTH: usize = 0;

/// Does the same as the C library's `ptrace`, but also sets an extended state that is too short.
///
/// # Safety
/// The same as for `ptrace` in C. Only one thread calls this function.
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
    // SAFETY: for this request the caller passes an iovec of a buffer that can be read. Only the
    // calling thread uses the statics.
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

/// Loops forever. Nothing here panics.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
