//! The implementation of TLS: rustls on Linux, the system's own elsewhere.

/// Chooses the cryptography of rustls, once per process. Another library may have chosen already.
/// Every client of ours has to call it first, also one that needs no TLS: creating a client panics
/// without it.
#[cfg(target_os = "linux")]
pub(crate) fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The system's own implementation needs no preparation.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prepare() {}
