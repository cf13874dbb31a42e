//! The implementation of TLS: rustls on Linux, the system's own elsewhere.

/// Chooses the cryptography of rustls, once per process. Another library may have chosen already.
#[cfg(target_os = "linux")]
pub(super) fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The system's own implementation needs no preparation.
#[cfg(not(target_os = "linux"))]
pub(super) fn prepare() {}
