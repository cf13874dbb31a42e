//! Reads any bytes in the dialect that the environment variable `DIALECT` names.
#![no_main]

#[path = "../checks.rs"]
mod checks;

use std::sync::LazyLock;

static DIALECT: LazyLock<String> =
    LazyLock::new(|| std::env::var("DIALECT").expect("set DIALECT to the name of a dialect"));

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::decoder(&DIALECT, data));
