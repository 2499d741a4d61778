//! System calls without a safe wrapper elsewhere; each function checks what its call needs and is
//! safe to use. All other `unsafe` of the workspace is in `netns`, for calls that only namespaces
//! need.

#![allow(unsafe_code, reason = "the one place of the workspace for system calls")]

pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod rights;
pub(crate) mod socket;
pub(crate) mod tun;
