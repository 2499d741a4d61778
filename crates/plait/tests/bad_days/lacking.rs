//! Runs a program as if the kernel lacked something: a filter refuses its system calls with the
//! error of a kernel that does not know them.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// getrandom, landlock_create_ruleset, setsockopt and ioctl (asm/unistd.h).
#[cfg(target_arch = "x86_64")]
const CALLS: [i64; 4] = [318, 444, 54, 16];
#[cfg(not(target_arch = "x86_64"))]
const CALLS: [i64; 4] = [278, 444, 208, 29];
/// linux/udp.h, linux/if_tun.h.
const SOL_UDP: u64 = 17;
const UDP_SEGMENT: u64 = 103;
const UDP_GRO: u64 = 104;
const TUNSETOFFLOAD: u64 = 0x4004_54d0;
/// TCP and UDP segmentation among the offloads of a TUN device (linux/if_tun.h).
const TUN_SEGMENTATION: [u64; 4] = [0x02, 0x04, 0x20, 0x40];
const EAGAIN: u32 = 11;
const EINVAL: u32 = 22;
const ENOSYS: u32 = 38;
const ENOPROTOOPT: u32 = 92;

/// In a script, `lacking WHAT plait …` starts plait on such a kernel.
pub(super) fn script() -> String {
    let own = std::env::current_exe().unwrap();
    format!(
        "lacking() {{ lacks=$1; shift; LACKS=$lacks RUNS=\"$*\" exec {} --exact a_role \
         --nocapture; }}\n",
        own.display()
    )
}

/// Becomes the program that the environment names, if any.
pub(super) fn play() {
    let (Ok(lacks), Ok(runs)) = (std::env::var("LACKS"), std::env::var("RUNS")) else { return };
    for what in lacks.split(',') {
        let (rules, error) = refused(what);
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let refuse = SeccompAction::Errno(error);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap();
        let filter: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&filter).unwrap();
    }
    let mut words = runs.split(' ');
    let error = Command::new(words.next().unwrap()).args(words).exec();
    panic!("{runs}: {error}");
}

fn refused(what: &str) -> (BTreeMap<i64, Vec<SeccompRule>>, u32) {
    let is = |argument, value| {
        let (length, operator) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
        SeccompCondition::new(argument, length, operator, value).unwrap()
    };
    let has = |argument, bit| {
        let (length, operator) = (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit));
        SeccompCondition::new(argument, length, operator, bit).unwrap()
    };
    let rule = |conditions| SeccompRule::new(conditions).unwrap();
    let [getrandom, landlock, setsockopt, ioctl] = CALLS;
    let (call, rules, error) = match what {
        "randomness" => (getrandom, Vec::new(), ENOSYS),
        "randomness-yet" => (getrandom, Vec::new(), EAGAIN),
        "landlock" => (landlock, Vec::new(), ENOSYS),
        "udp-offload" => {
            let option = |option| rule(vec![is(1, SOL_UDP), is(2, option)]);
            (setsockopt, vec![option(UDP_SEGMENT), option(UDP_GRO)], ENOPROTOOPT)
        }
        "tun-offload" => {
            let offload = |bit| rule(vec![is(1, TUNSETOFFLOAD), has(2, bit)]);
            (ioctl, TUN_SEGMENTATION.map(offload).to_vec(), EINVAL)
        }
        _ => panic!("nobody lacks {what}"),
    };
    (BTreeMap::from([(call, rules)]), error)
}
