//! The implementation of TLS: rustls on Linux, the system's own elsewhere.

/// Chooses the cryptography of rustls, once per process. Another library may have chosen already.
/// Every client of ours has to call it first, also one that needs no TLS: creating a client panics
/// without it.
#[cfg(target_os = "linux")]
pub fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The system's own implementation needs no preparation.
#[cfg(not(target_os = "linux"))]
pub fn prepare() {}

/// Certificates of authorities to trust, from PEM.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<reqwest::Certificate>, String> {
    if pem.is_empty() {
        return Ok(Vec::new());
    }
    let parsed = reqwest::Certificate::from_pem_bundle(pem);
    let parsed = parsed.map_err(|problem| match std::error::Error::source(&problem) {
        Some(cause) => format!("the certificates cannot be read: {cause}"),
        None => "the certificates cannot be read".to_owned(),
    })?;
    // Without this, the user learns only that the server is not trusted.
    if parsed.is_empty() {
        return Err(
            "the certificates cannot be read: --ca-file has none in the form of PEM".to_owned()
        );
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_without_a_certificate_is_an_error() {
        super::prepare();
        assert!(super::certificates(b"no certificate").is_err());
        assert!(super::certificates(b"").is_ok_and(|all| all.is_empty()));
    }
}
