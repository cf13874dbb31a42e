//! Signals that this process ignores since its start.
//!
//! A program is started with some signals ignored for a reason, as by `nohup`, and has to respect
//! that. The system call for it is `unsafe`, so it is read from `/proc`.

/// Whether the program was started to survive its terminal, as with `nohup`. Where that cannot be
/// determined, it was not.
pub fn is_hangup_ignored() -> bool {
    is_ignored(HANGUP)
}

/// SIGHUP has this number on every system.
const HANGUP: u32 = 1;

#[cfg(target_os = "linux")]
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    1_u64.checked_shl(signal - 1).is_some_and(|bit| mask & bit != 0)
}

#[cfg(not(target_os = "linux"))]
fn is_ignored(_signal: u32) -> bool {
    false
}
