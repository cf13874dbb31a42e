//! Random numbers from a seed that is shown.

use std::io::Write;

/// The seed and the number of random faults, which `INTERLINGUA_FAULT_SEED` and `INTERLINGUA_FAULTS` may
/// set. Shows them, past the capture of a test's output.
pub(crate) fn settings() -> (u64, u64) {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = setting("INTERLINGUA_FAULT_SEED").unwrap_or(0x5eed);
    let faults = setting("INTERLINGUA_FAULTS").unwrap_or(100);
    let mut shown = std::io::stderr();
    writeln!(shown, "{faults} random faults, INTERLINGUA_FAULT_SEED={seed}").unwrap();
    (seed, faults)
}

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
