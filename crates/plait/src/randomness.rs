//! Random numbers from the kernel, for keys and all that must not be guessed.
//!
//! A machine that has just begun may have none yet: they are waited for, with a word, and not
//! forever. Nothing is ever made from weaker ones.

use std::io;
use std::thread;
use std::time::Duration;

use plait_net::machine::{await_random, fill_random};

use crate::advice::Advised;

/// How often the kernel is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// How often at most: a minute in all. Machines gather what they need in seconds.
const TRIES_MAX: u32 = 600;

const HELP_ABSENT: &str = "plait needs the system call getrandom: Linux has it since 3.17, and a \
                           sandbox around plait must allow it";
const HELP_WAIT: &str = "the machine has gathered too little chance yet: try again later; give a \
                         virtual machine a virtio-rng device";

/// Fills `bytes`. `tell` is told, once, that this has to wait.
///
/// # Errors
/// The kernel has no random numbers, with the remedy. Then `bytes` hold nothing to be used.
pub(crate) fn fill(bytes: &mut [u8], tell: impl FnOnce(&str)) -> Result<(), Advised> {
    fill_by(
        bytes,
        fill_random,
        || thread::sleep(PAUSE),
        |what| {
            tell(what);
            make_kernel_gather();
        },
    )
}

/// Since Linux 5.4 the kernel gathers chance by itself, in a second or so, while a caller blocks.
/// It may as well never be done: so another thread blocks, and this one goes on asking.
fn make_kernel_gather() {
    let _detached = thread::Builder::new().spawn(await_random);
}

/// The same, with a line on stderr for who has to wait: for commands without a log.
///
/// # Errors
/// As [`fill`].
pub(crate) fn fill_for_command(bytes: &mut [u8]) -> Result<(), Advised> {
    fill(bytes, |what| eprintln!("plait: note: {what}"))
}

fn fill_by(
    bytes: &mut [u8],
    mut ask: impl FnMut(&mut [u8]) -> io::Result<()>,
    mut pause: impl FnMut(),
    tell: impl FnOnce(&str),
) -> Result<(), Advised> {
    let mut tell = Some(tell);
    for _ in 0..TRIES_MAX {
        match ask(bytes) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Some(tell) = tell.take() {
                    tell("the kernel has no random numbers yet: waiting for them");
                }
                pause();
            }
            Err(error) => {
                let message = "the kernel gives no random numbers";
                return Err(Advised::new(message, HELP_ABSENT).caused_by(error));
            }
        }
    }
    let seconds = (PAUSE * TRIES_MAX).as_secs();
    let message = format!("the kernel has had no random numbers for {seconds} s");
    Err(Advised::new(message, HELP_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills after so many refusals of this kind; gives the result, the pauses and what was told.
    fn tried(refusals: u32, kind: io::ErrorKind) -> (Result<u8, String>, u32, Vec<String>) {
        let (mut asked, mut pauses, mut told) = (0, 0, Vec::new());
        let mut byte = [0];
        let ask = |bytes: &mut [u8]| {
            asked += 1;
            if asked <= refusals {
                return Err(kind.into());
            }
            bytes.fill(7);
            Ok(())
        };
        let result = fill_by(&mut byte, ask, || pauses += 1, |text| told.push(text.to_owned()));
        (result.map(|()| byte[0]).map_err(|error| error.help().to_owned()), pauses, told)
    }

    #[test]
    fn what_is_not_there_yet_is_waited_for_with_a_word() {
        assert_eq!(tried(0, io::ErrorKind::WouldBlock), (Ok(7), 0, Vec::new()));
        let (result, pauses, told) = tried(3, io::ErrorKind::WouldBlock);
        assert_eq!((result, pauses, told.len()), (Ok(7), 3, 1));
        let (result, pauses, told) = tried(u32::MAX, io::ErrorKind::WouldBlock);
        assert_eq!((result, pauses), (Err(HELP_WAIT.into()), TRIES_MAX));
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn a_kernel_without_is_an_error_at_once() {
        let (result, pauses, told) = tried(1, io::ErrorKind::Unsupported);
        assert_eq!((result, pauses, told.len()), (Err(HELP_ABSENT.into()), 0, 0));
    }
}
